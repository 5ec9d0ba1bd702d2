import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { recordedData, SKIPPED } from "../eval/locomo/recorded-searches.js";
import { ROOT } from "./pages.js";

const data = recordedData();
const PAGE = readFileSync(join(ROOT, "docs/papers.md"), "utf8");

/** The rows of figures below one heading of the page, up to the next. */
function rowsBelow(heading: string): readonly string[] {
  const section = PAGE.split(/^##+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  return section.split("\n").filter((line) => /^\| [^|]+ \| \d/.test(line));
}

/** The commands of the page that take seconds; `test/bench/papers-benches.test.ts` runs slower ones. */
describe.skipIf(data === null)(`docs/papers.md${data === null ? SKIPPED : ""}`, () => {
  it.each([
    ["overlap", "Overlap"],
    ["warm-start", "Known beforehand"],
  ])("has rows that its quick command prints: %s", async (name, heading) => {
    const run = promisify(execFile)(process.execPath, ["--import", "tsx", "bench/papers.ts", name], { cwd: ROOT });
    const printed = (await run).stdout.split("\n");
    const rows = rowsBelow(heading);
    expect(rows.length).toBeGreaterThan(2);
    expect(rows.filter((row) => !printed.includes(row))).toEqual([]);
  });
});
