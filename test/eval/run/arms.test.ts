import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ARM_POLICIES } from "../../../src/eval/base/run-record.js";
import { armsOf, DEFAULT_ARMS } from "../../../src/eval/run/arms.js";

describe("armsOf", () => {
  it("multiplies only what makes another prompt", () => {
    const arms = armsOf({
      layouts: ["single", "conversation"],
      ks: [20],
      policies: ["readme", "prefix-exact", "carry-over"],
      retentions: ["keep", "auto"],
      budgetRatio: 1.5,
      budgetOf: "all",
    });
    expect(arms.map(({ id }) => id)).toEqual([
      "single k=20 readme",
      "single k=20 prefix-exact",
      "single k=20 carry-over ≤1.5× on average",
      "conversation k=20 readme",
      "conversation k=20 prefix-exact keep",
      "conversation k=20 prefix-exact auto",
      "conversation k=20 carry-over ≤1.5× on average keep",
      "conversation k=20 carry-over ≤1.5× on average auto",
    ]);
    expect(arms[0]).toMatchObject({ policy: "readme", retention: null, budgetRatio: null });
    expect(arms.at(-1)).toMatchObject({ policy: "carry-over", retention: "auto", budgetRatio: 1.5 });
  });

  it("names every arm differently, whatever is asked for", () => {
    const some = <T>(...of: readonly T[]) => fc.subarray([...of], { minLength: 1 });
    const choices = fc.record({
      layouts: some("single" as const, "conversation" as const),
      ks: some(1, 10, 20, 100),
      policies: some(...ARM_POLICIES),
      retentions: some("keep" as const, "volatile" as const, "ephemeral" as const, "auto" as const),
      budgetRatio: fc.double({ min: 1, max: 100, noNaN: true }),
      budgetOf: fc.constantFrom("each" as const, "all" as const),
    });
    fc.assert(
      fc.property(choices, (chosen) => {
        const arms = armsOf(chosen);
        expect(new Set(arms.map(({ id }) => id)).size).toBe(arms.length);
        expect(new Set(arms.map(({ id: _id, ...arm }) => JSON.stringify(arm))).size).toBe(arms.length);
        for (const policy of chosen.policies) expect(arms.some((arm) => arm.policy === policy)).toBe(true);
      }),
    );
    expect(armsOf(DEFAULT_ARMS)).toHaveLength(10);
  });
});
