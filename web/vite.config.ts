// Builds into the Python package, so that its wheel has the page; no other host is referenced.
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

const BUNDLED = [
  "preact",
  "@preact/signals",
  "@preact/signals-core",
  "uplot",
  "@fontsource/newsreader",
  "@fontsource-variable/inter",
  "swagger-ui-dist",
];

/** Write the licences of the bundled packages to licences.txt. */
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle() {
      const texts = BUNDLED.map(
        (name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`,
      );
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join(`\n${"-".repeat(80)}\n\n`) });
    },
  };
}

export default defineConfig({
  base: "./", // a proxy may serve the page below a path
  plugins: [licences()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../tutti/server/page",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0, // the content security policy forbids data: URLs
    modulePreload: { polyfill: false },
    target: "es2022",
    rolldownOptions: { input: ["index.html", "docs.html"] },
    reportCompressedSize: true,
    chunkSizeWarningLimit: 1600, // kB: Swagger UI of the API reference
  },
  worker: { format: "es" },
});
