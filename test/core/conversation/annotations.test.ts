import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WITHDRAWN } from "../../../src/core/blocks/context-block.js";
import { retained, standingOf } from "../../../src/core/conversation/conversation.js";
import {
  type AnnotationSettings,
  bestAgain,
  DEFAULT_ANNOTATIONS,
  DEFAULT_WORDING,
  rankingAnnotations,
  wantsLabels,
} from "../../../src/core/conversation/injecting.js";
import {
  type Annotation,
  type Injection,
  isEmptyInjection,
  labelsIn,
  NOTHING_INJECTED,
  withoutLabels,
} from "../../../src/core/prompt/section.js";
import type { Label } from "../../../src/core/text/ids.js";
import { label, labels } from "../context-index/served-sequences.js";

const FIFTEEN = labels(...Array.from({ length: 15 }, (_, n) => n + 1));

const ranking = (
  of: { ranked: readonly Label[]; earlier?: readonly Label[]; placed?: readonly Label[] },
  settings: Partial<AnnotationSettings> = {},
) => {
  const earlier = new Set(of.earlier ?? []);
  const placed = of.placed ?? of.ranked.filter((each) => !earlier.has(each));
  return rankingAnnotations({ ranked: of.ranked, earlier, placed }, { ...DEFAULT_ANNOTATIONS, ...settings });
};

describe("the ranking", () => {
  it("is not there where nothing moved and nothing was given earlier", () => {
    expect(ranking({ ranked: labels(3, 1, 2) })).toEqual([]);
    expect(ranking({ ranked: [] })).toEqual([]);
  });

  it("has the most relevant blocks, best first, new and earlier together", () => {
    const [moved] = ranking({ ranked: FIFTEEN, placed: FIFTEEN.toReversed() });
    expect(moved).toEqual({ kind: "order", template: DEFAULT_WORDING.order, labels: FIFTEEN.slice(0, 4) });
    const [earlier] = ranking({ ranked: labels(9, 2, 7, 4), earlier: labels(9, 7) });
    expect(earlier).toEqual({ kind: "order", template: DEFAULT_WORDING.order, labels: labels(9, 2, 7) });
  });

  it.each([
    ["auto", [1, 3, 3, 4, 8, 8]],
    ["all", [1, 2, 3, 15, 40, 100]],
    [0.5, [1, 1, 2, 8, 20, 50]],
    [7, [1, 2, 3, 7, 7, 7]],
  ] as const)("names %s labels of 1, 2, 3, 15, 40 and 100", (topN, named) => {
    const counts = [1, 2, 3, 15, 40, 100].map((count, at) => {
      const ranked = labels(...Array.from({ length: count }, (_, n) => n + 1));
      const [line] = ranking({ ranked, earlier: ranked }, { topN });
      return [line?.kind === "order" ? line.labels.length : 0, at === 1 && topN === "auto" ? 2 : named[at]];
    });
    for (const [is, should] of counts) expect(is).toBe(should);
  });

  it("is not there when it is switched off", () => {
    expect(ranking({ ranked: labels(1, 2), placed: labels(2, 1) }, { order: false })).toEqual([]);
  });

  it("never has more labels than the paper's two lines, and loses no rank among those that it has", () => {
    const property = fc.property(
      fc.uniqueArray(fc.nat(60), { maxLength: 40 }),
      fc.nat(40),
      fc.integer({ min: 1, max: 20 }),
      (all, cut, topN) => {
        const ranked = all as unknown as Label[];
        const earlier = ranked.filter((_, at) => (at * 7) % 40 < cut);
        const count = (annotations: readonly Annotation[]) =>
          annotations.reduce((sum, each) => sum + ("labels" in each ? each.labels.length : 0), 0);
        const [one] = ranking({ ranked, earlier }, { topN });
        const two = ranking({ ranked, earlier }, { topN, location: true });
        const fresh = ranked.length - earlier.length;
        expect(count(one === undefined ? [] : [one])).toBeLessThanOrEqual(count(two) + Math.min(topN, fresh));
        if (one?.kind === "order") expect(one.labels).toEqual(ranked.slice(0, topN));
      },
    );
    fc.assert(property);
  });
});

describe("the paper's two annotations", () => {
  it("are a ranking of this turn's blocks and a reference to the earlier ones", () => {
    const asked = { ranked: labels(9, 2, 7, 4), earlier: labels(9, 7), placed: labels(4, 2) };
    expect(ranking(asked, { location: true, topN: 1 })).toEqual([
      { kind: "order", template: DEFAULT_WORDING.order, labels: labels(2) },
      { kind: "location", template: DEFAULT_WORDING.location, labels: labels(9) },
    ]);
    expect(ranking(asked, { location: true, order: false })).toMatchObject([{ kind: "location" }]);
    expect(ranking({ ranked: labels(1, 2) }, { location: true })).toEqual([]);
  });
});

