import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ENGINE_MODELS, promptCost, smooth } from "../../../src/core/cost/engine-model.js";
import { answerPace, type FirstTokenTime, fitTimeLaw } from "../../../src/core/cost/time-law-fit.js";

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

  it("is not guessed from too few samples, nor from samples that are all alike, or differ by their length alone", () => {
    expect(fitTimeLaw(served("cpu", still.slice(0, 15)))).toBeNull();
    expect(fitTimeLaw(still.map(() => ({ uncachedTokens: 100, cachedTokens: 900, ms: 50 })))).toBeNull();
    expect(fitTimeLaw(still.map(() => ({ uncachedTokens: 0, cachedTokens: 0, ms: 5 })))).toBeNull();
    const byLength = served("cpu", still).map((time) => ({ ...time, ms: 1 + time.uncachedTokens + time.cachedTokens }));
    expect(fitTimeLaw(byLength)).toBeNull();
  });

  it("is none where times have nothing to do with what was computed: at once, at random, or of a queue", () => {
    const tokens = fc.tuple(fc.integer({ min: 1, max: 5_000 }), fc.nat(20_000));
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    const anySamples = fc.array(fc.tuple(tokens, share, share), { minLength: 1, maxLength: 256 });
    let queue = 0;
    const times: Readonly<Record<string, (a: number, b: number) => number>> = {
      atOnce: (a, b) => 0.4 + 0.2 * a + (b < 0.1 ? 5 : 0),
      random: (a) => 1 + 999 * a,
      anyMagnitude: (a, b) => Math.exp(4 * (a + b)),
      queue: (a, b) => {
        queue = Math.max(0, queue - 400 * Math.log(1 - 0.99 * a) + 450 * Math.log(1 - 0.99 * b));
        return 20 + queue;
      },
    };
    for (const [name, timeOf] of Object.entries(times)) {
      fc.assert(
        fc.property(anySamples, (drawn) => {
          queue = 0;
          const samples = drawn.map(([[uncachedTokens, cachedTokens], a, b]) => {
            return { uncachedTokens, cachedTokens, ms: timeOf(a, b) };
          });
          expect(fitTimeLaw(samples), name).toBeNull();
        }),
        // By chance one in some thousand has a law.
        { numRuns: 40, seed: 7 },
      );
    }
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
});
