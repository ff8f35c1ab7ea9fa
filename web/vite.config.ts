// Built into the package itself, so that a wheel has the page; no other host is ever named.
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

const SHIPPED = [
  "preact",
  "@preact/signals",
  "@preact/signals-core",
  "uplot",
  "@fontsource/newsreader",
  "@fontsource-variable/inter",
  "swagger-ui-dist",
];

/** The licences of what is inside, beside it. */
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle() {
      const texts = SHIPPED.map(
        (name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`,
      );
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join(`\n${"-".repeat(80)}\n\n`) });
    },
  };
}

export default defineConfig({
  base: "/",
  plugins: [licences()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../tutti/server/page",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0, // the page may not use data: addresses
    modulePreload: { polyfill: false },
    target: "es2022",
    rolldownOptions: { input: ["index.html", "docs.html"] },
    reportCompressedSize: true,
    chunkSizeWarningLimit: 1600, // kB: the reference, for whoever opens it
  },
  worker: { format: "es" },
});
