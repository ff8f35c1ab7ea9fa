// The API reference at /docs: Swagger UI for the server's OpenAPI document, with nothing from other hosts.
import SwaggerUI, { type Plugin, type ResponseBody } from "swagger-ui-dist/swagger-ui-es-bundle.js";
import "swagger-ui-dist/swagger-ui.css";

const urls = new WeakMap<Blob, string>();

/** Give an audio response a blob URL to play; Swagger UI itself would GET what was made by POST. */
function withAudioUrl(body: ResponseBody): ResponseBody {
  if (!(body.content instanceof Blob && body.contentType.startsWith("audio/"))) return body;
  const url = urls.get(body.content) ?? URL.createObjectURL(body.content);
  urls.set(body.content, url);
  return { ...body, url };
}

const audioPlayer: Plugin = () => ({
  wrapComponents: {
    responseBody: (ResponseBody, { React }) => (body) => React.createElement(ResponseBody, withAudioUrl(body)),
  },
});

SwaggerUI({ url: "/openapi.json", dom_id: "#reference", deepLinking: true, syntaxHighlight: false, plugins: [audioPlayer] });
