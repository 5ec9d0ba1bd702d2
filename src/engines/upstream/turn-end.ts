/** How a turn ended: with an answer, with calls that the client is to answer, cut by the limit of its tokens, or withheld. */
export type TurnEnd = "answer" | "calls" | "length" | "refusal";

/** What a turn holds, as far as its end depends on it. */
export interface TurnContent {
  /** Calls of the client's functions; a provider's own tools are none. */
  readonly hasCalls: boolean;
  /** A refusal in place of an answer. */
  readonly hasRefusal?: boolean;
}

/** Reasons of both APIs for an answer that was cut: OpenAI's, Mistral's, Anthropic's. */
const CUT = new Set<unknown>(["length", "model_length", "max_tokens", "model_context_window_exceeded"]);
const WITHHELD = new Set<unknown>(["content_filter", "refusal"]);

/**
 * A turn's end, by its content: engines say `stop` or `end_turn` beside calls, say nothing, or say words of their own. Only that a turn
 * was cut or withheld is the engine's to say, also where it holds calls: more of them may have been to come.
 *
 * @param reason OpenAI's `finish_reason` or Anthropic's `stop_reason`
 */
export function turnEndOf(reason: unknown, { hasCalls, hasRefusal = false }: TurnContent): TurnEnd {
  if (CUT.has(reason)) return "length";
  if (WITHHELD.has(reason)) return "refusal";
  if (hasCalls) return "calls";
  return hasRefusal ? "refusal" : "answer";
}
