import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { schedule } from "../../../src/core/published/clustering.js";

describe("schedule (Alg. 5)", () => {
  it("runs what shares the first step of its path back to back, larger groups first, longer paths first in a group", () => {
    expect(schedule([[1], [0, 2], [0, 1, 5], [2, 0], [0], [2, 1, 1]])).toEqual([2, 1, 4, 5, 3, 0]);
  });

  it("gives every input index once, with each group in one piece", () => {
    const paths = fc.array(fc.array(fc.nat({ max: 3 }), { maxLength: 4 }), { maxLength: 20 });
    fc.assert(
      fc.property(paths, (searchPaths) => {
        const order = schedule(searchPaths);
        expect([...order].sort((a, b) => a - b)).toEqual(searchPaths.map((_, input) => input));
        const firsts = order.flatMap((input) => searchPaths[input]?.[0] ?? []);
        const runs = firsts.filter((first, at) => first !== firsts[at - 1]);
        expect(runs).toHaveLength(new Set(runs).size);
      }),
    );
  });
});
