import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type EngineModel, sparedBy } from "../../../src/core/cost/engine-model.js";
import { carryOver } from "../../../src/core/ordering/carry-over.js";
import {
  type CarryAllowance,
  type Ordering,
  type OrderingRequest,
  prefixExact,
} from "../../../src/core/ordering/ordering.js";
import type { Digest, Label } from "../../../src/core/text/ids.js";
import { indexEntries } from "../cache/index-entries.js";
import { allowance, anyLife, anyRequest, HERE, label, labels, ServedSequences } from "../cache/served-sequences.js";

/** Blocks that were not retrieved have five tokens each. */
const CARRIABLE = new Map(labels(1, 2, 3, 4, 5, 6).map((block) => [block, 5]));
/** More is known than fits in any prompt here, so that carrying has its full price. */
const MANY = 1_000_000;
/** The prices of a full allowance, of all that is banked and of a path that all took, and the shortage from which they are paid in full: shares of what was retrieved. */
const FULL_PRICE = 0.25;
const BANKED_PRICE = 0.8;
const CROWDED_PRICE = 0.2;
const SCARCE_BY = 0.1;

type Allowing = OrderingRequest & { readonly carrying: CarryAllowance };

function having(...sequences: readonly (readonly number[])[]): ServedSequences {
  const served = new ServedSequences();
  for (const sequence of sequences) served.serve(HERE, labels(...sequence));
  return served;
}

function asking(wanted: readonly (readonly [number, number])[], carrying: CarryAllowance | null): OrderingRequest {
  return { anchor: HERE, retrieved: wanted.map(([n, tokens]) => ({ label: label(n), tokens })), carrying };
}

const ONE_AND_THREE = [
  [1, 5],
  [3, 5],
] as const;

/** What a path of these blocks costs that carries so many tokens. */
function plainPrice(served: ServedSequences, request: Allowing, path: readonly Label[], carried: number): number {
  const { tokens, ownTokens, bankedTokens, knownTokens } = request.carrying;
  const retrieved = sumOf(request.retrieved.map((block) => block.tokens));
  const scarcity = Math.min(1, Math.max(0, (knownTokens - retrieved - tokens) / (SCARCE_BY * retrieved)));
  const crowding = CROWDED_PRICE * Math.sqrt(shareThrough(served, request.anchor, path));
  const perToken = Math.max(
    ownTokens === null ? 0 : FULL_PRICE / ownTokens,
    bankedTokens === null ? 0 : BANKED_PRICE / bankedTokens,
  );
  return scarcity * retrieved * (perToken * carried + crowding);
}

/** Share of the requests behind an anchor that went through all of a path: as the shortest node that holds it counts them. */
function shareThrough({ index }: ServedSequences, anchor: Digest, path: readonly Label[]): number {
  const root = index.root(anchor);
  const under = new Set(root === undefined ? [] : [root.row.id]);
  for (let node = root?.staler ?? null; node !== null; node = node.staler) under.add(node.row.id);
  const holding = indexEntries(index, 10_000)
    .filter(({ id, labels: held }) => under.has(id) && path.every((block, at) => held[at] === block))
    .sort((a, b) => a.labels.length - b.labels.length);
  return (holding[0]?.uses ?? 0) / (root?.row.uses ?? 1);
}

/** The most that any held sequence is worth, from its front. By brute force. */
function mostWorth(served: ServedSequences, request: Allowing): number {
  const { carrying } = request;
  const wanted = new Map(request.retrieved.map((block) => [block.label, block.tokens]));
  let most = 0;
  for (const sequence of served.held) {
    if (sequence.anchor !== request.anchor) continue;
    let [saved, carried] = [0, 0];
    for (const [at, block] of sequence.labels.entries()) {
      const tokens = wanted.get(block);
      if (tokens !== undefined) saved += tokens;
      else carried += carrying.tokensOf(block) ?? Number.POSITIVE_INFINITY;
      if (carried > carrying.tokens) break;
      if (tokens === undefined) continue;
      most = Math.max(most, saved - plainPrice(served, request, sequence.labels.slice(0, at + 1), carried));
    }
  }
  return most;
}

