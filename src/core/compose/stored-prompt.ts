import type { CacheReport } from "../context-index/cache-report.js";
import type { Turn } from "../conversation/turn.js";
import type { RequestId } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";
import type { Plan } from "./plan.js";

/** A turn with the plain messages that it added; null once they were erased, because they quoted a forgotten memory. */
export interface SpokenTurn {
  readonly turn: Turn;
  readonly given: readonly ChatMessage[] | null;
}

/** A prompt that was composed before, as far as it can be built again from what is stored. */
export interface StoredPrompt {
  /** Null where the request's name was given to a later one. */
  readonly requestId: RequestId | null;
  /** The turns of its path, first to last; the last one is its own. */
  readonly turns: readonly SpokenTurn[];
  /** The instructions at its head; null once they were erased. */
  readonly head: readonly ChatMessage[] | null;
  /** When it was composed, in milliseconds since the epoch. */
  readonly at: number;
  /** What its turns and the index came to; null where the request's name was given to a later one. */
  readonly plan: Pick<Plan, "expectedCachedTokens" | "totalTokens"> | null;
  /** Whether the engine said that it dropped it. */
  readonly evicted: boolean;
  /** What the engine reported of it; null where it did not say how much was cached. */
  readonly report: CacheReport | null;
}

/** The turn that a prompt was composed for. */
export function ownTurn({ turns }: Pick<StoredPrompt, "turns">): Turn {
  const last = turns.at(-1);
  if (last === undefined) throw new Error("a composed prompt has a turn of its own");
  return last.turn;
}
