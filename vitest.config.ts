import { configDefaults, defineConfig } from "vitest/config";

/** Tests of processes, of packages and in a browser: each file has a process of its own. */
const ALONE = [
  "test/{bench,cli,clients,crash,dashboard,package,postgres}/**/*.test.ts",
  "test/{ending-children,library}.test.ts",
];

export const TOGETHER = {
  include: ["test/**/*.test.ts"],
  exclude: [...configDefaults.exclude, ...ALONE],
  /** For each file by itself, a third of the time would go into loading the same modules. */
  isolate: false,
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
