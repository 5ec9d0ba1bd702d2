import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mostEntropy } from "../../../src/core/compose/depth.js";

const ROUNDING = 1e-9;

/** A distribution over a small vocabulary, the likeliest token first; some tokens never come. */
const anyDistribution = fc
  .array(fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constant(0)), { minLength: 1, maxLength: 40 })
  .filter((weights) => weights.some((weight) => weight > 1e-6))
  .map((weights) => {
    const sum = weights.reduce((all, weight) => all + weight, 0);
    return weights.map((weight) => weight / sum).toSorted((a, b) => b - a);
  });

function entropyOf(distribution: readonly number[]): number {
  return distribution.reduce((nats, p) => nats - (p > 0 ? p * Math.log(p) : 0), 0);
}

describe("the entropy of a token's distribution", () => {
  it("is known where all of it is listed", () => {
    const even = [0.25, 0.25, 0.25, 0.25].map(Math.log);
    expect(mostEntropy(even, 4)).toBeCloseTo(Math.log(4), 12);
    expect(mostEntropy([0], 4)).toBe(0);
    expect(mostEntropy([0, -9999, Number.NEGATIVE_INFINITY], 3)).toBe(0);
  });

  it("is at most this, whatever part of the distribution is listed", () => {
    fc.assert(
      fc.property(anyDistribution, fc.integer({ min: 1, max: 40 }), (distribution, top) => {
        const entropy = entropyOf(distribution);
        const most = mostEntropy(distribution.slice(0, top).map(Math.log), distribution.length);
        expect(most).toBeGreaterThanOrEqual(entropy - ROUNDING);
        expect(most).toBeLessThanOrEqual(Math.log(distribution.length) + ROUNDING);
      }),
    );
  });

  it.each([[[]], [[Number.NaN]], [[0, 0]], [[1]], [[-9999]], [[Number.POSITIVE_INFINITY]]])(
    "is unknown where %j cannot be its logarithms",
    (listed) => {
      expect(mostEntropy(listed)).toBeNull();
    },
  );
});
