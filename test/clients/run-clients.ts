/**
 * `npm run clients`: has every client hold its conversations through memprefix, those that are development dependencies and those that are
 * not (`heavy-clients.ts`), which are installed into a temporary folder (a Node 22, too, where this one is older); and memprefix's adapters, as
 * built, with packages that are not. Prints the table of `tried-clients.md`; `-- -u` writes it there. Ends with 1 where something is
 * wrong, or the table is another. `-- NAME`: the programs whose file names hold that, and no table.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endOnSignals } from "../ending-children.js";
import { clientTable, documentedTable, rowOf, writeTable } from "./client-table.js";
import { HEAVY_ADAPTERS, HEAVY_CLIENTS, installClient } from "./heavy-clients.js";
import { LIGHT_CLIENTS, lightClient } from "./light-clients.js";
import { type TriedClient, tryClient, wrongIn } from "./tried-client.js";

endOnSignals();
const wanted = process.argv.slice(2).filter((argument) => argument !== "-u");
const isWanted = (name: string) => wanted.length === 0 || wanted.some((part) => name.includes(part));
const folder = mkdtempSync(join(tmpdir(), "memprefix-clients-"));
const tried: TriedClient[] = [];
const adapters: TriedClient[] = [];
try {
  for (const name of LIGHT_CLIENTS.filter(isWanted)) tried.push(await tryClient(lightClient(name)));
  for (const name of HEAVY_CLIENTS.filter(isWanted)) tried.push(await tryClient(await installClient(name, folder)));
  for (const name of HEAVY_ADAPTERS.filter(isWanted)) {
    const adapter = await tryClient(await installClient(name, folder));
    adapters.push(adapter);
    console.log(`${name}: ${rowOf(adapter)}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const table = clientTable(tried);
console.log(table);
const wrong = [...tried, ...adapters].flatMap((client) => wrongIn(client).map((what) => `${client.client}: ${what}`));
for (const what of wrong) console.log(`- ${what}`);
if (wrong.length > 0) process.exitCode = 1;
if (wanted.length === 0 && process.argv.includes("-u")) writeTable(table);
else if (wanted.length === 0 && documentedTable() !== table) {
  console.log("The table of tried-clients.md is another: npm run clients -- -u");
  process.exitCode = 1;
}
