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
  /** Tokens of a block's line; null if it must not be carried: superseded, forgotten, or in this prompt already. */
  readonly tokensOf: (label: Label) => number | null;
}

/** The blocks of one request that are not in its prompt yet. */
export interface OrderingRequest {
  /** Digest of the prompt before the blocks; only sequences served behind the same bytes can be reused. */
  readonly anchor: Digest;
  /** Distinct blocks in relevance order, best first. */
  readonly retrieved: readonly RetrievedBlock[];
  /** Null: no blocks but the retrieved ones. */
  readonly carrying: CarryAllowance | null;
}

/** An order of the blocks. How much of it should be cached follows from the served sequences, for every policy. */
export interface Ordering {
  /** Every retrieved block exactly once, and the carried blocks. */
  readonly labels: readonly Label[];
  /** The carried blocks: not retrieved, kept in their cached place so that the blocks behind them hit. */
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
