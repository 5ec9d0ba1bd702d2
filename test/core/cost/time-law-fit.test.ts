import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ENGINE_MODELS, KNOWN_TIME_LAWS, promptCost, smooth } from "../../../src/core/cost/engine-model.js";
import {
  answerPace,
  type FirstTokenTime,
  fitTimeLaw,
  LEAST_SAMPLES,
  likelyTimeLaw,
} from "../../../src/core/cost/time-law-fit.js";

/** Requests as an engine with this law would serve them, some of them late. */
function served(law: "cpu" | "gpu", noise: readonly number[], late = 0): FirstTokenTime[] {
  return noise.map((off, n) => {
    const uncachedTokens = 40 + ((n * 577) % 3_000);
    const cachedTokens = (n * 911) % 6_000;
    const ms = promptCost(smooth(ENGINE_MODELS[law]), uncachedTokens + cachedTokens, cachedTokens);
    return { uncachedTokens, cachedTokens, ms: ms * (1 + off) * (late > 0 && n % late === 0 ? 8 : 1) };
  });
}
const still = Array.from({ length: 60 }, () => 0);

describe("the time law of measured first-token times", () => {
  it.each(["cpu", "gpu"] as const)("is found again where nothing disturbs: %s", (name) => {
    const fitted = fitTimeLaw(served(name, still));
    const { cost } = ENGINE_MODELS[name];
    if (cost.kind !== "time") throw new Error("not a time law");
    expect(fitted?.fixedMs).toBeCloseTo(cost.fixedMs, 3);
    expect(fitted?.perTokenMs).toBeCloseTo(cost.perTokenMs, 6);
    expect(fitted?.perPairMs).toBeCloseTo(cost.perPairMs, 9);
  });

  it("predicts times within a few per cent, though each is off and one in six came out of a queue", () => {
    const anyNoise = fc.array(fc.double({ min: -0.05, max: 0.05, noNaN: true }), { minLength: 60, maxLength: 200 });
    fc.assert(
      fc.property(anyNoise, (noise) => {
        const law = fitTimeLaw(served("cpu", noise, 6));
        const errors = served("cpu", still).map(({ uncachedTokens: u, cachedTokens: c, ms }) => {
          const predicted = (law?.fixedMs ?? 0) + (law?.perTokenMs ?? 0) * u + (law?.perPairMs ?? 0) * u * (c + u / 2);
          return Math.abs(predicted / ms - 1);
        });
        // The shortest prompt of all may be a third off: what is fixed shows in the shortest only.
        expect(errors.reduce((sum, error) => sum + error, 0) / errors.length).toBeLessThan(0.05);
      }),
      { numRuns: 50 },
    );
  });

  it("is at first the known one that it is like, scaled", () => {
    const [gpu, large, cpu] = KNOWN_TIME_LAWS;
    const slower = (name: "cpu" | "gpu", count: number) =>
      served(name, still.slice(0, count), 6).map((time) => ({ ...time, ms: 3 * time.ms }));
    expect(likelyTimeLaw(slower("cpu", 12), KNOWN_TIME_LAWS)?.perPairMs).toBeCloseTo(3 * (cpu?.perPairMs ?? 0), 5);
    expect(likelyTimeLaw(slower("gpu", 12), KNOWN_TIME_LAWS)?.fixedMs).toBeCloseTo(3 * (gpu?.fixedMs ?? 0), 1);
    expect(likelyTimeLaw(slower("gpu", 12), KNOWN_TIME_LAWS)?.perPairMs).toBeLessThan(large?.perPairMs ?? 0);
    expect(likelyTimeLaw([], KNOWN_TIME_LAWS)).toBeNull();
    const nothing = { kind: "time", fixedMs: 0, perTokenMs: 0, perPairMs: 0 } as const;
    expect(likelyTimeLaw(slower("cpu", 60), [nothing, ...KNOWN_TIME_LAWS])).toEqual(
      likelyTimeLaw(slower("cpu", 60), KNOWN_TIME_LAWS),
    );
    expect(likelyTimeLaw(slower("cpu", 60), [nothing])).toBeNull();
  });

  it("is no more certain by many times whose errors they have in common, as prompts of one step do", () => {
    const six = [0, 100, 200, 300, 400, 500].map((cachedTokens, n) => ({
      ...{ uncachedTokens: 450, cachedTokens, ms: 300 * (1 + 0.02 * n) },
    }));
    const often = Array.from({ length: 10 }, () => six).flat();
    const [few, many] = [six, often].map((times) => likelyTimeLaw(times, KNOWN_TIME_LAWS));
    expect(many?.perPairMs).toBeCloseTo(few?.perPairMs ?? 0, 9);
    expect(few?.perPairMs).toBeGreaterThan(1e-5);
  });

  it("is between those that a few times leave open: one tells a fast engine from a slow one", () => {
    const one = (ms: number) => likelyTimeLaw([{ uncachedTokens: 400, cachedTokens: 0, ms }], KNOWN_TIME_LAWS);
    const attention = (ms: number) => (one(ms)?.perPairMs ?? 0) / ms;
    expect(attention(800)).toBeGreaterThan(1.5 * attention(100));
    expect(attention(100)).toBeGreaterThan(1.5 * attention(20));
    // A model of 1.5B on a CPU: its weights take longer, attention over what is cached hardly any more.
    expect(attention(5_200)).toBeLessThan(attention(400) / 3);
    // Whatever the mixture, it predicts what was measured.
    for (const ms of [5, 20, 100, 800, 60_000]) {
      const { fixedMs = 0, perTokenMs = 0, perPairMs = 0 } = one(ms) ?? {};
      expect(fixedMs + 400 * perTokenMs + 400 * 200 * perPairMs).toBeCloseTo(ms, 3);
    }
  });

  it("is not guessed from too few samples, nor from samples that are all alike", () => {
    expect(fitTimeLaw(served("cpu", still.slice(0, LEAST_SAMPLES - 1)))).toBeNull();
    expect(fitTimeLaw(still.map(() => ({ uncachedTokens: 100, cachedTokens: 900, ms: 50 })))).toBeNull();
    expect(fitTimeLaw(still.map(() => ({ uncachedTokens: 0, cachedTokens: 0, ms: 5 })))).toBeNull();
  });

  it("never has a part below 0, nor one that is no number", () => {
    const anySample = fc.record({
      uncachedTokens: fc.nat(10_000),
      cachedTokens: fc.nat(100_000),
      ms: fc.double({ min: 0, max: 1e6, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(anySample, { maxLength: 60 }), (samples) => {
        const law = fitTimeLaw(samples);
        if (law === null) return;
        for (const part of [law.fixedMs, law.perTokenMs, law.perPairMs]) expect(part).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

describe("the time of answers behind long prompts", () => {
  /** Answers of an engine that takes 42 ms a token, and so much more for each token of the prompt. */
  const answers = (slope: number, noise: readonly number[], late = 0) =>
    noise.map((off, n) => {
      const [promptTokens, tokens] = [500 + ((n * 911) % 6_000), 4 + (n % 30)];
      const ms = tokens * (42 + slope * promptTokens) * (1 + off) * (late > 0 && n % late === 0 ? 5 : 1);
      return { promptTokens, tokens, ms };
    });

  /** The first token's law of an engine whose attention takes so much of a token's time. */
  const law = (perPairMs: number) => ({ kind: "time", fixedMs: 0, perTokenMs: 1, perPairMs }) as const;

  it("is found, though each is off and one in six waited for others", () => {
    const found = answerPace(answers(2.5e-3, still), law(1e-3));
    expect(found).toBeGreaterThan(2.3e-3);
    expect(found).toBeLessThan(2.7e-3);
    const anyNoise = fc.array(fc.double({ min: -0.05, max: 0.05, noNaN: true }), { minLength: 60, maxLength: 200 });
    fc.assert(
      fc.property(anyNoise, (noise) => {
        const slope = answerPace(answers(2.5e-3, noise, 6), law(1e-3));
        expect(slope).toBeGreaterThan(1.6e-3);
        expect(slope).toBeLessThan(3.4e-3);
      }),
      { numRuns: 50 },
    );
  });

  it("is the mean of what it is at least and at most, until answers show more", () => {
    expect(answerPace([], law(1e-3))).toBe(1e-3);
    const alike = still.map(() => ({ promptTokens: 1_000, tokens: 20, ms: 20 * 42 }));
    const expected = Math.sqrt(1e-3 * (42 / (1_000 + 1_000)));
    expect(answerPace(alike, law(1e-3))).toBeCloseTo(expected, 9);
    const short = answers(2.5e-3, still).map((answer) => ({ ...answer, tokens: 3 }));
    expect(answerPace(short, law(1e-3))).toBe(1e-3);
    expect(answerPace(answers(2.5e-3, still.slice(0, 2)), law(1e-3))).toBeCloseTo(
      Math.sqrt(1e-3 * (45.7 / (1_000 + 955))),
      3,
    );
    // Many are nearer to what is true than few, whether that is much or little.
    for (const slope of [1e-3, 8e-3]) {
      const errorOf = (count: number) => Math.abs(answerPace(answers(slope, still.slice(0, count)), law(1e-3)) - slope);
      expect(errorOf(60)).toBeLessThan(errorOf(4) / 2);
      expect(errorOf(60)).toBeLessThan(0.3 * slope);
    }
    expect(answerPace(answers(0, still), law(1e-3))).toBeLessThan(1.3e-3);
  });

  it("is not what a line through a few of unlike speed shows", () => {
    // The second half waited for others.
    const slowed = [600, 620, 640, 1_100, 1_150, 1_200].map((promptTokens, n) => ({
      ...{ promptTokens, tokens: 16, ms: 16 * (n < 3 ? 80 : 100) },
    }));
    // Through these points goes .04.
    const shown = answerPace(slowed, { ...law(2.8e-4), perTokenMs: 0.46 });
    expect(shown).toBeGreaterThan(1.5e-3);
    expect(shown).toBeLessThan(0.04 / 2);
  });

  it("is at most as much of the time as it is of a prompt's token: where that hardly attends, nothing else slows answers", () => {
    expect(answerPace(answers(2.5e-3, still), law(0))).toBe(0);
    expect(answerPace(answers(2.5e-3, still), law(1e-6))).toBeLessThan(1e-4);
  });

  it("is a number where times are next to nothing, prompts alike, or a prompt's tokens free", () => {
    const tiny = answers(2.5e-3, still).map((answer, n) => ({ ...answer, ms: n % 2 === 0 ? 5e-324 : answer.ms }));
    expect(answerPace(tiny, law(1e-3))).toBeGreaterThan(1e-3);
    expect(answerPace(tiny, { ...law(5e-324), perTokenMs: 0 })).toBeGreaterThan(0);
    expect(answerPace(tiny, { ...law(0), perTokenMs: 0 })).toBe(0);
    const empty = still.map(() => ({ promptTokens: 0, tokens: 4, ms: 1e6 }));
    expect(answerPace(empty, law(1e-3))).toBeCloseTo(Math.sqrt(1e-3 * 250), 6);
  });

  it("is never below 0, nor no number", () => {
    const anyAnswer = fc.record({
      promptTokens: fc.nat(100_000),
      tokens: fc.nat(1_000),
      ms: fc.double({ min: 0, max: 1e6, noNaN: true }),
    });
    const anyPart = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.array(anyAnswer, { maxLength: 40 }), anyPart, anyPart, (samples, perTokenMs, perPairMs) => {
        expect(answerPace(samples, { ...law(perPairMs), perTokenMs })).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
