import { describe, expect, it } from "vitest";
import { bestAgain, paperAnnotations, sectionsHaveLabels } from "../../../src/core/conversation/injecting.js";
import type { Label } from "../../../src/core/text/ids.js";
import { label, labels } from "../cache/served-sequences.js";

describe("ContextPilot's annotations", () => {
  it("refer to each block that was given earlier, and rank this turn's where they moved", () => {
    const asked = [labels(9, 2, 7, 4), new Set(labels(9, 7))] as const;
    const references = [
      { kind: "location", labels: [9], after: 0 },
      { kind: "location", labels: [7], after: 1 },
    ];
    expect(paperAnnotations(...asked, labels(4, 2))).toEqual([...references, { kind: "order", labels: [2, 4] }]);
    expect(paperAnnotations(...asked, labels(2, 4))).toEqual(references);
    expect(paperAnnotations(labels(3, 1, 2), new Set(), labels(3, 1, 2))).toEqual([]);
    expect(paperAnnotations([], new Set(), [])).toEqual([]);
  });

  it("alone give blocks labels, where a conversation has none without", () => {
    const bare = { blocks: [{ label: label(1) }] };
    const labelled = { blocks: [{ label: label(1), isLabelled: true as const }] };
    for (const wanted of [true, false, "paper"] as const) {
      expect(sectionsHaveLabels([], wanted)).toBe(wanted === "paper");
      expect(sectionsHaveLabels([bare], wanted)).toBe(false);
      expect(sectionsHaveLabels([labelled], wanted)).toBe(true);
    }
  });
});

describe("the best of blocks without labels", () => {
  const best = (one: number | null, placed: readonly Label[], newest: readonly Label[] = []) =>
    bestAgain(one === null ? null : label(one), placed, { newest: new Set(newest) });

  it("is not where it stands first, where the section before has it and nothing is new, and without any", () => {
    expect(best(1, labels(1, 2))).toEqual([]);
    expect(best(1, [], labels(3, 1))).toEqual([]);
    expect(best(null, labels(2))).toEqual([]);
  });
});
