import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../docs/pages.js";
import { RECORDED_CONVERSATIONS, recordedData, SKIPPED } from "../eval/locomo/recorded-searches.js";

const [MEMORIES, QUESTIONS, RETRIEVED] = [12, 10, 8];

/** Searches that have much in common: each is the one before, turned by two places. */
function traceOf(name: string): unknown {
  return {
    sample_id: name,
    memories: Array.from({ length: MEMORIES }, (_, at) => ({ memory: `Fact ${at} of ${name}, told in a few words.` })),
    questions: Array.from({ length: QUESTIONS }, (_, asked) => ({
      question: `What of ${asked}?`,
      answer: `That is ${asked}.`,
      retrieved: Array.from({ length: RETRIEVED }, (_, rank) => (rank + 2 * asked) % MEMORIES),
    })),
  };
}

/** The rows of the tables that a bench prints, without headings. */
const rowsOf = (printed: string) =>
  printed
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

function printedBy(bench: string, data: string): string {
  const args = ["--import", "tsx", join(ROOT, "bench/papers.ts"), bench, "--data", data];
  return execFileSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" });
}

const recorded = recordedData();
const reason = recorded === null ? SKIPPED : "";

describe.skipIf(reason !== "")(`docs/papers.md${reason}`, () => {
  const page = readFileSync(join(ROOT, "docs/papers.md"), "utf8");

  it("has the steps of figure 8 that `breakdown` prints", { timeout: 300_000 }, () => {
    const rows = rowsOf(printedBy("breakdown", recorded ?? ""));
    const steps = ["retrieval order, as they came", "+ ordering, all known (Alg. 4)", "+ scheduling (Alg. 4 and 5)"];
    const ofCaches = steps.map((step) => rows.filter(([name]) => name === step).map((cells) => cells[2] ?? ""));
    for (const cache of [0, 1]) expect(page).toContain(ofCaches.map((shares) => shares[cache]).join(" → "));
  });

  it("has the rows of figure 13c that `permutation` prints", { timeout: 120_000 }, () => {
    const rows = rowsOf(printedBy("permutation", recorded ?? ""));
    for (const name of ["as retrieved", "counts of all"]) {
      const [, ...times] = rows.find(([row, first]) => row === name && first?.endsWith("×")) ?? [];
      expect(times).toHaveLength(4);
      expect(page).toContain(times.map((cell) => cell.replace("×", "")).join(", "));
    }
  });
});

describe("the benches of docs/papers.md, on searches made up here", () => {
  let data = "";
  beforeAll(() => {
    data = mkdtempSync(join(tmpdir(), "memprefix-benches-"));
    mkdirSync(join(data, "traces"));
    for (const name of RECORDED_CONVERSATIONS) {
      writeFileSync(join(data, "traces", `${name}.json`), JSON.stringify(traceOf(name)));
    }
  });
  afterAll(() => rmSync(data, { recursive: true, force: true }));

  it("sessions: kept memories compute least where memories come back, and all arms are there for all numbers of sessions", () => {
    const rows = rowsOf(printedBy("sessions", data));
    const [computed = 0, kept = 0] = ["in the system prompt (Mem0's README)", "memprefix, `retrieval`, `keep`"].map(
      (name) => Number.parseFloat(rows.find(([arm]) => arm === name)?.[2] ?? ""),
    );
    expect(kept).toBeGreaterThan(0);
    expect(kept).toBeLessThan(computed);
    expect(rows.flat().filter((cell) => /NaN|Infinity|undefined/.test(cell))).toEqual([]);
    expect(rows.filter(([arm]) => arm?.startsWith("memprefix"))).toHaveLength(8);
  });
});
