import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contextDistance, positionsOf } from "../../../src/core/published/cluster-tree.js";
import { labels } from "../cache/served-sequences.js";
import { anyContext, plainDistance } from "./clustered-contexts.js";

describe("context distance", () => {
  it("is 0 between equal contexts and only between those", () => {
    expect(contextDistance(labels(1, 2, 3), labels(1, 2, 3))).toBe(0);
    expect(contextDistance(labels(1, 2, 3), labels(1, 3, 2))).toBeGreaterThan(0);
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
