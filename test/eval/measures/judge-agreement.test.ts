import { describe, expect, it } from "vitest";
import { judgeAgreements, judgesOfRun, kappaOf } from "../../../src/eval/measures/quality-change.js";
import { answeredBy, EXACT_ARM, README_ARM, runOf } from "../run/run-fixture.js";

const RUN = runOf({
  judge: { url: "http://127.0.0.1:1/v1", model: "a" },
  otherJudges: [{ name: "b", url: "http://127.0.0.1:1/v1", model: "b" }],
});
const said = (isCorrect: boolean | null) => ({ isCorrect, prompt: "", raw: "" });

describe("kappaOf", () => {
  it("is Cohen's", () => {
    // The textbook's: 20 both right, 5 and 10 only one, 15 both wrong; agreement 0.7, by chance 0.5.
    expect(kappaOf([20, 5, 10, 15])).toBeCloseTo(0.4, 12);
    expect(kappaOf([25, 25, 25, 25])).toBeCloseTo(0, 12);
    expect(kappaOf([7, 0, 0, 9])).toBe(1);
    expect(kappaOf([0, 8, 8, 0])).toBe(-1);
  });

  it("cannot be said where both judges say one thing only", () => {
    expect(kappaOf([12, 0, 0, 0])).toBeNull();
    expect(kappaOf([0, 0, 0, 0])).toBeNull();
  });
});

describe("judgeAgreements", () => {
  it("compares verdicts on the same answers; what either could not be read of, warm-ups and failures are left out", () => {
    const verdicts = [
      [true, true],
      [true, false],
      [false, false],
      [false, false],
      [true, null],
    ] as const;
    const records = [README_ARM, EXACT_ARM].flatMap((arm) =>
      verdicts.map(([first, second], question) =>
        answeredBy(arm, question, { judge: said(first), otherJudgements: [{ judge: "b", ...said(second) }] }),
      ),
    );
    const warmUp = answeredBy(README_ARM, 9, { isWarmUp: true, judge: said(true), otherJudgements: [] });
    const [found, ...others] = judgeAgreements(RUN, [...records, warmUp], { seed: 1 });
    expect(others).toEqual([]);
    expect(found).toMatchObject({ first: "a", second: "b", answers: 8, onlyFirst: 2, onlySecond: 0 });
    expect(found?.agreement.value).toBe(0.75);
    expect(found?.kappa?.value).toBeCloseTo(0.5, 12);
    for (const interval of [found?.agreement, found?.kappa]) {
      expect(interval?.low).toBeLessThan(interval?.value ?? 0);
      expect(interval?.high).toBeGreaterThanOrEqual(interval?.value ?? 1);
    }
    expect(judgeAgreements(RUN, [...records, warmUp], { seed: 1 })).toEqual([found]);
  });

  it("needs two judges", () => {
    expect(judgesOfRun(runOf())).toEqual([]);
    expect(
      judgeAgreements({ ...RUN, otherJudges: [] }, [answeredBy(README_ARM, 0, { judge: said(true) })], { seed: 1 }),
    ).toEqual([]);
  });
});
