import type { CacheReport } from "../cache/cache-report.js";
import type { FreshStartReason, RetentionChoice, SpokenTurn, Turn } from "../conversation/conversation.js";
import type { EpochReason } from "../conversation/epoch.js";
import type { ChangedLine } from "../conversation/instructions.js";
import type { ToolChanges } from "../prompt/tools.js";
import type { Label, MemoryId, RequestId } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";
import type { PlanDepth } from "./depth.js";
import type { Miss } from "./miss.js";

export type Placement =
  /** In this turn, expected in the prefix cache. */
  | "cached_prefix"
  /** In this turn, not cached. */
  | "new"
  /** Not retrieved; kept so that the blocks after it hit. */
  | "carried_over"
  | "earlier_turn";

export interface PlacedMemory {
  readonly label: Label;
  readonly memoryId: MemoryId;
  readonly placement: Placement;
  /** Retrieval rank from 0; null for a carried memory. */
  readonly rank: number | null;
  /** Labels in this prompt that this block supersedes. */
  readonly replaces: readonly Label[];
}

/** The place of a prompt in its epoch. */
export interface PlanEpoch {
  readonly began: EpochReason | null;
  readonly prompts: number;
  readonly leftOut: number;
  /** Tokens of the memories in front of the messages, … */
  readonly headTokens: number;
  /** … and of those that were not retrieved. */
  readonly carriedTokens: number;
}

export interface Plan extends Pick<RetentionChoice, "retention" | "freshStart"> {
  readonly layout: "single" | "conversation";
  /** `batch` if a batch plan placed blocks. */
  readonly policy: string;
  /** All tokens are estimates of the configured counter. */
  readonly expectedCachedTokens: number;
  readonly uncachedTokens: number;
  readonly totalTokens: number;
  /** Null: only the new turn's own text is computed. */
  readonly miss: Miss | null;
  readonly searchPath: readonly number[];
  /** Whether this turn's blocks are not in retrieval order. */
  readonly orderChanged: boolean;
  /** How many leading messages equal those of an earlier prompt byte for byte. */
  readonly stableMessages: number;
  /** The first line of the instructions that differs from the conversation's newest prompt. Absent: none, or unknown. */
  readonly instructionChange?: ChangedLine;
  /** Absent: the conversation's tools are the newest prompt's. */
  readonly toolChanges?: ToolChanges;
  /** Absent: it does not start afresh. */
  readonly freshStartReason?: FreshStartReason;
  /** Messages that the client did not send. */
  readonly addedMessages?: number;
  readonly epoch?: PlanEpoch;
  /** Absent if all retrieved blocks are in it and no depth was requested. */
  readonly depth?: PlanDepth;
}

export interface StoredPrompt {
  readonly requestId: RequestId;
  /** First to last; the last one is its own. */
  readonly turns: readonly SpokenTurn[];
  readonly head: readonly ChatMessage[];
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly plan: Pick<Plan, "expectedCachedTokens" | "totalTokens" | "miss" | "toolChanges" | "instructionChange">;
  /** Tokens that the engine counts besides the prompt. */
  readonly besideTokens: number;
  readonly evicted: boolean;
  /** Null if the engine did not say how many tokens were cached. */
  readonly report: CacheReport | null;
}

export function ownTurn({ turns }: Pick<StoredPrompt, "turns">): Turn {
  const last = turns.at(-1);
  if (last === undefined) throw new Error("a composed prompt has a turn of its own");
  return last.turn;
}
