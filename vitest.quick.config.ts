import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { EVERYWHERE, TOGETHER } from "./vitest.config.js";

/** `npm run test:quick`: what the full run has its files share threads for, with few runs of each property. */
export default defineConfig({
  resolve: {
    alias: [
      { find: /^fast-check$/, replacement: fileURLToPath(new URL("./test/few-property-runs.ts", import.meta.url)) },
    ],
  },
  test: { ...EVERYWHERE, ...TOGETHER },
});
