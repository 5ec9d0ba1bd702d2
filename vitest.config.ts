import { configDefaults, defineConfig } from "vitest/config";

/** Tests of other processes, sockets, engines and models, and of long histories: each file has a process of its own. */
export const ALONE = [
  "test/{bench,cli,clients,crash,dashboard,hostile,http,integrations,memory,package,postgres}/**/*.test.ts",
  "test/engines/{embedded,random-model}/**/*.test.ts",
  "test/eval/{engine,locomo,run}/**/*.test.ts",
  "test/store/{database,erasure,postgres,usage-postgres}/**/*.test.ts",
  "test/{ending-children,library,readme}.test.ts",
  // Replayed or written to disk: seconds each.
  "test/engines/adapters/predicted-cache.test.ts",
  "test/eval/replay/**/*.test.ts",
  "test/service/compose/{concurrency,explain-properties,policies-reload,residency-life}.test.ts",
  "test/service/records/expiring*.test.ts",
];

/** All others share threads: for each file by itself, a third of the time would go into loading the same modules. */
export const TOGETHER = {
  include: ["test/**/*.test.ts"],
  exclude: [...configDefaults.exclude, ...ALONE],
  isolate: false,
  pool: "threads" as const,
};

export const EVERYWHERE = {
  setupFiles: ["test/property-seed.ts"],
  globalSetup: ["test/postgres/global-setup.ts"],
  // Many of the tests start a service or an engine, on machines that may do other things, too.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  maxWorkers: 2,
};

export default defineConfig({
  test: {
    maxWorkers: EVERYWHERE.maxWorkers,
    projects: [
      { test: { name: "alone", ...EVERYWHERE, include: ALONE } },
      { test: { name: "together", ...EVERYWHERE, ...TOGETHER } },
    ],
  },
});
