import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { orderForReuse, prefixExact, RecentRetrievals } from "../../../src/core/ordering/ordering.js";
import { searchPrefix } from "../../../src/core/ordering/prefix-search.js";
import type { TurnId } from "../../../src/core/text/ids.js";
import { anyAnchor, anyEvents, anyWanted, HERE, label, labels, ServedSequences } from "../cache/served-sequences.js";

const inOrder = (...numbers: readonly number[]) => numbers.map((n) => ({ label: label(n), tokens: 5 }));

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

  it("reuses of two served sequences the one that hits, not the one that shares most", () => {
    const served = new ServedSequences();
    for (const sequence of [labels(3, 2, 1, 4), labels(9, 1, 2, 3, 5)]) served.serve(HERE, sequence);
    const { labels: order } = prefixExact.order(
      { anchor: HERE, retrieved: inOrder(1, 2, 3, 5), carrying: null },
      served.known,
    );
    expect(order).toEqual([3, 2, 1, 5]);
  });
});

describe("order for reuse", () => {
  it("puts first what most requests like this one want", () => {
    const recent = new RecentRetrievals([1, 2, 3, 4].map((turn) => ({ turn: turn as TurnId, labels: labels(3, 4) })));
    expect(orderForReuse([], inOrder(1, 2, 3, 4), labels(1, 2, 3, 4), recent)).toEqual([3, 4, 1, 2]);
  });
});
