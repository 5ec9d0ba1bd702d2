import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  orderAfter,
  orderForReuse,
  plannedOrder,
  prefixExact,
  RecentRetrievals,
  retrieval,
  sorted,
} from "../../../src/core/ordering/ordering.js";
import { searchPrefix, walkGreedily } from "../../../src/core/ordering/prefix-search.js";
import type { Label, TurnId } from "../../../src/core/text/ids.js";
import {
  anyAnchor,
  anyEvents,
  anyLife,
  anyRequest,
  anySequence,
  anyWanted,
  HERE,
  label,
  labels,
  ServedSequences,
} from "../cache/served-sequences.js";

it("orders without knowledge of the scope are by label, or as the blocks were retrieved, whatever was served", () => {
  const byLabel = fc.property(anyLife, anyRequest, (life, request) => {
    const { known } = ServedSequences.composedBy(sorted, life);
    const retrieved = request.retrieved.map(({ label }) => label);
    expect(sorted.order(request, known).labels).toEqual([...retrieved].sort((a, b) => a - b));
    expect(retrieval.order(request, known).labels).toEqual(retrieved);
  });
  fc.assert(byLabel);
});

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

const textOf = (label: Label) => `text of ${label}`;

describe("an order by a batch plan", () => {
  it("places the planned blocks first, and the others as prefix-exact does behind them", () => {
    const behind = fc.property(anyLife, anyRequest, anySequence, (life, request, plan) => {
      const { known } = ServedSequences.composedBy(prefixExact, life);
      const retrieved = request.retrieved.map(({ label }) => label);
      const front = plan.filter((label) => retrieved.includes(label));
      const { labels, carried } = plannedOrder(plan.map(textOf), textOf).order(request, known);
      expect([...labels].sort()).toEqual([...retrieved].sort());
      expect(carried.size).toBe(0);
      expect(labels).toEqual(
        front.length === 0
          ? prefixExact.order(request, known).labels
          : [...front, ...orderAfter(front, request, known)],
      );
    });
    fc.assert(behind, { numRuns: 500 });
  });

  it("follows what was served behind the planned blocks, the most relevant at each step", () => {
    let followed = 0;
    const behind = fc.property(anyLife, anyRequest, fc.nat(3), (life, request, planned) => {
      const { known } = ServedSequences.composedBy(prefixExact, life);
      const retrieved = request.retrieved.map(({ label }) => label);
      const sequence = prefixExact.order(request, known).labels.slice(0, planned);
      const labels = orderAfter(sequence, request, known);
      for (const label of labels) {
        const left = retrieved.filter((other) => !sequence.includes(other));
        const isServed = (other: Label) =>
          known.index.heldBlocks(request.anchor, [...sequence, other]) > sequence.length;
        const next = left.find(isServed);
        if (next === undefined) break;
        expect(label).toBe(next);
        sequence.push(label);
        followed++;
      }
    });
    fc.assert(behind, { numRuns: 500 });
    expect(followed).toBeGreaterThan(0);
  });
});

it("a greedy walk takes at each step the first wanted block that some served sequence goes on with", () => {
  const greedy = fc.property(anyEvents, anyAnchor, anySequence, (events, anchor, wanted) => {
    const served = ServedSequences.after(events);
    const path: Label[] = [];
    for (;;) {
      const next = wanted.find((block) => !path.includes(block) && served.holds(anchor, [...path, block]));
      if (next === undefined) break;
      path.push(next);
    }
    expect(walkGreedily(served.index.root(anchor), new Set(wanted)).labels).toEqual(path);
  });
  fc.assert(greedy, { numRuns: 500 });
});
