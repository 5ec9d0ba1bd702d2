import { describe, expect, it } from "vitest";
import { compareRuns } from "../../../src/eval/report/compare-runs.js";
import { answeredBy, EXACT_ARM, README_ARM, runOf } from "../run/run-fixture.js";

const measured = (arm: typeof README_ARM, question: number, cachedTokens: number, ttftMs: number) =>
  answeredBy(arm, question, { promptTokens: 1_000, cachedTokens, ttftMs });

const a = {
  run: runOf(),
  records: [
    measured(README_ARM, 0, 0, 100),
    measured(README_ARM, 1, 0, 200),
    measured(README_ARM, 2, 0, 300),
    measured(EXACT_ARM, 0, 500, 80),
  ],
};

describe("two runs compared", () => {
  it("say what differs in settings, and by how much answers to the same questions do", () => {
    const another = { ...EXACT_ARM, id: "single k=20 sorted", policy: "sorted" as const };
    const b = {
      run: runOf({
        seed: 2,
        startedAt: "2026-11-22T10:00:00.000Z",
        engine: { ...a.run.engine, kind: "url", model: "a|model", url: "http://127.0.0.1:8000/v1" },
        // The same id with another k is another arm.
        arms: [README_ARM, { ...EXACT_ARM, k: 100 }, another],
      }),
      records: [measured(README_ARM, 1, 500, 100), measured(README_ARM, 0, 100, 90), measured(another, 0, 0, 1)],
    };
    const text = compareRuns(a, b);
    const section = (title: string) => text.split(/^## /m).find((part) => part.startsWith(title)) ?? "";
    expect(section("Settings").trim().split("\n").slice(2)).toEqual([
      "- engine.kind: `simulated` → `url`",
      "- engine.model: `null` → `a\\|model`",
      "- engine.url: `null` → `http://127.0.0.1:8000/v1`",
      "- seed: `1` → `2`",
    ]);
    const [row = "", ...others] = section("B against")
      .split("\n")
      .filter((line) => line.startsWith("| single"));
    expect(others).toEqual([]);
    const cells = row.split("|").map((cell) => cell.trim());
    // Uncached: 1,000 → 500 and 1,000 → 900. TTFT: 200 → 100 and 100 → 90.
    expect(cells.slice(1, 4)).toEqual(["single k=20 readme", "2", "−300 (−500 to −100)"]);
    expect(cells[4]).toBe("0.70× (0.50× to 0.90×)");
    expect(cells[5]).toBe("−55.0 (−100 to −10.0)");
    expect(cells[6]).toBe("0.70× (0.50× to 0.90×)");
    expect(cells.slice(7, 10)).toEqual(["not measured", "not measured", "not measured"]);
    expect(section("In one only").trim().split("\n").slice(2)).toEqual([
      "- Arm in A only: `single k=20 prefix-exact`",
      "- 1 questions of `single k=20 readme` in A only",
      "- Arm in B only: `single k=20 prefix-exact`",
      "- Arm in B only: `single k=20 sorted`",
    ]);
  });

  it("are told to be the same, partial, or of different data", () => {
    const drawn = (salt: string) => ({ ...a, run: runOf({ settings: { salt } }) });
    const same = compareRuns(drawn("b1c2"), drawn("d3e4"));
    expect(same).toContain("## Settings that differ\n\nNone.");
    expect(same).toContain("0.0 (0.0 to 0.0)");
    expect(same).toContain("## In one only\n\nNothing.");
    expect(same).not.toContain("**");
    const other = compareRuns(a, { run: runOf({ finishedAt: null, data: { file: "x", sha256: "cd" } }), records: [] });
    expect(other).toContain("**Run B is partial**");
    expect(other).toContain("**The data files differ**");
    expect(other).toContain("- 3 questions of `single k=20 readme` in A only");
  });

  it("without a common arm are no table", () => {
    expect(compareRuns(a, { run: runOf({ arms: [] }), records: [] })).toContain("No arm is in both.");
  });
});
