/*
 * mutations: `npm run mutations` breaks promises on purpose, one line each, in a copy of the project, and shows which test notices.
 * Prints `noticed` and the test's name, or `NOT NOTICED`; fails where a break was not noticed, or where the unmodified copy fails. With
 * `--all-tests`, every break is judged by all tests; other arguments choose the breaks whose promise or file contains one of them.
 */

import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MUTATIONS, type Mutation } from "./mutation-list.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Not copied: linked, or of no test's interest. */
const LINKED = new Set(["node_modules", "dist"]);
const LEFT_OUT = new Set([...LINKED, ".git", ".tmp"]);
/** Milliseconds until a broken copy counts as one that hangs, which is noticed as well. */
const LONGEST_MS = 600_000;

/** What a run of tests came to. */
interface Outcome {
  readonly hasFailed: boolean;
  /** Of the first test that failed, or what went wrong instead. */
  readonly name: string;
}

/** The part of Vitest's JSON report that is read. */
interface Report {
  readonly success: boolean;
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** A file's text with a mutation in it; throws where the code has moved. */
function mutated(text: string, { file, from, to }: Mutation): string {
  const places = text.split(from).length - 1;
  if (places !== 1) throw new Error(`${file}: ${places} places in place of one have ${JSON.stringify(from)}`);
  return text.replace(from, () => to);
}

/** Runs tests in the copy, up to the first that fails. */
async function judge(copy: string, tests: readonly string[]): Promise<Outcome> {
  const out = join(copy, "mutations-report.json");
  rmSync(out, { force: true });
  const vitest = join(copy, "node_modules", "vitest", "vitest.mjs");
  const reporter = ["--reporter=json", `--outputFile=${out}`];
  const run = spawn(process.execPath, [vitest, "run", "--bail=1", ...reporter, ...tests], {
    cwd: copy,
    stdio: "ignore",
  });
  running = run.kill.bind(run);
  const timer = setTimeout(() => run.kill(), LONGEST_MS);
  const code = await new Promise<number | null>((resolve) => run.once("close", resolve));
  clearTimeout(timer);
  running = null;
  try {
    const report = JSON.parse(readFileSync(out, "utf8")) as Report;
    return { hasFailed: !report.success || code !== 0, name: firstFailed(report, copy) };
  } catch {
    return { hasFailed: code !== 0, name: `the run ended with ${code ?? "a time-out"}` };
  }
}

function firstFailed({ testResults }: Report, copy: string): string {
  for (const { name, message, status, assertionResults } of testResults) {
    const file = name.slice(copy.length + 1);
    const failed = assertionResults.find((one) => one.status === "failed");
    if (failed !== undefined) return `${file}: ${failed.fullName}`;
    if (status === "failed") return `${file}: ${message.split("\n")[0]}`;
  }
  return "an error outside of any test";
}

let running: (() => boolean) | null = null;

async function main(args: readonly string[]): Promise<number> {
  const isAll = args.includes("--all-tests");
  const words = args.filter((arg) => !arg.startsWith("--"));
  const chosen = MUTATIONS.filter(
    ({ promise, file }) => words.length === 0 || words.some((word) => `${promise} ${file}`.includes(word)),
  );
  // Before anything runs: where code has moved, the list comes first.
  for (const one of chosen) mutated(readFileSync(join(ROOT, one.file), "utf8"), one);
  const copy = mkdtempSync(join(tmpdir(), "memprefix-mutations-"));
  const end = () => rmSync(copy, { recursive: true, force: true });
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      running?.();
      end();
      process.exit(1);
    });
  try {
    cpSync(ROOT, copy, {
      recursive: true,
      filter: (path) => !LEFT_OUT.has(path.slice(ROOT.length).split("/")[0] ?? ""),
    });
    for (const name of LINKED) symlinkSync(join(ROOT, name), join(copy, name));
    const every = isAll ? [] : [...new Set(chosen.flatMap(({ by }) => by))];
    const before = await judge(copy, every);
    if (before.hasFailed) {
      console.log(`the unmodified project fails: ${before.name}`);
      return 1;
    }
    let missed = 0;
    for (const one of chosen) {
      const path = join(copy, one.file);
      const text = readFileSync(path, "utf8");
      writeFileSync(path, mutated(text, one));
      const { hasFailed, name } = await judge(copy, isAll ? [] : one.by);
      writeFileSync(path, text);
      if (!hasFailed) missed++;
      console.log(
        `${hasFailed ? "noticed" : "NOT NOTICED"}  ${one.promise} (${one.file})${hasFailed ? `\n         by ${name}` : ""}`,
      );
    }
    console.log(`${chosen.length - missed} of ${chosen.length} noticed`);
    return missed === 0 ? 0 : 1;
  } finally {
    end();
  }
}

process.exitCode = await main(process.argv.slice(2));
