import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HISTORY_NAMES } from "../../../src/core/conversation/epoch.js";
import { ARM_ANNOTATIONS, ARM_POLICIES } from "../../../src/eval/base/run-record.js";
import { armsOf } from "../../../src/eval/run/arms.js";
import { DEFAULT_ARMS } from "./default-arms.js";

const OWN = { annotations: [null], depths: [null] } as const;
const WHOLE = { ...OWN, windows: [null], histories: HISTORY_NAMES, historyRatio: null } as const;

describe("armsOf", () => {
  it("multiplies only what makes another prompt", () => {
    const arms = armsOf({
      layouts: ["single", "conversation"],
      ks: [20],
      policies: ["readme", "prefix-exact", "carry-over"],
      retentions: ["keep", "auto"],
      budgetRatios: [1.5],
      ...WHOLE,
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

  it("has windows of conversations only, and what memprefix makes of them only where it builds the prompts", () => {
    const arms = armsOf({
      layouts: ["single", "conversation"],
      ks: [20],
      policies: ["readme", "last-message", "prefix-exact"],
      retentions: ["keep"],
      budgetRatios: [1.5],
      ...OWN,
      windows: [8, 20],
      histories: ["exact", "extended"],
      historyRatio: 3,
    });
    expect(arms.map(({ id }) => id)).toEqual([
      "single k=20 readme",
      "single k=20 last-message",
      "single k=20 prefix-exact",
      ...[8, 20].flatMap((window) => [
        `conversation k=20 window=${window} readme`,
        `conversation k=20 window=${window} last-message`,
        `conversation k=20 window=${window} prefix-exact keep exact`,
        `conversation k=20 window=${window} prefix-exact keep extended ratio 3`,
      ]),
    ]);
    expect(arms[2]?.window).toBeNull();
    expect(arms[4]).toMatchObject({ retention: null, window: { messages: 8, history: null, ratio: null } });
    expect(arms.at(-2)?.window).toEqual({ messages: 20, history: "exact", ratio: null });
  });

  it("multiplies annotations and budgets, where they make another prompt", () => {
    const ids = (choices: Partial<Parameters<typeof armsOf>[0]>) =>
      armsOf({ ...DEFAULT_ARMS, ks: [20], policies: ["readme", "prefix-exact"], ...choices }).map(({ id }) => id);
    const annotations = [null, ...ARM_ANNOTATIONS];
    expect(ids({ annotations })).toEqual([
      "single k=20 readme",
      "single k=20 prefix-exact",
      "single k=20 prefix-exact annotations=none",
      "single k=20 prefix-exact annotations=paper",
    ]);
    // The search's own order needs no line where nothing stands earlier.
    expect(ids({ policies: ["retrieval"], annotations })).toEqual([
      "single k=20 retrieval",
      "single k=20 retrieval annotations=paper",
    ]);
    expect(ids({ policies: ["carry-over"], budgetRatios: [1.25, 2] })).toEqual([
      "single k=20 carry-over ≤1.25× on average",
      "single k=20 carry-over ≤2× on average",
    ]);
  });

  it("names every arm differently, whatever is asked for", () => {
    const some = <T>(...of: readonly T[]) => fc.subarray([...of], { minLength: 1 });
    const choices = fc.record({
      layouts: some("single" as const, "conversation" as const),
      ks: some(1, 10, 20, 100),
      policies: some(...ARM_POLICIES),
      retentions: some("keep" as const, "volatile" as const, "ephemeral" as const, "auto" as const),
      budgetRatios: fc.uniqueArray(fc.double({ min: 1, max: 100, noNaN: true }), { minLength: 1, maxLength: 3 }),
      annotations: some(null, ...ARM_ANNOTATIONS),
      depths: some(null, { firstBlocks: 5, entropyNats: 1 }, { firstBlocks: 5, entropyNats: 2 }),
      windows: some(null, 1, 8, 20),
      histories: some(...HISTORY_NAMES),
      historyRatio: fc.option(fc.double({ min: 1, max: 100, noNaN: true })),
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
