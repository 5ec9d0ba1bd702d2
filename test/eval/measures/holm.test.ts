import { describe, expect, it } from "vitest";
import { seeded, studentTails } from "../../../src/eval/measures/bootstrap.js";
import { holm } from "../../../src/eval/measures/paired-difference.js";

describe("holm", () => {
  it("multiplies the smallest by how many there are, the next by one less, and never falls", () => {
    expect(holm([0.01, 0.04, 0.03, 0.005])).toEqual([0.03, 0.06, 0.06, 0.02]);
    expect(holm([0.9, null, 0.6])).toEqual([1, null, 1]);
    expect(holm([])).toEqual([]);
  });

  it("rejects any of ten true hypotheses in 5 % of families at most", () => {
    const draw = seeded(7);
    const families = Array.from({ length: 4_000 }, () => holm(Array.from({ length: 10 }, () => draw())));
    const wrong = families.filter((family) => family.some((p) => p !== null && p < 0.05)).length / families.length;
    expect(wrong).toBeGreaterThan(0.035);
    expect(wrong).toBeLessThan(0.06);
  });
});

describe("studentTails", () => {
  it.each([
    [2.5706, 5],
    [2.2281, 10],
    [-1.9842, 99],
    [1.96, 100_000],
  ])("is 0.05 at %d of %d degrees of freedom, as tables have it", (t, degrees) => {
    expect(Math.abs(studentTails(t, degrees) - 0.05)).toBeLessThan(0.001);
  });
});
