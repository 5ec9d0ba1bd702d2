import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contextDistance, distanceWhereShared, positionsOf } from "../../../src/core/published/cluster-tree.js";
import { labels } from "../context-index/served-sequences.js";
import { anyContext, plainDistance } from "./clustered-contexts.js";

describe("context distance", () => {
  it("is 0 between equal contexts and only between those", () => {
    expect(contextDistance(labels(1, 2, 3), labels(1, 2, 3))).toBe(0);
    expect(contextDistance(labels(1, 2, 3), labels(1, 3, 2))).toBeGreaterThan(0);
  });

  it("is 1 where no block is shared, also for empty contexts", () => {
    for (const [a, b] of [
      [[1, 2], [3]],
      [[], [1]],
      [[], []],
    ] as const) {
      expect(contextDistance(labels(...a), labels(...b))).toBe(1);
      expect(distanceWhereShared(positionsOf(labels(...a)), labels(...b))).toBeNull();
    }
  });

  it("weighs the mean shift of shared blocks with alpha", () => {
    expect(contextDistance(labels(1, 2), labels(2, 1), 0.01)).toBe(0.01);
    expect(contextDistance(labels(1, 2, 3), labels(3, 4, 5), 0.01)).toBeCloseTo(1 - 1 / 3 + 0.02, 12);
  });

  it("can exceed 1 where the only shared block stands far away, which is not the same as sharing none", () => {
    const long = labels(...Array.from({ length: 100 }, (_, n) => n + 1));
    const shifted = [...labels(...Array.from({ length: 99 }, (_, n) => n + 201)), ...labels(1)];
    expect(contextDistance(long, shifted)).toBeCloseTo(1 - 0.01 + 0.099, 12);
  });

  it("is eq. 1, and the same in both directions", () => {
    const both = fc.property(anyContext, anyContext, (a, b) => {
      expect(contextDistance(a, b)).toBe(plainDistance(a, b) ?? 1);
      expect(contextDistance(b, a)).toBe(contextDistance(a, b));
    });
    fc.assert(both, { numRuns: 500 });
  });

  it("refuses a context that lists a block twice", () => {
    expect(() => positionsOf(labels(1, 2, 1))).toThrow("twice");
  });
});
