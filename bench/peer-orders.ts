/**
 * `npm run bench -- peer-orders --data FOLDER --out OTHER`: the orders that ContextPilot's own code gives to recorded searches (`recorded-data.ts`):
 * version 0.5.0 from PyPI, its online index (`reorder`, one search after the other, alpha 0.001), at k = 20 and 100. Installs it into
 * `ENGINES_DIR`, beside the engines of `npm run engines`, and writes `OTHER/peers/<conversation>.json`, which `npm run bench -- peers` and
 * `npm run bench -- capacity` read. Says of each conversation whether `FOLDER/peers` has the same orders.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { RECORDED_CONVERSATIONS, readPeerOrders, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { ENGINES_FOLDER, PYTHON, run } from "../test/real-engines/install.js";
import { neededData, neededPath } from "./recorded-data.js";

const PACKAGE = "contextpilot==0.5.0";
const PROGRAM = fileURLToPath(new URL("contextpilot_orders.py", import.meta.url));

const data = neededData();
const out = neededPath("out", "the folder where the orders go");

const environment = join(ENGINES_FOLDER, PACKAGE.replace("==", "-"));
const python = join(environment, "bin", "python");
if (!existsSync(python)) await run(PYTHON, ["-m", "venv", environment]);
await run(python, ["-m", "pip", "--disable-pip-version-check", "-q", "install", PACKAGE]);

mkdirSync(join(out, "peers"), { recursive: true });
const exchange = mkdtempSync(join(tmpdir(), "memprefix-peers-"));
for (const conversation of RECORDED_CONVERSATIONS) {
  const [searches, orders] = [join(exchange, "searches.json"), join(exchange, "orders.json")];
  const { questions } = readRecordedTrace(data, conversation);
  writeFileSync(searches, JSON.stringify(questions.map(({ retrieved }) => retrieved)));
  await run(python, [PROGRAM, searches, orders]);
  const peer = {
    sample_id: conversation,
    policy: `${PACKAGE}, online reorder, alpha 0.001`,
    orders: JSON.parse(readFileSync(orders, "utf8")) as unknown,
  };
  writeFileSync(join(out, "peers", `${conversation}.json`), JSON.stringify(peer));
  const known = join(data, "peers", `${conversation}.json`);
  const ordersOf = (text: string) => readPeerOrders(JSON.parse(text)).orders;
  const isSame =
    existsSync(known) && isDeepStrictEqual(ordersOf(readFileSync(known, "utf8")), ordersOf(JSON.stringify(peer)));
  console.log(`${conversation}: ${questions.length} orders at each k${isSame ? ", as recorded" : ""}`);
}
