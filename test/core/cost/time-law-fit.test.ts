import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ENGINE_MODELS, promptCost, smooth } from "../../../src/core/cost/engine-model.js";
import {
  type FirstTokenTime,
  fitAnswerPace,
  fitTimeLaw,
  LEAST_SAMPLES,
  nearestTimeLaw,
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

  it("is at first the known one that it is nearest to, scaled", () => {
    const laws = [ENGINE_MODELS.gpu.cost, ENGINE_MODELS.cpu.cost].flatMap((cost) =>
      cost.kind === "time" ? [cost] : [],
    );
    const [gpu, cpu] = laws;
    const slower = (name: "cpu" | "gpu", count: number) =>
      served(name, still.slice(0, count), 6).map((time) => ({ ...time, ms: 3 * time.ms }));
    expect(nearestTimeLaw(slower("cpu", 8), laws)?.perPairMs).toBeCloseTo(3 * (cpu?.perPairMs ?? 0), 9);
    expect(nearestTimeLaw(slower("gpu", 8), laws)?.fixedMs).toBeCloseTo(3 * (gpu?.fixedMs ?? 0), 9);
    expect(nearestTimeLaw(slower("cpu", 7), laws)).toBeNull();
    expect(
      nearestTimeLaw(slower("cpu", 60), [{ kind: "time", fixedMs: 0, perTokenMs: 0, perPairMs: 0 }, ...laws]),
    ).toEqual(nearestTimeLaw(slower("cpu", 60), laws));
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

  it("is found, though each is off and one in six waited for others", () => {
    expect(fitAnswerPace(answers(2.5e-3, still))).toBeCloseTo(2.5e-3, 6);
    const anyNoise = fc.array(fc.double({ min: -0.05, max: 0.05, noNaN: true }), { minLength: 60, maxLength: 200 });
    fc.assert(
      fc.property(anyNoise, (noise) => {
        const slope = fitAnswerPace(answers(2.5e-3, noise, 6)) ?? 0;
        expect(slope).toBeGreaterThan(1.5e-3);
        expect(slope).toBeLessThan(3.5e-3);
      }),
      { numRuns: 50 },
    );
  });

  it("is 0 where prompts do not matter, and unknown from too few answers, too short ones, or prompts that are alike", () => {
    expect(fitAnswerPace(answers(0, still))).toBeCloseTo(0, 9);
    expect(fitAnswerPace(answers(1e-3, still.slice(0, LEAST_SAMPLES - 1)))).toBeNull();
    expect(fitAnswerPace(answers(1e-3, still).map((answer) => ({ ...answer, tokens: 3 })))).toBeNull();
    expect(fitAnswerPace(still.map(() => ({ promptTokens: 900, tokens: 20, ms: 800 })))).toBeNull();
  });
});
