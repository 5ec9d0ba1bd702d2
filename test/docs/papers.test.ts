import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { recordedData, SKIPPED } from "../eval/locomo/recorded-searches.js";
import { ROOT } from "./pages.js";

const data = recordedData();

/** The commands of the page that take seconds; `test/bench/papers-benches.test.ts` runs slower ones. */
describe.skipIf(data === null)(`docs/papers-tables.md${data === null ? SKIPPED : ""}`, () => {
  it.each(["overlap", "warm-start"])("has what its quick command prints: %s", async (name) => {
    const run = promisify(execFile)(process.execPath, ["--import", "tsx", "bench/papers.ts", name], { cwd: ROOT });
    const rows = (await run).stdout.split("\n").filter((line) => /^\| [^|]+ \| \d/.test(line));
    expect(rows.length).toBeGreaterThan(4);
    const page = readFileSync(join(ROOT, "docs/papers-tables.md"), "utf8");
    expect(rows.filter((row) => !page.includes(row))).toEqual([]);
  });
});
