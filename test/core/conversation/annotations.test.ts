import { describe, expect, it } from "vitest";
import { WITHDRAWN } from "../../../src/core/blocks/context-block.js";
import { retained, standingOf } from "../../../src/core/conversation/conversation.js";
import { bestAgain, paperAnnotations, sectionsHaveLabels } from "../../../src/core/conversation/injecting.js";
import { type Injection, labelsIn } from "../../../src/core/prompt/section.js";
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
    const bare = { blocks: [{ label: label(1), replaces: [] }] };
    const labelled = { blocks: [{ label: label(1), replaces: [], isLabelled: true as const }] };
    for (const wanted of [true, false, "paper"] as const) {
      expect(sectionsHaveLabels([], wanted)).toBe(wanted === "paper");
      expect(sectionsHaveLabels([bare], wanted)).toBe(false);
      expect(sectionsHaveLabels([labelled], wanted)).toBe(true);
    }
  });
});

describe("the best of blocks without labels", () => {
  const best = (ranked: readonly Label[], placed: readonly Label[], newest: readonly Label[] = []) =>
    bestAgain(ranked, placed, { newest: new Set(newest) });

  it("is given again where another stands first of a turn's, and where it stands earlier", () => {
    expect(best(labels(1, 2), labels(2, 1))).toEqual([{ kind: "best", labels: [1] }]);
    expect(best(labels(1, 2), labels(2))).toEqual([{ kind: "best", labels: [1] }]);
    expect(best(labels(1, 2), labels(2), labels(1))).toEqual([{ kind: "best", labels: [1] }]);
    expect(best(labels(1, 2), [])).toEqual([{ kind: "best", labels: [1] }]);
  });

  it("is not where it stands first, where the section before has it and nothing is new, and without any", () => {
    expect(best(labels(1, 2), labels(1, 2))).toEqual([]);
    expect(best(labels(1, 2), [], labels(3, 1))).toEqual([]);
    expect(best([], labels(2))).toEqual([]);
  });
});

describe("lines that quote", () => {
  const quoting: Injection = {
    blocks: [{ label: label(5), replaces: labels(1, 2) }],
    annotations: [
      { kind: "outdated", labels: labels(1) },
      { kind: "outdated", labels: labels(2) },
      { kind: "restored", label: label(3), replaces: labels(4), isQuoted: true },
      { kind: "outdated", labels: labels(6) },
      { kind: "best", labels: labels(5) },
    ],
  };

  it("are named by the labels of their texts", () => {
    expect(labelsIn(quoting)).toEqual(new Set([1, 2, 3, 4, 5, 6]));
  });

  it("stay under every retention where they correct, with the blocks that replace", () => {
    const { blocks, annotations } = quoting;
    expect(retained(quoting, "keep")).toEqual(quoting);
    for (const retention of ["volatile", "ephemeral"] as const)
      expect(retained(quoting, retention)).toEqual({ blocks, annotations: annotations.slice(0, -1) });
    const { replaced } = standingOf([retained(quoting, "ephemeral")]);
    expect(replaced).toEqual(
      new Map([
        [1, 5],
        [2, 5],
        [4, 3],
        [6, WITHDRAWN],
      ]),
    );
  });
});
