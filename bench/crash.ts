/**
 * `npm run crash -- --kills 100 --seed 1`: the built service under many users (conversations, single prompts, batches, evictions, engine
 * reports, forgotten memories and users), killed with SIGKILL again and again; after each kill every promise is looked at. With
 * `--services 2` two of them share the directory, exchanges of chats are kept as memories, and users go while the engine answers. Prints what
 * was done, and ends with 1 at the first promise that does not hold. The same as `test/cli/crash.test.ts`, only longer.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { surviveKills } from "../test/crash/survive-kills.js";
import { endOnSignals } from "../test/ending-children.js";

endOnSignals();
const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    services: { type: "string", default: "1" },
  },
});
const [kills, seed, services] = [Number(values.kills), Number(values.seed), Number(values.services)];
if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed) || (services !== 1 && services !== 2)) {
  console.error("usage: npm run crash -- [--kills N] [--seed N] [--services 1|2]");
  process.exit(2);
}
const directory = mkdtempSync(join(tmpdir(), "memstem-crash-"));
const began = performance.now();
try {
  const survival = await surviveKills({ directory, kills, seed, services, print: (line) => console.log(line) });
  console.log(
    JSON.stringify({ seed, services, seconds: Math.round((performance.now() - began) / 1_000), ...survival }, null, 2),
  );
  rmSync(directory, { recursive: true, force: true });
} catch (error) {
  // The files are evidence.
  console.error(
    `${error instanceof Error ? error.message : String(error)}\nseed ${seed}; the files are left in ${directory}`,
  );
  process.exitCode = 1;
}
