import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Digest, Label } from "../../src/core/ids.js";
import type { Ordering, OrderingPolicy, OrderingRequest } from "../../src/core/ordering.js";
import { anyAnchor, anyEvents, anyWanted, HERE, type IndexEvent, label, ServedSequences } from "./served-sequences.js";

/** Behaviours that a policy leaves out by its nature → why. */
export type OrderingSkips = Readonly<Record<string, string>>;

const anyRequest: fc.Arbitrary<OrderingRequest> = fc.record({
  anchor: anyAnchor,
  retrieved: anyWanted.map((wanted) => [...wanted].map(([wantedLabel, tokens]) => ({ label: wantedLabel, tokens }))),
});

/** The behaviour of every ordering policy. A skipped behaviour states why in its title. */
export function describeOrderingPolicy(policy: OrderingPolicy, skips: OrderingSkips = {}): void {
  const behaves = (title: string, holds: (ordering: Ordering, request: OrderingRequest, at: ServedSequences) => void) =>
    behavesAfter(title, (events, request) => {
      const served = ServedSequences.after(events);
      holds(policy.order(request, served.index), request, served);
    });
  const behavesAfter = (title: string, holds: (events: IndexEvent[], request: OrderingRequest) => void) => {
    const reason = skips[title];
    it.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (skipped: ${reason})`, () => {
      fc.assert(fc.property(anyEvents, anyRequest, holds));
    });
  };

  describe(`ordering policy ${policy.name}`, () => {
    behaves("gives back every retrieved block once and nothing else", (ordering, { retrieved }) => {
      const ascending = (blocks: readonly Label[]) => [...blocks].sort((a, b) => a - b);
      expect(ascending(ordering.labels)).toEqual(ascending(retrieved.map((block) => block.label)));
    });

    behaves("counts as cached only what was served behind the same anchor and not evicted", (ordering, request, at) => {
      const cached = ordering.labels.slice(0, ordering.cachedBlocks);
      expect(cached).toHaveLength(ordering.cachedBlocks);
      if (cached.length > 0) expect(at.holds(request.anchor, cached)).toBe(true);
    });

    behaves("counts the tokens of exactly the blocks that it counts as cached", (ordering, { retrieved }) => {
      const tokens = new Map(retrieved.map((block) => [block.label, block.tokens]));
      const cached = ordering.labels.slice(0, ordering.cachedBlocks);
      expect(ordering.cachedTokens).toBe(cached.reduce((sum, block) => sum + (tokens.get(block) ?? 0), 0));
    });

    behavesAfter("leaves the index as it is", (events, request) => {
      const { index } = ServedSequences.after(events);
      index.drain();
      const before = index.entries(1_000);
      policy.order(request, index);
      expect(index.entries(1_000)).toEqual(before);
      expect(index.drain()).toEqual({ upserted: [], removed: [] });
    });

    behavesAfter("gives the same order for the same request and index", (events, request) => {
      const { index } = ServedSequences.after(events);
      const first = policy.order(request, index);
      expect(policy.order(request, index)).toEqual(first);
      expect(policy.order(request, ServedSequences.after(events).index)).toEqual(first);
    });

    it("leaves the retrieval order alone where nothing was served", () => {
      const retrieved = [5, 2, 9].map((n) => ({ label: label(n), tokens: 3 }));
      const ordering = policy.order({ anchor: HERE, retrieved }, new ServedSequences().index);
      expect(ordering).toEqual({ labels: [5, 2, 9], cachedBlocks: 0, cachedTokens: 0, searchPath: [] });
    });

    it("orders nothing into nothing", () => {
      const served = new ServedSequences();
      served.serve(HERE, [label(1)]);
      for (const anchor of [HERE, "never served" as Digest]) {
        const ordering = policy.order({ anchor, retrieved: [] }, served.index);
        expect(ordering).toEqual({ labels: [], cachedBlocks: 0, cachedTokens: 0, searchPath: [] });
      }
    });
  });
}
