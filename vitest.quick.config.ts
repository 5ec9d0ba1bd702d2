import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig, mergeConfig } from "vitest/config";
import full from "./vitest.config.js";

/**
 * `npm run test:quick`: what can be judged without another process, an engine, a model or a socket. Properties get few runs. Every test of
 * it is one of the full run, which has its own configuration.
 */
export default mergeConfig(
  full,
  defineConfig({
    resolve: {
      alias: [
        { find: /^fast-check$/, replacement: fileURLToPath(new URL("./test/few-property-runs.ts", import.meta.url)) },
      ],
    },
    test: {
      exclude: [
        ...configDefaults.exclude,
        // Other processes, sockets, engines and models.
        "test/{bench,cli,clients,crash,dashboard,hostile,http,integrations,memory,package}/**",
        "test/engines/{embedded,random-model}/**",
        "test/eval/{engine,locomo,run}/**",
        "test/store/database/**",
        "test/{ending-children,library,readme}.test.ts",
        // Long histories, replayed or written to disk: seconds each, with few runs, too.
        "test/engines/adapters/predicted-cache.test.ts",
        "test/eval/replay/**",
        "test/service/compose/{concurrency,explain-properties,policies-reload,residency-life}.test.ts",
        "test/service/learning/expiring*.test.ts",
        "test/store/{erasure,records,postgres}/**",
      ],
      // Most of the time would go into loading the same modules for every file.
      isolate: false,
      pool: "threads",
    },
  }),
);
