import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { EVERYWHERE, TOGETHER } from "./vitest.config.js";

/**
 * `npm run test:quick`: what can be judged without another process, an engine, a model or a socket. Properties get few runs. Every test of
 * it is one of the full run, which has its own configuration.
 */
export default defineConfig({
  resolve: {
    alias: [
      { find: /^fast-check$/, replacement: fileURLToPath(new URL("./test/few-property-runs.ts", import.meta.url)) },
    ],
  },
  test: {
    ...EVERYWHERE,
    ...TOGETHER,
    exclude: [
      ...TOGETHER.exclude,
      // Other processes, sockets, engines and models.
      "test/{hostile,http,integrations,memory}/**",
      "test/engines/{embedded,random-model}/**",
      "test/eval/{engine,locomo,run}/**",
      "test/store/database/**",
      // Long histories, replayed or written to disk: seconds each, with few runs, too.
      "test/engines/adapters/predicted-cache.test.ts",
      "test/eval/replay/**",
      "test/service/compose/{concurrency,explain-properties,policies-reload,residency-life}.test.ts",
      "test/service/records/expiring*.test.ts",
      "test/store/{erasure,postgres,usage-postgres}/**",
    ],
    pool: "threads",
  },
});
