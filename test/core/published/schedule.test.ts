import { describe, expect, it } from "vitest";
import { schedule } from "../../../src/core/published/clustering.js";

describe("schedule (Alg. 5)", () => {
  it("runs what shares the first step of its path back to back, larger groups first, longer paths first in a group", () => {
    expect(schedule([[1], [0, 2], [0, 1, 5], [2, 0], [0], [2, 1, 1]])).toEqual([2, 1, 4, 5, 3, 0]);
  });
});
