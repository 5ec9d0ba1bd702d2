import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_RETENTION, RETENTION_NAMES } from "../../../src/core/index.js";
import { ARM_ANNOTATIONS, ARM_POLICIES } from "../../../src/eval/base/run-record.js";
import { type ArmChoices, armsOf, historySent } from "../../../src/eval/run/arms.js";

const ONE: ArmChoices = {
  layouts: ["single"],
  ks: [20],
  policies: ["readme", "prefix-exact"],
  annotations: [null],
  depths: [null],
  retentions: [DEFAULT_RETENTION],
  windows: [null],
};

describe("armsOf", () => {
  it.each<[string, Partial<ArmChoices>, string[]]>([
    [
      "retentions of composed conversations",
      { layouts: ["single", "conversation"], retentions: ["keep", "auto"] },
      [
        ...["single k=20 readme", "single k=20 prefix-exact", "conversation k=20 readme"],
        ...["conversation k=20 prefix-exact keep", "conversation k=20 prefix-exact auto"],
      ],
    ],
    [
      "windows of conversations",
      { layouts: ["single", "conversation"], windows: [8, 20] },
      [
        ...["single k=20 readme", "single k=20 prefix-exact"],
        ...["conversation k=20 window=8 readme", "conversation k=20 window=8 prefix-exact auto"],
        ...["conversation k=20 window=20 readme", "conversation k=20 window=20 prefix-exact auto"],
      ],
    ],
    [
      "annotations of composed prompts",
      { annotations: [null, ...ARM_ANNOTATIONS] },
      [
        ...["single k=20 readme", "single k=20 prefix-exact"],
        ...["single k=20 prefix-exact annotations=none", "single k=20 prefix-exact annotations=paper"],
      ],
    ],
    [
      "no annotations but the paper's of single prompts in search order",
      { policies: ["retrieval"], annotations: [null, ...ARM_ANNOTATIONS] },
      ["single k=20 retrieval", "single k=20 retrieval annotations=paper"],
    ],
  ])("multiplies only what makes another prompt: %s", (_what, choices, ids) => {
    expect(armsOf({ ...ONE, ...choices }).map(({ id }) => id)).toEqual(ids);
  });

  it("names every arm differently, whatever is asked for", () => {
    const some = <T>(...of: readonly T[]) => fc.subarray([...of], { minLength: 1 });
    const choices = fc.record({
      layouts: some("single" as const, "conversation" as const),
      ks: some(1, 10, 20, 100),
      policies: some(...ARM_POLICIES),
      retentions: some(...RETENTION_NAMES),
      annotations: some(null, ...ARM_ANNOTATIONS),
      depths: some(null, { firstBlocks: 5, entropyNats: 1 }, { firstBlocks: 5, entropyNats: 2 }),
      windows: some(null, 1, 8, 20),
    });
    fc.assert(
      fc.property(choices, (chosen) => {
        const arms = armsOf(chosen);
        expect(new Set(arms.map(({ id }) => id)).size).toBe(arms.length);
        expect(new Set(arms.map(({ id: _id, ...arm }) => JSON.stringify(arm))).size).toBe(arms.length);
        for (const policy of chosen.policies) expect(arms.some((arm) => arm.policy === policy)).toBe(true);
      }),
    );
  });
});

describe("historySent", () => {
  const history = ["a", "b", "c", "d"].map((content) => ({ role: "user", content }));

  it.each([
    ["conversation", null, "abcd"],
    ["conversation", 1, ""],
    ["conversation", 3, "cd"],
    ["conversation", 6, "abcd"],
    ["single", null, ""],
  ] as const)("of a %s with window %s is %j", (layout, window, sent) => {
    const messages = historySent(history, { layout, window });
    expect(messages.map(({ content }) => content).join("")).toBe(sent);
  });
});
