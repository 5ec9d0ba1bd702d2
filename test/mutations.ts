/*
 * mutations: `npm run mutations` breaks promises on purpose, one line each, in a copy of the project, and shows which test notices.
 * Prints `noticed` and the test's name, or `NOT NOTICED`; fails where a break was not noticed, or where the unmodified copy fails. Arguments
 * choose the breaks whose promise or file contains one of them.
 */

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { MUTATIONS } from "./mutation-list.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Not copied: linked, or of no test's interest. */
const LINKED = ["node_modules", "dist"];
const LEFT_OUT = new Set([...LINKED, ".git", ".tmp"]);
/** Milliseconds until a broken copy counts as one that hangs, which is noticed as well. */
const LONGEST_MS = 600_000;

const copy = mkdtempSync(join(tmpdir(), "memprefix-mutations-"));
process.on("exit", () => rmSync(copy, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
cpSync(ROOT, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(relative(ROOT, path)) });
for (const name of LINKED) symlinkSync(join(ROOT, name), join(copy, name));

/** Runs tests in the copy. Gives the first that fails, or what went wrong instead; null where all pass. */
function failureOf(tests: readonly string[]): string | null {
  const args = [join(copy, "node_modules/vitest/vitest.mjs"), "run", "--bail=1", ...tests];
  const env = { ...process.env, NO_COLOR: "1" };
  const run = spawnSync(process.execPath, args, { cwd: copy, env, encoding: "utf8", timeout: LONGEST_MS });
  if (run.status === 0) return null;
  return /^ *FAIL +(.*)$/m.exec(run.stdout + run.stderr)?.[1] ?? `the run ended with ${run.status ?? "a time-out"}`;
}

const words = process.argv.slice(2);
const chosen = MUTATIONS.filter(
  ({ promise, file }) => words.length === 0 || words.some((word) => `${promise} ${file}`.includes(word)),
);
const before = failureOf([...new Set(chosen.flatMap(({ by }) => by))]);
if (before !== null) throw new Error(`the unmodified project fails: ${before}`);
let noticed = 0;
for (const { promise, file, from, to, by } of chosen) {
  const path = join(copy, file);
  const text = readFileSync(path, "utf8");
  writeFileSync(
    path,
    text.replace(from, () => to),
  );
  const failure = failureOf(by);
  writeFileSync(path, text);
  if (failure !== null) noticed++;
  console.log(`${failure === null ? "NOT NOTICED" : "noticed"}  ${promise} (${file})`);
  if (failure !== null) console.log(`         by ${failure}`);
}
console.log(`${noticed} of ${chosen.length} noticed`);
process.exitCode = noticed === chosen.length ? 0 : 1;
