/** How a turn ended: with an answer, with calls that the client is to answer, cut by the limit of its tokens, or withheld. */
export type TurnEnd = "answer" | "calls" | "length" | "refusal";

/** What a turn holds, as far as its end depends on it. */
export interface TurnContent {
  /** Calls of the client's functions; a provider's own tools are none. */
  readonly hasCalls: boolean;
  /** A refusal in place of an answer. */
  readonly hasRefusal?: boolean;
}

/** Reasons for an answer that was cut: OpenAI's, Mistral's, Anthropic's; gateways pass on those of Gemini, Cohere and TGI. */
const CUT = new Set([
  ...["length", "model_length", "max_tokens", "max_output_tokens", "max_new_tokens", "max_length"],
  "model_context_window_exceeded",
]);
/** … and for one that was withheld: OpenAI's, Anthropic's, Bedrock's, Cohere's, Gemini's. */
const WITHHELD = new Set([
  ...["content_filter", "refusal", "content_filtered", "guardrail_intervened", "error_toxic"],
  ...["safety", "recitation", "blocklist", "prohibited_content", "spii"],
]);

/**
 * A turn's end, by its content: engines say `stop` or `end_turn` beside calls, say nothing, or say words of their own. Only that a turn
 * was cut or withheld is the engine's to say, also where it holds calls: more of them may have been to come.
 *
 * @param reason OpenAI's `finish_reason` or Anthropic's `stop_reason`
 */
export function turnEndOf(reason: unknown, { hasCalls, hasRefusal = false }: TurnContent): TurnEnd {
  // Gemini and Cohere write them in capitals, some gateways with hyphens.
  const name = typeof reason === "string" ? reason.toLowerCase().replaceAll("-", "_") : "";
  if (CUT.has(name)) return "length";
  if (WITHHELD.has(name)) return "refusal";
  if (hasCalls) return "calls";
  return hasRefusal ? "refusal" : "answer";
}
