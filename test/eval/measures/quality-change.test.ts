import { describe, expect, it } from "vitest";
import type { QuestionRecord } from "../../../src/eval/base/run-record.js";
import { bootstrapMean } from "../../../src/eval/measures/bootstrap.js";
import { mostChanged, qualityChange, verdictOf } from "../../../src/eval/measures/quality-change.js";
import { answeredBy, EXACT_ARM, README_ARM, runOf } from "../run/run-fixture.js";

const RUN = runOf({ judge: { url: "http://127.0.0.1:1/v1", model: "judge-1" } });
const judged = (isCorrect: boolean) => ({ judge: { isCorrect, prompt: "", raw: "" } });

describe("verdictOf", () => {
  const verdict = (values: readonly number[]) => {
    const difference = bootstrapMean(values, { seed: 1 });
    if (difference === null) throw new Error("there are values");
    return verdictOf({ difference, differing: values.filter((value) => value !== 0).length });
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
});
