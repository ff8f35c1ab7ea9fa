// The reference at /docs: the server's own OpenAPI document, drawn and to be tried out, with nothing from elsewhere.
import SwaggerUI, { type Plugin, type ResponseBody } from "swagger-ui-dist/swagger-ui-es-bundle.js";
import "swagger-ui-dist/swagger-ui.css";

const urls = new WeakMap<Blob, string>();

/** Where the sound of an answer can be played from; by itself Swagger UI would GET what was made by POST. */
function playable(body: ResponseBody): ResponseBody {
  if (!(body.content instanceof Blob && body.contentType.startsWith("audio/"))) return body;
  const url = urls.get(body.content) ?? URL.createObjectURL(body.content);
  urls.set(body.content, url);
  return { ...body, url };
}

const heard: Plugin = () => ({
  wrapComponents: {
    responseBody: (Drawn, { React }) => (body) => React.createElement(Drawn, playable(body)),
  },
});

SwaggerUI({ url: "/openapi.json", dom_id: "#reference", deepLinking: true, syntaxHighlight: false, plugins: [heard] });
