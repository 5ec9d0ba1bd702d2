/**
 * `npm run bench -- crash --kills 100 --seed 1`: the built service under many users (conversations, single prompts, batches, evictions, engine
 * reports, forgotten memories and users), killed with SIGKILL again and again; after each kill every promise is looked at. With
 * `--services 2` two of them share the directory, exchanges of chats are kept as memories, and users go while the engine answers. With
 * `--database postgres` any number of them share a PostgreSQL server, which is killed, too, those left go on meanwhile, and chats go on after
 * another one forgot what they replay. Prints what was done, and ends with 1 at the first promise that does not hold. The same as `test/cli/crash.test.ts` and `server-crash.test.ts`, only longer.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { surviveKills } from "../test/crash/survive-kills.js";
import { surviveServerKills } from "../test/crash/survive-server-kills.js";
import { endOnSignals } from "../test/ending-children.js";

endOnSignals();
const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    services: { type: "string" },
    database: { type: "string", default: "sqlite" },
  },
});
const { database } = values;
const isServer = database === "postgres";
const [kills, seed, services] = [
  Number(values.kills),
  Number(values.seed),
  Number(values.services ?? (isServer ? 3 : 1)),
];
const isPossible = isServer ? Number.isInteger(services) && services >= 1 : services === 1 || services === 2;
if (
  !Number.isInteger(kills) ||
  kills < 1 ||
  !Number.isInteger(seed) ||
  !isPossible ||
  (!isServer && database !== "sqlite")
) {
  console.error(`usage: npm run bench -- crash [--kills N] [--seed N] [--services 1|2]
       npm run bench -- crash --database postgres [--kills N] [--seed N] [--services N]`);
  process.exit(2);
}
const directory = mkdtempSync(join(tmpdir(), "memprefix-crash-"));
const began = performance.now();
try {
  const ordeal = { directory, kills, seed, print: (line: string) => console.log(line) };
  const survival = isServer
    ? await surviveServerKills({ ...ordeal, services })
    : await surviveKills({ ...ordeal, services: services === 2 ? 2 : 1 });
  const seconds = Math.round((performance.now() - began) / 1_000);
  console.log(JSON.stringify({ database, seed, services, seconds, ...survival }, null, 2));
  rmSync(directory, { recursive: true, force: true });
} catch (error) {
  // The files are evidence.
  console.error(
    `${error instanceof Error ? error.message : String(error)}\nseed ${seed}; the files are left in ${directory}`,
  );
  process.exitCode = 1;
}
