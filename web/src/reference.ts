// The API reference at /docs: Swagger UI for the server's OpenAPI document, with nothing from other hosts.
import { effect } from "@preact/signals";
import SwaggerUI, { type Plugin, type ResponseBody } from "swagger-ui-dist/swagger-ui-es-bundle.js";
import "swagger-ui-dist/swagger-ui.css";
import "./reference.css";
import { theme, toggleTheme } from "./theme";

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

const themeButton = document.getElementById("theme")!;
themeButton.addEventListener("click", toggleTheme);
effect(() => {
  document.documentElement.classList.toggle("dark-mode", theme.value === "dark");
  themeButton.textContent = theme.value === "dark" ? "Light theme" : "Dark theme";
});

SwaggerUI({ url: "/openapi.json", dom_id: "#reference", deepLinking: true, syntaxHighlight: false, plugins: [audioPlayer] });
