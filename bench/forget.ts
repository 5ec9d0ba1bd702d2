/**
 * `npm run bench -- forget`: 1,000 random memories (`FORGET_MEMORIES`), quoted word for word in random places by several agents to a built
 * service, then forgotten. Searches all files, its log and what the engine was sent afterwards; ends with 1 where anything of them is left.
 * `SEED` says which.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endOnSignals } from "../test/ending-children.js";
import { forgetQuotes } from "../test/hostile/forget-quotes.js";

endOnSignals();
const [memories, seed] = [Number(process.env["FORGET_MEMORIES"] ?? 1_000), Number(process.env["SEED"] ?? 1)];
if (!Number.isInteger(memories) || memories < 1 || !Number.isInteger(seed)) {
  console.error("usage: npm run bench -- forget FORGET_MEMORIES=1000 SEED=1");
  process.exit(2);
}
const directory = mkdtempSync(join(tmpdir(), "memprefix-forget-"));
const began = performance.now();
const found = await forgetQuotes({ directory, memories, seed, print: (line) => console.log(line) });
console.log(JSON.stringify({ seed, seconds: Math.round((performance.now() - began) / 1_000), ...found }, null, 2));
if (found.left.length === 0) rmSync(directory, { recursive: true, force: true });
else {
  // The files are evidence.
  console.error(`seed ${seed}; the files are left in ${directory}`);
  process.exitCode = 1;
}
