import { describe, expect, it } from "vitest";
import type { AnswerScore } from "../../../src/eval/base/run-record.js";
import type { Price } from "../../../src/eval/measures/prices.js";
import { measuredRates, plannedSeconds, planRun } from "../../../src/eval/measures/run-plan.js";
import { answeredBy, EXACT_ARM, failedBy } from "../run/run-fixture.js";

const PRICE: Price = {
  provider: "A provider",
  model: "a model",
  source: "https://example.com/prices",
  date: "2026-11-21",
  input: 1,
  cachedInput: 0.5,
  cacheWrite: null,
  output: 2,
  minimumTokens: 1,
  note: null,
};

describe("measuredRates", () => {
  const asked = { promptTokens: 1_000, cachedTokens: 200, ttftMs: 400, answerTokens: 11, totalMs: 900 };

  it("is tokens ÷ time before the first token, and behind it", () => {
    const records = [
      answeredBy(EXACT_ARM, 0, { ...asked, ttftMs: 90_000, totalMs: 99_000, isWarmUp: true }),
      answeredBy(EXACT_ARM, 1, asked),
      answeredBy(EXACT_ARM, 2, { ...asked, answerTokens: 1, totalMs: 400 }),
      answeredBy(EXACT_ARM, 3, { ...asked, answerTokens: 21, totalMs: 1_400 }),
      failedBy(EXACT_ARM, 4),
    ];
    // 3 · 800 tokens in 1.2 s; 10 and 20 tokens in 0.5 and 1 s; 33 tokens of three answers.
    expect(measuredRates(records)).toEqual({ prefill: 2_000, answer: 20, answerTokens: 11 });
  });

  it("counts the tries of adaptive depth, whose time is in that to the first token", () => {
    const tried = (cachedTokens: number | null) => {
      const probes = [{ blocks: 5, entropy: 1.2, promptTokens: 600, cachedTokens }];
      const depth = { outcome: "unsure" as const, given: 10, probeMs: 200, probes };
      return answeredBy(EXACT_ARM, 1, { ...asked, ttftMs: 600, totalMs: 1_100, depth });
    };
    // 400 tokens of the try and 800 of the prompt that was answered, in 0.6 s.
    expect(measuredRates([tried(200)])).toEqual({ prefill: 2_000, answer: 20, answerTokens: 11 });
    expect(measuredRates([tried(null)]).prefill).toBeNull();
  });

  it("does not know what was not measured", () => {
    expect(measuredRates([])).toEqual({ prefill: null, answer: null, answerTokens: null });
    const whole = answeredBy(EXACT_ARM, 1, { ...asked, ttftMs: null });
    expect(measuredRates([whole])).toEqual({ prefill: null, answer: null, answerTokens: 11 });
    const cached = answeredBy(EXACT_ARM, 1, { ...asked, cachedTokens: 1_000 });
    expect(measuredRates([cached]).prefill).toBeNull();
  });
});

describe("plannedSeconds", () => {
  const arms = [{ arm: EXACT_ARM, questions: 10, promptTokens: 5_000, cachedTokens: 1_000, failed: 0 }];
  const plan = { arms, promptTokens: 5_000, cachedTokens: 1_000, answerTokens: 640 };

  it("takes answers at most, and as long as they were", () => {
    expect(plannedSeconds(plan, { prefill: 2_000, answer: 20, answerTokens: 11 })).toEqual({
      prompts: 2,
      answers: 32,
      likelyAnswers: 5.5,
    });
  });

  it("never takes answers for longer than they may be, and knows nothing without a rate", () => {
    expect(plannedSeconds(plan, { prefill: null, answer: 20, answerTokens: 100 }).likelyAnswers).toBe(32);
    const nothing = { prompts: null, answers: null, likelyAnswers: null };
    expect(plannedSeconds(plan, { prefill: null, answer: null, answerTokens: 11 })).toEqual(nothing);
  });
});

describe("planRun", () => {
  it("sends a prompt for words, and one more, computed whole, for each right answer whose likelihood is asked for", () => {
    const answer = { question: "Who?", answer: "Ana", category: 4, evidence: [] };
    const questions = [answer, { ...answer, gold: "preference" as const }, { ...answer, category: 5 }];
    const records = questions.map((_, at) => answeredBy(EXACT_ARM, at, { promptTokens: 1_000, cachedTokens: 300 }));
    const planned = (...scores: AnswerScore[]) => {
      const { arms, promptTokens, cachedTokens, costs } = planRun([EXACT_ARM], [...records, failedBy(EXACT_ARM, 3)], {
        prices: [PRICE],
        maxTokens: 10,
        judges: 0,
        countTokens: () => 1,
        scores,
        questionOf: ({ question }) => questions[question],
      });
      expect(arms).toEqual([{ arm: EXACT_ARM, questions: 3, promptTokens, cachedTokens, failed: 1 }]);
      return [promptTokens, cachedTokens, costs[0]?.prompts];
    };
    // A dollar for each million of tokens, half of it where they are cached.
    expect(planned("words")).toEqual([3_000, 900, expect.closeTo(0.00255, 9)]);
    expect(planned("likelihood")).toEqual([1_000, 0, expect.closeTo(0.001, 9)]);
    expect(planned("words", "likelihood")).toEqual([4_000, 900, expect.closeTo(0.00355, 9)]);
  });
});
