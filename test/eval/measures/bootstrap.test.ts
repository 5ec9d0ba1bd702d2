import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  bootstrapMean,
  clustersOf,
  LEAST_CONVERSATIONS,
  seeded,
  tailOf,
} from "../../../src/eval/measures/bootstrap.js";
import { someOf } from "../../run-length.js";

describe("any bootstrap interval", () => {
  const values = fc.array(fc.integer({ min: -1_000, max: 1_000 }), { minLength: 1, maxLength: 40 });
  const seed = fc.integer();
  const resamples = 200;

  it("holds the mean, which is that of the values, and no more than the values do", () => {
    fc.assert(
      fc.property(values, seed, (given, seed) => {
        const found = bootstrapMean(given, { seed, resamples });
        if (found === null) throw new Error("there are values");
        expect(found.value).toBeCloseTo(given.reduce((a, b) => a + b, 0) / given.length, 9);
        expect(found.low).toBeLessThanOrEqual(found.value + 1e-9);
        expect(found.high).toBeGreaterThanOrEqual(found.value - 1e-9);
        expect(found.low).toBeGreaterThanOrEqual(Math.min(...given));
        expect(found.high).toBeLessThanOrEqual(Math.max(...given));
      }),
    );
  });
});

describe("an interval over conversations", () => {
  /** So many conversations of 40 to 120 questions, whose means differ by themselves around 0. */
  function drawn(conversations: number, seed: number) {
    const draw = seeded(seed);
    const normal = () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
    return Array.from({ length: conversations }, (_, at) => {
      const own = 0.1 * normal();
      return Array.from({ length: 40 + Math.floor(80 * draw()) }, () => ({
        of: `c${at}`,
        value: own + 0.5 * normal(),
      }));
    }).flat();
  }

  function coverage(conversations: number, isClustered: boolean): number {
    const seeds = Array.from({ length: 200 }, (_, seed) => seed);
    const covered = seeds.filter((seed) => {
      const values = drawn(conversations, seed + 1);
      const clusters = isClustered ? clustersOf(values.map(({ of }) => of)) : null;
      const found = bootstrapMean(
        values.map(({ value }) => value),
        { seed },
        clusters,
      );
      return found !== null && found.low <= 0 && 0 <= found.high;
    });
    return covered.length / seeds.length;
  }

  it.each(someOf([LEAST_CONVERSATIONS, 10, 30], 1))(
    "of %i covers in about 95 %, where one over questions does not",
    (conversations) => {
      expect(coverage(conversations, true)).toBeGreaterThanOrEqual(0.89);
      expect(coverage(conversations, true)).toBeLessThan(1);
      expect(coverage(conversations, false)).toBeLessThan(0.8);
    },
  );

  it("leaves out less on either side, the fewer conversations there are", () => {
    // Φ(−√(10 ÷ 9) · 2.262) and Φ(−√(100 ÷ 99) · 1.984).
    expect(tailOf(10)).toBeCloseTo(0.00855, 4);
    expect(tailOf(100)).toBeCloseTo(0.0231, 4);
  });
});
