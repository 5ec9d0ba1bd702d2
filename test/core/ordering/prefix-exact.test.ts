import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  orderForReuse,
  prefixExact,
  RecentRetrievals,
  type RetrievedBlock,
} from "../../../src/core/ordering/ordering.js";
import { searchPrefix } from "../../../src/core/ordering/prefix-search.js";
import type { Label, TurnId } from "../../../src/core/text/ids.js";
import { anyAnchor, anyEvents, anyWanted, HERE, label, labels, ServedSequences } from "../cache/served-sequences.js";

const inOrder = (...numbers: readonly number[]) => numbers.map((n) => ({ label: label(n), tokens: 5 }));

/** What prefix-exact makes of a request for these blocks, and how many of them should be cached. */
function ordered(served: ServedSequences, retrieved: readonly RetrievedBlock[], anchor = HERE) {
  const ordering = prefixExact.order({ anchor, retrieved, carrying: null }, served.known);
  return { ...ordering, cachedBlocks: served.index.heldBlocks(anchor, ordering.labels) };
}

describe("prefix-exact", () => {
  it("finds as many cached tokens as a look at every served sequence would", () => {
    const lives = fc.property(anyEvents, anyAnchor, anyWanted, (events, anchor, wanted) => {
      const served = ServedSequences.after(events);
      const match = searchPrefix(served.index.root(anchor), wanted);
      expect(match.tokens).toBe(served.mostCachedTokens(anchor, wanted));
      expect(match.labels.every((block) => wanted.has(block))).toBe(true);
      expect(match.labels.reduce((sum, block) => sum + (wanted.get(block) ?? 0), 0)).toBe(match.tokens);
    });
    fc.assert(lives, { numRuns: 1_000 });
  });

  it("keeps relevance order where less is cached than the least that is worth a ranking", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    const retrieved = inOrder(9, 2, 7, 1, 8);
    const orderFor = (leastHit: number) =>
      prefixExact.order({ anchor: HERE, retrieved, carrying: null, leastHit }, served.known).labels;
    expect(orderFor(10)).toEqual([1, 2, 9, 7, 8]);
    expect(orderFor(11)).toEqual([9, 2, 7, 1, 8]);
  });

  it.each([
    ["a whole sequence, and what is new after it", [[1, 2, 3]], [9, 1, 2], [1, 2, 9], 2],
    ["as far as every block is wanted", [[1, 2, 3]], [2, 8, 1, 3], [1, 2, 3, 8], 3],
    ["in the order in which it was served", [[1, 2, 3, 4]], [4, 3, 2, 1], [1, 2, 3, 4], 4],
    ["not what is wanted behind a block that is not", [[1, 2, 3, 4]], [9, 3], [9, 3], 0],
    ["nothing where nothing was served", [[1, 2, 3]], [8, 9], [8, 9], 0],
    [
      "of two the one that hits, not the one that shares most",
      [
        [3, 2, 1, 4],
        [9, 1, 2, 3, 5],
      ],
      [1, 2, 3, 5],
      [3, 2, 1, 5],
      3,
    ],
  ])("reuses %s", (_what, sequences, request, order, cachedBlocks) => {
    const served = new ServedSequences();
    for (const sequence of sequences) served.serve(HERE, labels(...sequence));
    expect(ordered(served, inOrder(...request))).toMatchObject({ labels: order, cachedBlocks });
  });

  it("reuses nothing that was served behind another prefix", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    const elsewhere = "other instructions" as typeof HERE;
    const ordering = ordered(served, inOrder(3, 2, 1), elsewhere);
    expect(ordering).toEqual({ labels: [3, 2, 1], carried: new Set(), cachedBlocks: 0, searchPath: [] });
  });
});

/** Blocks of five tokens each. */
const blocks = (...numbers: readonly number[]) => labels(...numbers).map((block) => ({ label: block, tokens: 5 }));
const requests = (...sets: readonly (readonly number[])[]) => remembering(sets.map((set) => labels(...set)));
const setsOf = (recent: RecentRetrievals) => [...recent.sets()];

function remembering(requests: readonly (readonly Label[])[]): RecentRetrievals {
  return new RecentRetrievals(requests.map((asked, at) => ({ turn: (at + 1) as TurnId, labels: asked })));
}

const times = (count: number, set: readonly number[]) => Array.from({ length: count }, () => set);

describe("order for reuse", () => {
  it("puts first what most requests like this one want", () => {
    const recent = requests(...times(4, [3, 4]));
    expect(orderForReuse([], blocks(1, 2, 3, 4), labels(1, 2, 3, 4), recent)).toEqual([3, 4, 1, 2]);
  });

  const anyBlocks = fc.uniqueArray(fc.integer({ min: 1, max: 12 }).map(label), { maxLength: 10 });
  const anyRecent = fc.array(anyBlocks, { maxLength: 20 });

  it("gives back every block once, and the same order each time", () => {
    const anyTokens = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 10, maxLength: 10 });
    const permutes = fc.property(
      anyBlocks,
      fc.nat({ max: 4 }),
      anyTokens,
      anyRecent,
      (asked, inFront, tokens, requested) => {
        const recent = remembering(requested);
        const rest = asked.slice(inFront).map((block, at) => ({ label: block, tokens: tokens[at] ?? 1 }));
        const before = structuredClone([rest, asked, setsOf(recent)]);
        const ordered = orderForReuse(asked.slice(0, inFront), rest, asked, recent);
        expect([...ordered].sort()).toEqual(asked.slice(inFront).sort());
        expect(orderForReuse(asked.slice(0, inFront), rest, asked, recent)).toEqual(ordered);
        expect([rest, asked, setsOf(recent)]).toEqual(before);
      },
    );
    fc.assert(permutes);
  });
});