function sumOf(tokens: Iterable<number>): number {
  let sum = 0;
  for (const own of tokens) sum += own;
  return sum;
}

/** Tokens of the retrieved blocks that should be cached in this order, less the price of the path that they are on. */
function worthOf(served: ServedSequences, request: Allowing, { labels: ordered, carried }: Ordering): number {
  const path = ordered.slice(0, served.index.heldBlocks(request.anchor, ordered));
  const cached = new Set(path);
  const saved = sumOf(request.retrieved.map((block) => (cached.has(block.label) ? block.tokens : 0)));
  const extra = sumOf([...carried].map((block) => request.carrying.tokensOf(block) ?? Number.NaN));
  // Started afresh, it is on a held path by luck only and nothing was paid for.
  return Math.max(0, saved - plainPrice(served, request, path, extra));
}

describe("carry-over", () => {
  it("keeps a cached block that was not retrieved, so that those behind it hit", () => {
    const { known } = having([1, 2, 3, 4]);
    const request = asking([...ONE_AND_THREE, [9, 5]], allowance(5, MANY, CARRIABLE));
    const ordering = { labels: [1, 2, 3, 9], carried: new Set([2]), searchPath: [0] };
    expect(carryOver.order(request, known)).toEqual(ordering);
    expect(prefixExact.order(request, known).labels).toEqual([1, 3, 9]);
  });

  it("starts afresh where attention over what it carries takes longer than computing what it saves", () => {
    const { known } = having([1, 2, 3]);
    const model = (perPairMs: number): EngineModel => ({
      cost: { kind: "time", fixedMs: 0, perTokenMs: 1, perPairMs },
      blockTokens: 1,
      minimumPrefixTokens: 0,
    });
    const carrying = (engine: EngineModel) => ({
      ...allowance(100, 0, CARRIABLE),
      spared: sparedBy(engine, { before: 10, retrieved: 6, after: 200 }),
    });
    const wanted = [
      [3, 5],
      [9, 1],
    ] as const;
    const carriedFor = (engine: EngineModel) => carryOver.order(asking(wanted, carrying(engine)), known).carried.size;
    expect(carriedFor(model(0))).toBe(2);
    expect(carriedFor(model(0.1))).toBe(0);
  });

  it("looks at the 512 nodes used last, and starts afresh where none of them helps", () => {
    const afterServing = (others: number) => {
      const served = having([1, 2, 3]);
      for (let n = 0; n < others; n++) served.serve(HERE, labels(100 + n));
      return carryOver.order(asking(ONE_AND_THREE, allowance(5, 0, CARRIABLE)), served.known);
    };
    // The root is one of them.
    expect(afterServing(510)).toMatchObject({ labels: [1, 2, 3], carried: new Set([2]) });
    expect(afterServing(511)).toMatchObject({ labels: [1, 3], carried: new Set() });
  });

  it("is prefix-exact where nothing may be carried", () => {
    const alike = fc.property(anyLife, anyRequest, (life, request) => {
      const { known } = ServedSequences.composedBy(carryOver, life);
      const strict = { ...request, carrying: null };
      expect(carryOver.order(strict, known)).toEqual(prefixExact.order(strict, known));
    });
    fc.assert(alike);
  });

  const anyAllowing = anyRequest.filter(
    (request): request is Allowing => request.carrying !== null && request.retrieved.length > 0,
  );

  it("finds a path worth as much as a look at every served sequence would", () => {
    const worth = fc.property(anyLife, anyAllowing, (life, request) => {
      const served = ServedSequences.composedBy(carryOver, life);
      const found = worthOf(served, request, carryOver.order(request, served.known));
      expect(found).toBeCloseTo(mostWorth(served, request), 9);
    });
    fc.assert(worth, { numRuns: 1_000 });
  });

  it("carries in some of these lives, so that they show something", () => {
    const lives = fc.sample(fc.tuple(anyLife, anyAllowing), { numRuns: 500, seed: 7 });
    const carrying = lives.filter(([life, request]) => {
      const { known } = ServedSequences.composedBy(carryOver, life);
      return carryOver.order(request, known).carried.size > 0;
    });
    expect(carrying.length).toBeGreaterThan(25);
  });
});
