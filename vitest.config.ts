import { existsSync, statfsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig } from "vitest/config";
import { SuiteReport } from "./test/suite-report.js";

/** Most flushes to a disk take longer than the test that asks for them, and no test asks whether the disk holds what it was given. */
const MEMORY_DISK = "/dev/shm";
/** Bytes that a run may take there. */
const NEEDED_ROOM = 4 * 2 ** 30;
if (process.env["TMPDIR"] === undefined && roomOn(MEMORY_DISK) >= NEEDED_ROOM) process.env["TMPDIR"] = MEMORY_DISK;

/** Bytes that are free on a file system; 0 where there is none. */
function roomOn(path: string): number {
  if (!existsSync(path)) return 0;
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/** Slow by nature: kills, full disks, containers, real clients, load. They belong to `npm run test:all` alone. */
const SLOW = [
  "test/**/*.load.test.ts",
  "test/bench/papers-benches.test.ts",
  "test/cli/{crash,disk-faults,instances,killed-writes,replaced-packages,server-crash}.test.ts",
  // Whole evaluations; `eval-refusals` has a small one.
  "test/cli/eval-{engines,kills,likelihood,locomo,longmemeval}.test.ts",
  "test/clients/**/*.test.ts",
  "test/eval/replay/retention.test.ts",
  "test/memory/python-mem0/*.test.ts",
  "test/docs/framework-pages.test.ts",
  "test/python/python-package.test.ts",
  "test/integrations/{hermes,mem0-page,openclaw}.test.ts",
  "test/real-engines/*.test.ts",
  "test/package/{client-package,contents,optional-parts}.test.ts",
  "test/store/postgres/server-faults.test.ts",
];

/** Adapters of frameworks that `npm run adapters` installs. */
const FRAMEWORKS = ["test/integrations/{ai-sdk,langchain,opentelemetry}/*.test.ts"];

/** What has a process to itself, file by file: what is slow, and what watches all that its own prints. */
const ALONE = [...SLOW, "test/memory/mem0-service-failures.test.ts"];

/** What the quick run takes: no build, no engine, no model; of http the contracts, keys, isolation and a few routes. */
const QUICK = [
  "test/{core,service}/**/*.test.ts",
  "test/http/contracts/**/*.test.ts",
  "test/http/guards/{api-keys,body-rate,chunked-body,isolation,keyless,safe-input}.test.ts",
  "test/http/routes/{chat,compose-single,failing-source,repeated-request}.test.ts",
];
/** … and of these it leaves out: long histories, and what asks for every route or many bodies. */
const NOT_QUICK = [
  "test/http/contracts/{fuzz,openapi,openapi-examples}.test.ts",
  "test/service/compose/{concurrency,long-conversations,policies-reload}.test.ts",
  "test/service/records/expiring*.test.ts",
];

/**
 * Three runs of the same tests: `npm run test:quick` (`--mode quick`), `npm test`, and `npm run test:all` (`--mode all`). They differ in the
 * files they take and in how often they try each property. `--mode adapters` is for `npm run adapters`.
 */
export default defineConfig(({ mode }) => {
  const left =
    mode === "adapters"
      ? SLOW
      : [...FRAMEWORKS, ...(mode === "all" ? [] : mode === "quick" ? [...SLOW, ...NOT_QUICK] : SLOW)];
  const everywhere = {
    env: { PROPERTY_RUNS: process.env["PROPERTY_RUNS"] ?? { all: "all", quick: "few" }[mode] ?? "fifth" },
    restoreMocks: true,
    unstubEnvs: true,
    setupFiles: ["test/property-seed.ts", "test/patience.ts"],
    globalSetup: ["test/postgres/global-setup.ts"],
    // A limit ends what hangs. Many of the tests start a service or an engine, on machines that may do other things, too.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // As `test/patience.ts` has it for `vi.waitFor`.
    expect: { poll: { timeout: 60_000 } },
  };
  const resolve = {
    alias: [{ find: /^fast-check$/, replacement: fileURLToPath(new URL("./test/property-runs.ts", import.meta.url)) }],
  };
  const together = {
    name: "together",
    ...everywhere,
    include: mode === "quick" ? QUICK : mode === "adapters" ? FRAMEWORKS : ["test/**/*.test.ts"],
    exclude: [...configDefaults.exclude, ...ALONE, ...left],
    /** For each file by itself, a third of the time would go into loading the same modules. */
    isolate: false,
  };
  const alone = {
    name: "alone",
    ...everywhere,
    include: ALONE,
    exclude: [...configDefaults.exclude, ...left],
    // Behind the others: between them, each would end a process that has loaded everything.
    sequence: { groupOrder: 1 },
  };
  return {
    test: {
      // One more than two processors: tests wait for sockets, too.
      maxWorkers: Math.min(2, availableParallelism()) + 1,
      // What was transformed stays, by its content: half of the time in which the first tests wait.
      experimental: { fsModuleCache: true, fsModuleCachePath: ".tmp/vitest" },
      reporters: ["default", new SuiteReport()],
      projects: [{ resolve, test: together }, ...(mode === "quick" ? [] : [{ resolve, test: alone }])],
    },
  };
});
