import { describe, expect, it } from "vitest";
import { baselineOf, pairedDifference, pairsOf } from "../../../src/eval/measures/paired-difference.js";
import { answeredBy, EXACT_ARM, failedBy, README_ARM } from "../run/run-fixture.js";

describe("pairsOf", () => {
  it("pairs what both measured of the same question, warm-ups and failures left out", () => {
    const readme = [
      answeredBy(README_ARM, 0, { ttftMs: 900, isWarmUp: true }),
      answeredBy(README_ARM, 1, { ttftMs: 100 }),
      answeredBy(README_ARM, 2, { ttftMs: 200 }),
      answeredBy(README_ARM, 3, { ttftMs: 300 }),
      answeredBy(README_ARM, 4, { ttftMs: 400 }),
      answeredBy(README_ARM, 1, { conversation: "conv-30", ttftMs: 500 }),
    ];
    const exact = [
      answeredBy(EXACT_ARM, 1, { conversation: "conv-30", ttftMs: 50 }),
      failedBy(EXACT_ARM, 3),
      answeredBy(EXACT_ARM, 2, { ttftMs: null }),
      answeredBy(EXACT_ARM, 1, { ttftMs: 10 }),
      answeredBy(EXACT_ARM, 0, { ttftMs: 1 }),
    ];
    expect(pairsOf(readme, exact, ({ ttftMs }) => ttftMs)).toEqual([
      { conversation: "conv-26", baseline: 100, other: 10 },
      { conversation: "conv-30", baseline: 500, other: 50 },
    ]);
  });
});

describe("pairedDifference", () => {
  it("is the mean of differences", () => {
    const pairs = [
      { baseline: 100, other: 50 },
      { baseline: 200, other: 20 },
      { baseline: 0, other: 6 },
      { baseline: 10, other: 9 },
    ].map((pair) => ({ conversation: "conv-26", ...pair }));
    const found = pairedDifference(pairs, { seed: 1 });
    expect(found?.n).toBe(4);
    // (−50 − 180 + 6 − 1) ÷ 4.
    expect(found?.difference.value).toBe(-56.25);
    expect(found?.differing).toBe(4);
  });

  it("has an interval as wide as a normal approximation says, of many values", () => {
    const pairs = Array.from({ length: 2_000 }, (_, i) => ({ conversation: "conv-26", baseline: 0, other: i % 2 }));
    const found = pairedDifference(pairs, { seed: 3 });
    // Standard error √(0.25 ÷ 2,000) = 0.01118; 1.96 of them to either side.
    expect(found?.difference.low).toBeCloseTo(0.5 - 0.0219, 2);
    expect(found?.difference.high).toBeCloseTo(0.5 + 0.0219, 2);
  });

  it("of six conversations and more resamples conversations, with all their questions", () => {
    // Within a conversation all questions differ alike: two thousand questions say no more than ten conversations.
    const pairs = Array.from({ length: 2_000 }, (_, i) => ({
      conversation: `c${i % 10}`,
      baseline: 0,
      other: (i % 10) / 9,
    }));
    const found = pairedDifference(pairs, { seed: 3 });
    expect(found?.resampled).toEqual({ unit: "conversations", conversations: 10 });
    // Student's 2.262 standard errors of √(0.1132 ÷ 10).
    expect(found?.difference.low).toBeCloseTo(0.5 - 0.241, 1);
    expect(found?.difference.high).toBeCloseTo(0.5 + 0.241, 1);
    const few = pairs.filter(({ conversation }) => conversation < "c5");
    const ofFew = pairedDifference(few, { seed: 3 });
    expect(ofFew?.resampled).toEqual({ unit: "questions", conversations: 5 });
  });

  it("of no pairs is none", () => {
    expect(pairedDifference([], { seed: 1 })).toBeNull();
  });
});

describe("baselineOf", () => {
  const conversation = { ...EXACT_ARM, id: "conversation", layout: "conversation" } as const;
  it("is Mem0's README with the same layout and k, else the first arm, and none for itself", () => {
    const arms = [EXACT_ARM, conversation, README_ARM];
    expect(baselineOf(EXACT_ARM, arms)).toBe(README_ARM);
    expect(baselineOf(conversation, arms)).toBe(EXACT_ARM);
    expect(baselineOf(README_ARM, arms)).toBeNull();
    expect(baselineOf(EXACT_ARM, [EXACT_ARM, conversation])).toBeNull();
  });
});
