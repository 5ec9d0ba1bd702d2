/*
 * ordering: the order of a request's blocks. One contract, {@link OrderingPolicy}; memstem's own policies prefix-exact and carry-over; and
 * retrieval and sorted, which use no knowledge of the scope.
 * Enters: a request's blocks with their tokens, the allowance for carried blocks, what the scope knows. Leaves: an order, and which blocks
 * are carried.
 */

import type { RecentRetrievals } from "../blocks/seen-retrievals.js";
import type { ContextIndex } from "../context-index/context-index.js";
import type { Spared } from "../cost/engine-model.js";
import type { Digest, Label, TurnId } from "../text/ids.js";

/** A block that a request retrieved, with the tokens of its line. */
export interface RetrievedBlock {
  readonly label: Label;
  readonly tokens: number;
}

/** The budget for blocks that the request did not retrieve. */
export interface CarryAllowance {
  /** Maximum tokens of carried blocks in the prompt, above 0. */
  readonly tokens: number;
  /** The part of the prompt's own limit that is left, at least `tokens`; null: no limit. */
  readonly ownTokens: number | null;
  /** The memory bank's balance with this prompt's share, at least `tokens`; null: the prompt uses no bank. */
  readonly bankedTokens: number | null;
  /** Tokens of all blocks that could be retrieved: if they fit into the prompt, carrying one displaces no other. */
  readonly knownTokens: number;
  /** What a path spares the engine, see {@link Spared}. */
  readonly spared: Spared;
  /** Tokens of a block's line; null if it must not be carried: superseded, forgotten, a run's, or in this prompt already. */
  readonly tokensOf: (label: Label) => number | null;
}

/** The blocks of one request that are not in its prompt yet. */
export interface OrderingRequest {
  /** Digest of the prompt before the blocks; only sequences served after the same bytes can be reused. */
  readonly anchor: Digest;
  /** Distinct blocks in relevance order, best first. */
  readonly retrieved: readonly RetrievedBlock[];
  /** Null: no blocks but the retrieved ones. */
  readonly carrying: CarryAllowance | null;
  /**
   * How many tokens memstem's own policies must find cached to move blocks: with less they keep relevance order, which needs no ranking.
   * Default: 0, they also move blocks for later requests alone.
   */
  readonly leastHit?: number;
}

/** An order of the blocks. How much of it should be cached follows from the served sequences, for every policy. */
export interface Ordering {
  /** Every retrieved block exactly once, and the carried blocks. */
  readonly labels: readonly Label[];
  /** The carried blocks: not retrieved, kept in their cached place so that the blocks after them hit. */
  readonly carried: ReadonlySet<Label>;
  /** The node that the policy matched, as child positions; empty for none. */
  readonly searchPath: readonly number[];
}

export const NOTHING_CARRIED: ReadonlySet<Label> = new Set();

/** The scope's knowledge that every policy can use. */
export interface ScopeKnowledge {
  /** Served sequences that should be cached. */
  readonly index: ContextIndex;
  /** Block sets of recent requests, of all policies. */
  readonly recent: RecentRetrievals;
}

/**
 * Orders a request's blocks by the scope's knowledge. `order` is pure. `K` is the knowledge that the policy reads: more than
 * {@link ScopeKnowledge} for a policy with state of its own. Every policy passes `test/core/ordering/ordering.suite.ts`.
 */
export interface OrderingPolicy<in K extends ScopeKnowledge = ScopeKnowledge> {
  readonly name: string;
  order(request: OrderingRequest, known: K): Ordering;
  /**
   * Orders the blocks of `request` that are not in `front`, which was sent already. Absent: `order` orders them as if they were the whole
   * request.
   */
  orderBehind?(front: readonly Label[], request: OrderingRequest, known: K): readonly Label[];
  /** Records an order after it was served; absent: the policy has no state of its own. */
  learn?(request: OrderingRequest, ordering: Ordering, known: K, turn: TurnId): void;
}

/** Relevance order, as the memory search returns it: the baseline of every comparison. */
export const retrieval: OrderingPolicy = {
  name: "retrieval",
  order({ retrieved }) {
    return { labels: retrieved.map(({ label }) => label), carried: NOTHING_CARRIED, searchPath: [] };
  },
};

/** By label, oldest block first: the same blocks always have the same order. */
export const sorted: OrderingPolicy = {
  name: "sorted",
  order({ retrieved }) {
    const labels = retrieved.map(({ label }) => label).sort((a, b) => a - b);
    return { labels, carried: NOTHING_CARRIED, searchPath: [] };
  },
};

/**
 * Orders a prompt that extends an earlier one: the earlier blocks keep their places, the request's other blocks follow. A carried block
 * that the request retrieved counts as retrieved. Orders from scratch if the request may no longer carry what the earlier prompt did,
 * because another process drew on the memory bank meanwhile.
 */
export function orderAfter<K extends ScopeKnowledge>(
  before: Ordering,
  policy: OrderingPolicy<K>,
  request: OrderingRequest,
  known: K,
): Ordering {
  const wanted = new Set(request.retrieved.map(({ label }) => label));
  const carried = [...before.carried].filter((label) => !wanted.has(label));
  if (!isAllowed(carried, request)) return policy.order(request, known);
  // Labels can change if the scope was reloaded meanwhile.
  const front = before.labels.filter((label) => wanted.has(label) || before.carried.has(label));
  const placed = new Set(front);
  const rest = request.retrieved.filter(({ label }) => !placed.has(label));
  const following = (): Ordering["labels"] => {
    if (rest.length === 0) return [];
    if (policy.orderBehind !== undefined) return policy.orderBehind(front, request, known);
    return policy.order({ ...request, retrieved: rest, carrying: null }, known).labels;
  };
  return {
    labels: [...front, ...following()],
    carried: new Set(carried),
    searchPath: before.searchPath,
  };
}

function isAllowed(carried: readonly Label[], { carrying }: OrderingRequest): boolean {
  let left = carrying?.tokens ?? 0;
  for (const label of carried) left -= carrying?.tokensOf(label) ?? Number.POSITIVE_INFINITY;
  return left >= 0;
}

/**
 * Aligns a context with a node's prefix (Alg. 2): the context's blocks that the prefix has, in the prefix's order, then the rest in the
 * context's order.
 */
export function alignTo(prefix: readonly Label[], context: readonly Label[]): Label[] {
  if (prefix.length === 0) return [...context];
  const wanted = new Set(context);
  const front = new Set(prefix.filter((label) => wanted.has(label)));
  return [...front, ...context.filter((label) => !front.has(label))];
}

/** The blocks of `a` that are also in `b`, in the order of `a`. */
export function intersectionOf(a: readonly Label[], b: readonly Label[]): Label[] {
  const others = new Set(b);
  return a.filter((label) => others.has(label));
}

/** A key of a set of blocks: equal for contexts with the same blocks in any order, because the index decides the order. */
export function blocksKey(context: readonly number[]): string {
  return Uint32Array.from(context).sort().join();
}
