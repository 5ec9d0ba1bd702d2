import type { CacheReport } from "../context-index/cache-report.js";
import type { Turn } from "../conversation/turn.js";
import type { RequestId } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";
import type { Plan } from "./plan.js";

/** A turn with the plain messages that it added; null if they were erased because they quoted a forgotten memory. */
export interface SpokenTurn {
  readonly turn: Turn;
  readonly given: readonly ChatMessage[] | null;
}

/** An earlier prompt, as far as it can be rebuilt from stored rows. */
export interface StoredPrompt {
  /** Null if the request's id was reassigned to a later one. */
  readonly requestId: RequestId | null;
  /** The turns of its path, first to last; the last one is its own. */
  readonly turns: readonly SpokenTurn[];
  /** The instructions at its head; null if they were erased. */
  readonly head: readonly ChatMessage[] | null;
  /** When it was composed, in milliseconds since the epoch. */
  readonly at: number;
  /** The plan's figures; null if the request's id was reassigned to a later one. */
  readonly plan: Pick<Plan, "expectedCachedTokens" | "totalTokens" | "epoch"> | null;
  /** Whether the engine reported its eviction. */
  readonly evicted: boolean;
  /** The engine's report; null if it did not say how many tokens were cached. */
  readonly report: CacheReport | null;
}

/** The turn that a prompt was composed for. */
export function ownTurn({ turns }: Pick<StoredPrompt, "turns">): Turn {
  const last = turns.at(-1);
  if (last === undefined) throw new Error("a composed prompt has a turn of its own");
  return last.turn;
}
