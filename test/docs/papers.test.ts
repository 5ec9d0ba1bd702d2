import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { recordedData, SKIPPED } from "../eval/locomo/recorded-searches.js";
import { ROOT } from "./pages.js";

const data = recordedData();

it.skipIf(data === null)(
  `docs/papers.md has what its quick command prints${data === null ? SKIPPED : ""}`,
  async () => {
    const run = promisify(execFile)(process.execPath, ["--import", "tsx", "bench/papers.ts", "overlap"], { cwd: ROOT });
    const rows = (await run).stdout.split("\n").filter((line) => /^\| \d/.test(line));
    expect(rows).toHaveLength(5);
    const page = readFileSync(join(ROOT, "docs/papers.md"), "utf8");
    expect(rows.filter((row) => !page.includes(row))).toEqual([]);
  },
);
