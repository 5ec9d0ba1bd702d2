import type { RetentionChoice } from "../conversation/retention.js";
import type { Label, MemoryId } from "../text/ids.js";
import type { PlanDepth } from "./depth.js";

/** Where a memory's text is in the prompt. */
export type Placement =
  /** In this turn, in the part that an engine should have cached. */
  | "cached_prefix"
  /** In this turn, not cached. */
  | "new"
  /** In this turn, not retrieved: cached, and kept so that the blocks behind it hit. */
  | "carried_over"
  /** In an earlier turn of this prompt. */
  | "earlier_turn";

/** One memory that was retrieved or carried over. */
export interface PlacedMemory {
  readonly label: Label;
  readonly memoryId: MemoryId;
  readonly placement: Placement;
  /** Rank in the retrieval order, from 0; null for a carried memory. */
  readonly rank: number | null;
  /** Labels in this prompt that this block supersedes. */
  readonly replaces: readonly Label[];
}

/** The expected cost of a composition. Tokens are estimates of the configured counter. */
export interface Plan extends RetentionChoice {
  readonly layout: "single" | "conversation";
  /** Name of the ordering policy; `batch` if a batch plan fixed the order. */
  readonly policy: string;
  /** Prompt tokens expected in the engine's prefix cache. */
  readonly expectedCachedTokens: number;
  /** Prompt tokens that the engine has to compute. */
  readonly uncachedTokens: number;
  readonly totalTokens: number;
  /** Node of the context index whose prefix is reused, as child positions; empty for none. */
  readonly searchPath: readonly number[];
  /** Whether the order of this turn's blocks differs from the retrieval order. */
  readonly orderChanged: boolean;
  /** How many leading messages are byte for byte those of an earlier prompt of this conversation. */
  readonly stableMessages: number;
  /** Messages of the conversation that the prompt has and the client did not send; absent for none. */
  readonly addedMessages?: number;
  /** How many of the retrieved blocks the prompt contains; absent if all of them and no depth was asked for. */
  readonly depth?: PlanDepth;
}
