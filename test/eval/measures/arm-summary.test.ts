import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { summariseArms } from "../../../src/eval/measures/arm-summary.js";
import { quantile } from "../../../src/eval/measures/measured.js";
import { answeredBy, EXACT_ARM, failedBy, README_ARM, runOf } from "../run/run-fixture.js";

const judged = (isCorrect: boolean | null) => ({ judge: { isCorrect, prompt: "p", raw: "r" } });

/** A question with its tokens (prompt, cached, answer) and times (first token, search, compose), its evidence and its scores. */
function measured(question: number, category: number, of: number[], found: number[], f1: number, more: object) {
  const [promptTokens = 0, cachedTokens = 0, answerTokens = 0, ttftMs = 0, searchMs = 0, composeMs = 0] = of;
  const [evidence = 0, evidenceInPrompt = 0] = found;
  const times = { ttftMs, searchMs, composeMs };
  const counts = { promptTokens, cachedTokens, answerTokens, evidence, evidenceInPrompt };
  return answeredBy(README_ARM, question, { category, ...counts, ...times, f1, ...more });
}

describe("an arm's summary", () => {
  it("is what its questions come to, by hand", () => {
    const records = [
      // Warming up: 9,999 tokens that are in no figure.
      answeredBy(README_ARM, 0, { isWarmUp: true, promptTokens: 9_999, cachedTokens: 0, ttftMs: 9_999, f1: 1 }),
      measured(1, 1, [1_000, 400, 10, 300, 40, 1], [2, 1], 0.5, judged(true)),
      measured(2, 2, [2_000, 1_400, 30, 100, 60, 3], [1, 1], 1, judged(false)),
      // The engine said nothing of its cache.
      answeredBy(README_ARM, 3, { category: 2, promptTokens: 3_000, ttftMs: 200, ...judged(null) }),
      failedBy(README_ARM, 4, { category: 2 }),
      // An arm that the run does not have.
      answeredBy({ ...README_ARM, id: "another" }, 1, { promptTokens: 7 }),
    ];
    const [readme, exact] = summariseArms(runOf(), records);
    expect(readme).toMatchObject({
      arm: README_ARM,
      warmUps: 1,
      overall: {
        answered: 3,
        failed: 1,
        ttftP50: { value: 200, n: 3 },
        // 100, 200, 300: 0.95 · 2 = 1.9 from the first.
        ttftP95: { value: 290, n: 3 },
        promptTokens: { value: (1_000 + 2_000 + 3_000) / 3, n: 3 },
        cachedTokens: { value: (400 + 1_400) / 2, n: 2 },
        uncachedTokens: { value: (600 + 600) / 2, n: 2 },
        hitRatio: { value: 1_800 / 3_000, n: 2 },
        searchMs: { value: 50, n: 2 },
        composeMs: { value: 2, n: 2 },
        evidenceRecall: { value: 2 / 3, n: 2 },
        f1: { value: 0.75, n: 2 },
        judge: { value: 1 / 2, n: 2 },
        judgeUnread: 1,
      },
    });
    expect(readme?.categories.map(({ category, summary }) => [category, summary.answered, summary.failed])).toEqual([
      [1, 1, 0],
      [2, 2, 1],
    ]);
    expect(exact).toMatchObject({ arm: EXACT_ARM, warmUps: 0, categories: [] });
  });

  it("says of what was not measured that it was not, rather than 0", () => {
    const [summary] = summariseArms(runOf(), [answeredBy(README_ARM, 1)]);
    const { answered, failed, judgeUnread, cut, freshStarts, ...measures } = summary?.overall ?? {};
    expect({ answered, failed, judgeUnread }).toEqual({ answered: 1, failed: 0, judgeUnread: 0 });
    expect({ cut, freshStarts }).toEqual({ cut: 0, freshStarts: 0 });
    expect(Object.keys(measures)).toHaveLength(16);
    expect(Object.values(measures).every((measure) => measure === null)).toBe(true);
  });
});

describe("quantile", () => {
  it.each([
    [[], 0.5, null],
    [[7], 0.95, 7],
    [[3, 1], 0.5, 2],
    [[4, 1, 3, 2], 0.25, 1.75],
  ])("of %j at %d is %s", (values, share, expected) => {
    expect(quantile(values, share)).toBe(expected);
  });

  it("lies among the values, and rises with the share", () => {
    const values = fc.array(fc.double({ noNaN: true, min: -1e6, max: 1e6 }), { minLength: 1 });
    const share = fc.double({ noNaN: true, min: 0, max: 1 });
    fc.assert(
      fc.property(values, share, share, (given, a, b) => {
        const [low, high] = [quantile(given, Math.min(a, b)), quantile(given, Math.max(a, b))];
        expect(low).toBeLessThanOrEqual((high ?? Number.NaN) + 1e-6);
        expect(low).toBeGreaterThanOrEqual(Math.min(...given));
        expect(high).toBeLessThanOrEqual(Math.max(...given));
      }),
    );
  });
});
