import { describe, expect, it } from "vitest";
import { measuredRates, plannedSeconds } from "../../../src/eval/measures/run-plan.js";
import { answeredBy, EXACT_ARM, failedBy } from "../run/run-fixture.js";

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
