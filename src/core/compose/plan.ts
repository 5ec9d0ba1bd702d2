import type { RetentionChoice } from "../conversation/retention.js";
import type { Label, MemoryId } from "../text/ids.js";
import type { PlanDepth } from "./depth.js";

/** Where a memory's text stands in the prompt. */
export type Placement =
  /** In this turn, in the part that an engine should have cached. */
  | "cached_prefix"
  /** In this turn, to be computed. */
  | "new"
  /** In this turn, not asked for: it is cached, and what follows it is only cached behind it. */
  | "carried_over"
  /** In an earlier turn of this very prompt. */
  | "earlier_turn";

/** One memory that was asked for, or carried over. */
export interface PlacedMemory {
  readonly label: Label;
  readonly memoryId: MemoryId;
  readonly placement: Placement;
  /** Place in the retrieval order, from 0; null for one that was carried over. */
  readonly rank: number | null;
  /** Labels in this prompt whose text this one takes the place of. */
  readonly replaces: readonly Label[];
}

/** What a composition should cost. Token figures are estimates of the configured token counter. */
export interface Plan extends RetentionChoice {
  readonly layout: "single" | "conversation";
  /** Name of the ordering policy; `batch` where the order was planned before. */
  readonly policy: string;
  /** Prompt tokens that an engine should find in its prefix cache. */
  readonly expectedCachedTokens: number;
  /** Prompt tokens that it has to compute. */
  readonly uncachedTokens: number;
  readonly totalTokens: number;
  /** Node of the context index whose prefix was used, as child positions; empty for none. */
  readonly searchPath: readonly number[];
  /** Whether this turn's blocks stand in another order than the retrieval's. */
  readonly orderChanged: boolean;
  /** How many messages from the front are byte for byte those of an earlier prompt of this conversation. */
  readonly stableMessages: number;
  /** Messages of the conversation that the prompt has and the client did not send; absent for none. */
  readonly addedMessages?: number;
  /** How much of what was retrieved the prompt holds; absent where all of it, and nobody asked for less. */
  readonly depth?: PlanDepth;
}
