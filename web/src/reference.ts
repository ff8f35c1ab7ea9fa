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

/** Headings without a gap, all of it in landmarks, and no link inside of the button that opens a route; its address is set all the same. */
const accessible: Plugin = () => ({
  wrapComponents: {
    operations: (Operations, { React }) => (props) =>
      React.createElement("div", null, React.createElement("h2", { className: "unseen" }, "Routes"), React.createElement(Operations, props)),
    InfoContainer: (Info, { React }) => (props) =>
      React.createElement("section", { "aria-label": "About this server" }, React.createElement(Info, props)),
    DeepLink: (_, { React }) => ({ text }) => React.createElement("span", { className: "nostyle" }, text),
  },
});

const themeButton = document.getElementById("theme")!;
themeButton.addEventListener("click", toggleTheme);
effect(() => {
  document.documentElement.classList.toggle("dark-mode", theme.value === "dark");
  themeButton.textContent = theme.value === "dark" ? "Light theme" : "Dark theme";
});

/** Name the tables of responses, and let the keyboard scroll examples: Swagger UI does neither. */
function mend(): void {
  for (const example of reference.querySelectorAll<HTMLElement>("pre.microlight:not([tabindex])")) example.tabIndex = 0;
  for (const table of reference.querySelectorAll("table[role=region]:not([aria-label])")) {
    table.setAttribute("aria-label", table.id.replaceAll("_", " "));
  }
}

const reference = document.getElementById("reference")!;
new MutationObserver(mend).observe(reference, { childList: true, subtree: true });

/** The document has the paths of the server; below the path of a proxy they are longer. */
function requestInterceptor(request: { url: string }): { url: string } {
  const { origin, pathname } = new URL(request.url, document.baseURI);
  const root = new URL(".", document.baseURI).pathname;
  if (origin === location.origin && !pathname.startsWith(root)) request.url = request.url.replace(pathname, root + pathname.slice(1));
  return request;
}

SwaggerUI({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  syntaxHighlight: false,
  requestInterceptor,
  plugins: [audioPlayer, accessible],
});