describe("the best of blocks without labels", () => {
  const best = (ranked: readonly Label[], placed: readonly Label[], newest: readonly Label[] = [], order = true) =>
    bestAgain(ranked, placed, { newest: new Set(newest) }, { ...DEFAULT_ANNOTATIONS, order });

  it("is given again where another stands first of a turn's, and where it stands earlier", () => {
    expect(best(labels(1, 2), labels(2, 1))).toEqual([{ kind: "best", labels: [1] }]);
    expect(best(labels(1, 2), labels(2))).toEqual([{ kind: "best", labels: [1] }]);
    expect(best(labels(1, 2), labels(2), labels(1))).toEqual([{ kind: "best", labels: [1] }]);
    expect(best(labels(1, 2), [])).toEqual([{ kind: "best", labels: [1] }]);
  });

  it("is not where it stands first, where the section before has it and nothing is new, without any, and switched off", () => {
    expect(best(labels(1, 2), labels(1, 2))).toEqual([]);
    expect(best(labels(1, 2), [], labels(3, 1))).toEqual([]);
    expect(best([], labels(2))).toEqual([]);
    expect(best(labels(1, 2), labels(2, 1), [], false)).toEqual([]);
  });
});

describe("a caller's settings", () => {
  it("ask for labels where its lines name so many of them, those of earlier turns, or in its own words", () => {
    const { wording } = DEFAULT_ANNOTATIONS;
    const asking = [
      { topN: 5 },
      { topN: "all" },
      { location: true },
      { wording: { ...wording, order: "Read {labels}." } },
    ] as const;
    for (const own of asking) expect(wantsLabels({ ...DEFAULT_ANNOTATIONS, ...own })).toBe(true);
    for (const own of [{}, { order: false }] as const)
      expect(wantsLabels({ ...DEFAULT_ANNOTATIONS, ...own })).toBe(false);
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

  it("are named by the labels of their texts, and leave with them", () => {
    expect(labelsIn(quoting)).toEqual(new Set([1, 2, 3, 4, 5, 6]));
    expect(withoutLabels(quoting, new Set(labels(2, 3, 6)))).toEqual({
      blocks: [{ label: 5, replaces: [1] }],
      annotations: [
        { kind: "outdated", labels: [1] },
        { kind: "best", labels: [5] },
      ],
    });
    expect(withoutLabels(quoting, labelsIn(quoting))).toEqual(NOTHING_INJECTED);
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

  it("say that a text is over also where the block that replaced it was forgotten", () => {
    const { replaced } = standingOf([withoutLabels(quoting, new Set(labels(5)))]);
    expect([replaced.get(label(1)), replaced.get(label(2))]).toEqual([WITHDRAWN, WITHDRAWN]);
  });
});

describe("an injection", () => {
  const injection: Injection = {
    blocks: [
      { label: label(5), replaces: labels(1, 2) },
      { label: label(6), replaces: [] },
    ],
    annotations: [
      { kind: "restored", label: label(3), replaces: labels(4) },
      { kind: "order", template: "{labels}", labels: labels(6, 5) },
      { kind: "location", template: "{labels}", labels: labels(3) },
    ],
  };

  it("names every label that occurs in it in any role", () => {
    expect(labelsIn(injection)).toEqual(new Set([1, 2, 3, 4, 5, 6]));
  });

  it("loses blocks and every reference to them when labels are forgotten, and lines left with nothing to say", () => {
    expect(withoutLabels(injection, new Set(labels(2, 3, 6)))).toEqual({
      blocks: [{ label: 5, replaces: [1] }],
      annotations: [{ kind: "order", template: "{labels}", labels: [5] }],
    });
    expect(withoutLabels(injection, new Set(labels(4))).annotations[0]).toEqual({
      kind: "restored",
      label: 3,
      replaces: [],
    });
    expect(withoutLabels(injection, new Set([...labelsIn(injection)]))).toEqual(NOTHING_INJECTED);
  });

  it("stays as it is where it holds none of the forgotten labels", () => {
    expect(withoutLabels(injection, new Set(labels(77)))).toEqual(injection);
  });

  it("is empty only without blocks and annotations", () => {
    expect(isEmptyInjection(NOTHING_INJECTED)).toBe(true);
    expect(isEmptyInjection({ ...injection, annotations: [] })).toBe(false);
    expect(isEmptyInjection({ ...injection, blocks: [] })).toBe(false);
  });
});
