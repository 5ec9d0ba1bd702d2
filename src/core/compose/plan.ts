import type { CacheReport } from "../cache/cache-report.js";
import type { FreshStartReason, RetentionChoice, SpokenTurn, Turn } from "../conversation/conversation.js";
import type { EpochReason } from "../conversation/epoch.js";
import type { Label, MemoryId, RequestId } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";
import type { PlanDepth } from "./depth.js";
import type { Miss } from "./miss.js";

/** Where a memory's text is in the prompt. */
export type Placement =
  /** In this turn, in the part that an engine should have cached. */
  | "cached_prefix"
  /** In this turn, not cached. */
  | "new"
  /** In this turn, not retrieved: cached, and kept so that the blocks after it hit. */
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

/** The place of a window's prompt in its epoch. */
export interface PlanEpoch {
  /** Why the epoch began with this prompt; null: it continues one. */
  readonly began: EpochReason | null;
  /** How many prompts the epoch has, this one included. */
  readonly prompts: number;
  /** How many of the client's messages memprefix left out. */
  readonly leftOut: number;
  /** Tokens of the memories that this prompt put in front of the messages, … */
  readonly headTokens: number;
  /** … and of those among them that were not retrieved. */
  readonly carriedTokens: number;
}

/** The expected cost of a composition. Tokens are estimates of the configured counter. */
export interface Plan extends Pick<RetentionChoice, "retention" | "freshStart"> {
  readonly layout: "single" | "conversation";
  /** Name of the ordering policy; `batch` if a batch plan placed blocks. */
  readonly policy: string;
  /** Prompt tokens expected in the engine's prefix cache. */
  readonly expectedCachedTokens: number;
  /** Prompt tokens that the engine has to compute. */
  readonly uncachedTokens: number;
  readonly totalTokens: number;
  /** What is computed beyond the new turn's own text, and why; null: nothing. */
  readonly miss: Miss | null;
  /** Node of the context index whose prefix is reused, as child positions; empty for none. */
  readonly searchPath: readonly number[];
  /** Whether the order of this turn's blocks differs from the retrieval order. */
  readonly orderChanged: boolean;
  /** How many leading messages are byte for byte those of an earlier prompt of this conversation. */
  readonly stableMessages: number;
  /** Absent: it does not start afresh. */
  readonly freshStartReason?: FreshStartReason;
  /** Messages of the conversation that the prompt has and the client did not send; absent for none. */
  readonly addedMessages?: number;
  /** The prompt's place in its epoch; absent where its history was not cut. */
  readonly epoch?: PlanEpoch;
  /** How many of the retrieved blocks the prompt contains; absent if all of them and no depth was asked for. */
  readonly depth?: PlanDepth;
}

/** An earlier prompt, as far as it can be rebuilt from stored rows. */
export interface StoredPrompt {
  readonly requestId: RequestId;
  /** The turns of its path, first to last; the last one is its own. */
  readonly turns: readonly SpokenTurn[];
  /** The instructions at its head. */
  readonly head: readonly ChatMessage[];
  /** When it was composed, in milliseconds since the epoch. */
  readonly at: number;
  readonly plan: Pick<Plan, "expectedCachedTokens" | "totalTokens" | "miss">;
  /** Tokens that the engine counts besides it. */
  readonly besideTokens: number;
  /** Whether the engine reported its eviction. */
  readonly evicted: boolean;
  /** The engine's report; null if it did not say how many tokens were cached. */
  readonly report: CacheReport | null;
}

export function ownTurn({ turns }: Pick<StoredPrompt, "turns">): Turn {
  const last = turns.at(-1);
  if (last === undefined) throw new Error("a composed prompt has a turn of its own");
  return last.turn;
}
