/**
 * `npm run bench -- crash --kills 100 --seed 1`: the built service under many users (conversations, single prompts, batches, evictions, engine
 * reports, forgotten memories and users), killed with SIGKILL again and again; after each kill every promise is checked. With `--chats`,
 * exchanges of chats are kept as memories, too, and users go while the engine answers. With `--database postgres` several services share a
 * PostgreSQL server, which is killed, too; those left go on meanwhile, and chats go on after another one forgot what they replay. Prints what was done, and ends with 1 at the first promise that does not hold. The same as `test/cli/crash.test.ts` and `server-crash.test.ts`, only longer.
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
    services: { type: "string", default: "3" },
    chats: { type: "boolean", default: false },
    database: { type: "string", default: "sqlite" },
  },
});
const { database, chats } = values;
const isServer = database === "postgres";
const [kills, seed, services] = [Number(values.kills), Number(values.seed), Number(values.services)];
const isPossible =
  Number.isInteger(kills) && kills >= 1 && Number.isInteger(seed) && Number.isInteger(services) && services >= 1;
if (!isPossible || (!isServer && database !== "sqlite")) {
  console.error(`usage: npm run bench -- crash [--kills N] [--seed N] [--chats]
       npm run bench -- crash --database postgres [--kills N] [--seed N] [--services N]`);
  process.exit(2);
}
const directory = mkdtempSync(join(tmpdir(), "memprefix-crash-"));
const began = performance.now();
try {
  const ordeal = { directory, kills, seed, print: (line: string) => console.log(line) };
  const survival = isServer
    ? await surviveServerKills({ ...ordeal, services })
    : await surviveKills({ ...ordeal, chats });
  const seconds = Math.round((performance.now() - began) / 1_000);
  console.log(
    JSON.stringify({ database, seed, ...(isServer ? { services } : { chats }), seconds, ...survival }, null, 2),
  );
  rmSync(directory, { recursive: true, force: true });
} catch (error) {
  // The files are evidence.
  console.error(
    `${error instanceof Error ? error.message : String(error)}\nseed ${seed}; the files are left in ${directory}`,
  );
  process.exitCode = 1;
}
