/*
 * ordering: in which order a request's blocks stand. One contract, {@link OrderingPolicy}, and the policies that are ours: prefix-exact and
 * carry-over, beside retrieval and sorted, which order by nothing known.
 * Enters: a request's blocks with their tokens, what may be carried, what the scope knows. Leaves: an order, and which blocks are carried.
 */

import type { ContextIndex } from "../context-index/context-index.js";
import type { Spared } from "../cost/engine-model.js";
import type { Digest, Label, TurnId } from "../text/ids.js";
import type { RecentRetrievals } from "./recent-retrievals.js";

/** A block that a request asks for, with the tokens of its line. */
export interface RetrievedBlock {
  readonly label: Label;
  readonly tokens: number;
}

/** What a request allows beside the blocks that it retrieved. */
export interface CarryAllowance {
  /** Tokens of blocks that were not retrieved and may stand in the prompt, above 0. */
  readonly tokens: number;
  /** What this prompt's own limit leaves it, `tokens` or more; null: it has none. */
  readonly ownTokens: number | null;
  /** What it shares with later prompts, `tokens` or more: what is in the memory bank; null: it draws on none. */
  readonly bankedTokens: number | null;
  /** Tokens of all blocks that could be asked for: where they fit in the prompt, carrying one crowds out no other. */
  readonly knownTokens: number;
  /** What the engine is spared by a path, see {@link Spared}. */
  readonly spared: Spared;
  /** Tokens of a block's line; null for one that must not be carried: superseded, forgotten, or in this prompt already. */
  readonly tokensOf: (label: Label) => number | null;
}

/** The blocks of one request that are not in its prompt yet. */
export interface OrderingRequest {
  /** Digest of everything that will stand before the blocks; only what was served behind the same bytes can be reused. */
  readonly anchor: Digest;
  /** Distinct blocks in relevance order, best first. */
  readonly retrieved: readonly RetrievedBlock[];
  /** Null: nothing but what was retrieved. */
  readonly carrying: CarryAllowance | null;
}

/** An order for the blocks. What of it should be cached follows from the served sequences, whatever the policy. */
export interface Ordering {
  /** Every retrieved block exactly once, and the carried ones. */
  readonly labels: readonly Label[];
  /** Blocks among them that were not retrieved: they stand where they are cached, so that what follows them hits too. */
  readonly carried: ReadonlySet<Label>;
  /** Node that the policy matched, as child positions; empty for none. */
  readonly searchPath: readonly number[];
}

export const NOTHING_CARRIED: ReadonlySet<Label> = new Set();

/** What a scope knows that every policy may order by. */
export interface ScopeKnowledge {
  /** What was served and should be cached. */
  readonly index: ContextIndex;
  /** What was asked for lately, whatever the policy. */
  readonly recent: RecentRetrievals;
}

/**
 * Orders the blocks of a request by what the scope knows. `order` is pure: it reads and changes nothing. `K`: what the policy reads, which
 * is more than {@link ScopeKnowledge} for one that keeps state of its own. Every policy passes
 * `test/core/ordering/ordering.suite.ts`.
 */
export interface OrderingPolicy<in K extends ScopeKnowledge = ScopeKnowledge> {
  readonly name: string;
  order(request: OrderingRequest, known: K): Ordering;
  /**
   * Orders what stands behind blocks that were sent already, those of `request` that are not in `front`. Absent: `order` does, as if they
   * were all.
   */
  orderBehind?(front: readonly Label[], request: OrderingRequest, known: K): readonly Label[];
  /** Takes in what was ordered, after it was; absent: the policy needs nothing but what every request leaves behind. */
  learn?(request: OrderingRequest, ordering: Ordering, known: K, turn: TurnId): void;
}
