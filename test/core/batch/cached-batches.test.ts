import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BatchRequest, KeyKnowledge } from "../../../src/core/batch/batch-plan.js";
import { ContextIndex } from "../../../src/core/cache/context-index.js";
import { DEFAULT_BATCH_PLANNER, planBatch } from "../../../src/core/compose/policies.js";
import { orderAfter, prefixExact } from "../../../src/core/ordering/ordering.js";
import { searchPrefix, usablePaths } from "../../../src/core/ordering/prefix-search.js";
import type { Label } from "../../../src/core/text/ids.js";
import {
  anyEvents,
  anyLife,
  anyWanted,
  blocksOf,
  HERE,
  label,
  labels,
  ServedSequences,
} from "../cache/served-sequences.js";

const TOKENS = [0, 7, 3, 11, 5, 2, 13, 4, 9] as const;
const block = (n: number) => ({ label: label(n), tokens: TOKENS[n] ?? 1 });

/** Requests of one key for the blocks from 1 to 8, of which an index knows some. */
const anyRequests: fc.Arbitrary<BatchRequest[]> = fc.array(
  fc
    .uniqueArray(fc.integer({ min: 1, max: 8 }), { maxLength: 7 })
    .map((set) => ({ key: "ana", blocks: set.map(block) })),
  { minLength: 1, maxLength: 12 },
);

const labelsOf = ({ blocks }: BatchRequest) => blocks.map((each) => each.label);

function knownIn({ index, known }: ServedSequences, requests: readonly BatchRequest[]): KeyKnowledge {
  const wanted = requests.map((request) => new Set(labelsOf(request)));
  return {
    key: "ana",
    cached: usablePaths(index.root(HERE), wanted).map(({ labels: path }) => path),
    recent: [...known.recent.sets()].map((set) => [...set]),
  };
}

const planned = (requests: readonly BatchRequest[], knowledge: KeyKnowledge) =>
  planBatch(requests, DEFAULT_BATCH_PLANNER, [knowledge]).requests;

function hit(served: ServedSequences, order: readonly Label[]): number {
  const held = served.index.heldBlocks(HERE, order);
  served.serve(HERE, order);
  return order.slice(0, held).reduce((sum, each) => sum + block(each).tokens, 0);
}

/** Tokens of the longest cached prefix of each request. */
function cachedBefore({ index }: ServedSequences, requests: readonly BatchRequest[]): number {
  const found = requests.map(({ blocks }) =>
    searchPrefix(index.root(HERE), new Map(blocks.map((each) => [each.label, each.tokens]))),
  );
  return found.reduce((sum, { tokens }) => sum + tokens, 0);
}

function batchOf(...sets: readonly (readonly number[])[]): BatchRequest[] {
  return sets.map((set) => ({ key: "ana", blocks: set.map(block) }));
}

const cachedOnly = (...cached: readonly Label[][]): KeyKnowledge => ({ key: "ana", cached, recent: [] });

describe("a batch whose scope has cached prefixes", () => {
  it("executes each request with its own blocks, and hits no less than was cached of them before, in a cache that evicts nothing", () => {
    const noLess = fc.property(anyLife, anyRequests, (life, requests) => {
      const lived = () => ServedSequences.composedBy(prefixExact, life);
      const least = cachedBefore(lived(), requests);
      const plan = planned(requests, knownIn(lived(), requests));
      expect(plan.map(({ request }) => request).sort((a, b) => a - b)).toEqual([...requests.keys()]);
      for (const { request, order } of plan)
        expect([...order].sort()).toEqual(labelsOf(requests[request] as BatchRequest).sort());
      const served = lived();
      expect(plan.reduce((sum, { order }) => sum + hit(served, order), 0)).toBeGreaterThanOrEqual(least);
      // As the service does: what the plan leaves open is ordered when the request's turn comes.
      const live = lived();
      let tokens = 0;
      for (const { request, order, shared } of plan) {
        const { blocks: retrieved = [] } = requests[request] ?? {};
        const asked = { anchor: HERE, retrieved, carrying: null };
        const front = order.slice(0, shared);
        const behind =
          shared === 0 ? prefixExact.order(asked, live.known).labels : orderAfter(front, asked, live.known);
        tokens += hit(live, [...front, ...behind]);
      }
      expect(tokens).toBeGreaterThanOrEqual(least);
    });
    fc.assert(noLess, { numRuns: 1_500 });
  });

  it("orders a batch of one as prefix-exact does", () => {
    const alone = fc.property(anyLife, anyWanted, (life, wanted) => {
      const served = ServedSequences.composedBy(prefixExact, life);
      const requests = [{ key: "ana", blocks: blocksOf(wanted) }];
      const { labels: order } = prefixExact.order(
        { anchor: HERE, retrieved: blocksOf(wanted), carrying: null },
        served.known,
      );
      expect(planned(requests, knownIn(served, requests))).toMatchObject([{ order, shared: 0 }]);
    });
    fc.assert(alone, { numRuns: 1_000 });
  });

  it("gives a common prefix of search paths to prompts with a common prefix only", () => {
    const alike = fc.property(anyLife, anyRequests, (life, requests) => {
      const plan = planned(requests, knownIn(ServedSequences.composedBy(prefixExact, life), requests));
      for (const one of plan) {
        for (const other of plan) {
          const path = common(one.searchPath, other.searchPath);
          if (path > 0 && one !== other) expect(common(one.order, other.order)).toBeGreaterThanOrEqual(1);
        }
      }
    });
    fc.assert(alike, { numRuns: 300 });
  });

  it("does not use what another key has cached", () => {
    const knowledge = [{ ...cachedOnly(labels(2, 1)), key: "ben" }];
    const [plan] = planBatch(batchOf([1, 2]), DEFAULT_BATCH_PLANNER, knowledge).requests;
    expect(plan?.order).toEqual(labels(1, 2));
  });

  function common(one: readonly number[], other: readonly number[]): number {
    const differs = one.findIndex((each, at) => other[at] !== each);
    return differs < 0 ? one.length : differs;
  }
});

describe("what requests can use of an index", () => {
  it("is what a search finds for each of them, and no block that none of them wants", () => {
    const enough = fc.property(anyEvents, fc.array(anyWanted, { minLength: 1, maxLength: 4 }), (events, requests) => {
      const { index } = ServedSequences.after(events);
      const wantedSets = requests.map((wanted) => new Set(wanted.keys()));
      const usable = usablePaths(index.root(HERE), wantedSets).map(({ labels: path }) => path);
      for (const sequence of usable) {
        expect(requests.some((wanted) => sequence.every((each) => wanted.has(each)))).toBe(true);
      }
      const rebuilt = new ContextIndex([], 1, 1_000);
      for (const [at, sequence] of usable.entries()) rebuilt.insert(HERE, sequence, at + 1);
      for (const wanted of requests) {
        const found = searchPrefix(index.root(HERE), wanted);
        expect(searchPrefix(rebuilt.root(HERE), wanted)).toMatchObject({ labels: found.labels, tokens: found.tokens });
      }
    });
    fc.assert(enough, { numRuns: 1_000 });
  });
});
