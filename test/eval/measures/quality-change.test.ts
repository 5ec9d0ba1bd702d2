import { describe, expect, it } from "vitest";
import type { QuestionRecord } from "../../../src/eval/base/run-record.js";
import { bootstrapMean, seeded } from "../../../src/eval/measures/bootstrap.js";
import { mostChanged, qualityChange, questionsToSee, verdictOf } from "../../../src/eval/measures/quality-change.js";
import { armsOf } from "../../../src/eval/run/arms.js";
import { DEFAULT_ARMS } from "../run/default-arms.js";
import { answeredBy, EXACT_ARM, README_ARM, runOf } from "../run/run-fixture.js";

const RUN = runOf({ judge: { url: "http://127.0.0.1:1/v1", model: "judge-1" } });
const judged = (isCorrect: boolean) => ({ judge: { isCorrect, prompt: "", raw: "" } });

describe("questionsToSee", () => {
  it("is enough to find one point four times in five, and no more than that", () => {
    // One question in ten differs, half of them each way, but for one point.
    const needed = questionsToSee(0.1) ?? 0;
    expect(needed).toBe(7_849);
    const draw = seeded(7);
    const trials = 300;
    let found = 0;
    for (let trial = 0; trial < trials; trial++) {
      let [sum, squares] = [0, 0];
      for (let n = 0; n < needed; n++) {
        const drawn = draw();
        const difference = drawn < 0.055 ? 1 : drawn < 0.1 ? -1 : 0;
        sum += difference;
        squares += difference * difference;
      }
      const mean = sum / needed;
      const error = Math.sqrt((squares / needed - mean * mean) / needed);
      if (mean / error > 1.96) found++;
    }
    expect(found / trials).toBeGreaterThan(0.73);
    expect(found / trials).toBeLessThan(0.87);
  });

  it("cannot be said where nothing varied", () => {
    expect(questionsToSee(0)).toBeNull();
    expect(questionsToSee(null)).toBeNull();
  });
});

describe("verdictOf", () => {
  const verdict = (values: readonly number[]) => {
    const difference = bootstrapMean(values, { seed: 1 });
    if (difference === null) throw new Error("there are values");
    const mean = difference.value;
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
    return verdictOf({ difference, variance });
  };

  it("says only what the interval does", () => {
    expect(verdict([1, 1, 1, 1, 1, 0, 1, 0])).toBe("higher");
    expect(verdict([-1, -1, -1, -1, -1, 0, -1, 0])).toBe("lower");
    expect(verdict([1, -1, 0, 0, 1, 0])).toBe("not shown");
    expect(verdict([0, 0, 0, 0])).toBe("same");
  });

  it("does not take equal scores for certainty", () => {
    expect(mostChanged(150)).toBeCloseTo(0.02, 9);
    expect(mostChanged(1)).toBe(1);
  });
});

describe("qualityChange", () => {
  it("is by the judge where there is one, else by F1, else not measured", () => {
    const records = (given: (n: number, arm: string) => object) =>
      [README_ARM, EXACT_ARM].flatMap((arm) =>
        Array.from({ length: 4 }, (_, n) => answeredBy(arm, n, given(n, arm.id))),
      );
    const of = (recorded: readonly QuestionRecord[]) => qualityChange(RUN, recorded);
    expect(of(records((n, arm) => ({ f1: 0.5, ...judged(arm === EXACT_ARM.id || n > 0) })))).toMatchObject({
      score: "judge",
      arms: [{ arm: EXACT_ARM, baseline: README_ARM, found: { n: 4, difference: { value: 0.25 } } }],
    });
    expect(of(records((n) => ({ f1: n / 4 })))).toMatchObject({ score: "F1" });
    expect(of(records(() => ({})))).toBeNull();
    const scored = records(() => ({ f1: 1 }));
    expect(qualityChange({ ...RUN, arms: [README_ARM] }, scored)).toBeNull();
  });

  it("takes one option at a time, over all pairs of arms that differ in nothing else; a question counts once", () => {
    const arms = armsOf({
      ...DEFAULT_ARMS,
      layouts: ["conversation"],
      ks: [20],
      policies: ["readme", "prefix-exact", "sorted"],
      retentions: ["keep", "ephemeral"],
      annotations: ["none", null],
    });
    // Before the newest question the first question is wrong; with the line the second is right.
    const records = arms.flatMap((arm) =>
      [0, 1, 2, 3].map((n) => {
        const isWrong = (n === 0 && arm.retention === "ephemeral") || (n === 1 && arm.annotations !== null);
        return answeredBy(arm, n, judged(!isWrong));
      }),
    );
    const found = qualityChange({ ...RUN, arms }, records)?.options.map(({ option, from, to, pairsOfArms, found }) => [
      `${option}: ${from} → ${to}`,
      pairsOfArms,
      found?.n,
      found?.difference.value,
    ]);
    expect(found).toEqual([
      ["order: prefix-exact → sorted", 4, 4, 0],
      ["place: turn, keep → newest question", 4, 4, -0.25],
      ["annotations: none → default", 4, 4, 0.25],
    ]);
  });

  it("finds what memprefix's form does beside Mem0's list, in the same order, at the same place", () => {
    const arms = armsOf({
      ...DEFAULT_ARMS,
      ks: [20],
      policies: ["readme", "last-message", "retrieval", "prefix-exact"],
    });
    // Numbered lines cost the first question.
    const records = arms.flatMap((arm) =>
      [0, 1, 2, 3].map((n) =>
        answeredBy(arm, n, judged(n > 0 || arm.policy === "readme" || arm.policy === "last-message")),
      ),
    );
    const form = qualityChange({ ...RUN, arms }, records)?.options.find(({ option }) => option === "form");
    expect(form).toMatchObject({ from: "Mem0’s list", to: "memprefix’s lines", pairsOfArms: 1 });
    expect(form?.found?.difference.value).toBe(-0.25);
  });
});
