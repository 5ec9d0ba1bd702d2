/**
 * `npm run clients`: has every client hold its conversations through memprefix, those that are development dependencies and those that are
 * not (`heavy-clients.ts`), which are installed into a temporary folder (a Node 22, too, where this one is older); and memprefix's adapters, as
 * built, with packages that are not. Prints what each was tried with, and what is wrong; ends with 1 where something is. `-- NAME`: the
 * programs whose file names hold that.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endOnSignals } from "../ending-children.js";
import { HEAVY_CLIENTS, installClient } from "./heavy-clients.js";
import { LIGHT_CLIENTS, lightClient } from "./light-clients.js";
import { tryClient } from "./tried-client.js";

endOnSignals();
const wanted = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "memprefix-clients-"));
try {
  for (const name of [...LIGHT_CLIENTS, ...HEAVY_CLIENTS]) {
    if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue;
    const place = LIGHT_CLIENTS.includes(name) ? lightClient(name) : await installClient(name, folder);
    const { client, api, uses, wrong } = await tryClient(place);
    console.log(`${name}: ${client}, ${api}: ${uses.join(", ")}`);
    for (const what of wrong) console.log(`- ${what}`);
    if (wrong.length > 0) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
