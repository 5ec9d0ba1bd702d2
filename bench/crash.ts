/**
 * `npm run crash -- --kills 100 --seed 1`: the built service under many users (conversations, single prompts, batches, evictions, engine
 * reports, forgotten memories and users), killed with SIGKILL again and again; after each kill every promise is looked at. Prints what
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
  options: { kills: { type: "string", default: "100" }, seed: { type: "string", default: "1" } },
});
const [kills, seed] = [Number(values.kills), Number(values.seed)];
if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed)) {
  console.error("usage: npm run crash -- [--kills N] [--seed N]");
  process.exit(2);
}
const directory = mkdtempSync(join(tmpdir(), "memstem-crash-"));
const began = performance.now();
try {
  const survival = await surviveKills({ directory, kills, seed, print: (line) => console.log(line) });
  console.log(JSON.stringify({ seed, seconds: Math.round((performance.now() - began) / 1_000), ...survival }, null, 2));
  rmSync(directory, { recursive: true, force: true });
} catch (error) {
  // The files are evidence.
  console.error(
    `${error instanceof Error ? error.message : String(error)}\nseed ${seed}; the files are left in ${directory}`,
  );
  process.exitCode = 1;
}
