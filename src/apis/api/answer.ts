/** Reads an engine's answer while it is forwarded. */
export interface AnswerReader {
  /** Takes an answer, or the data of one event of a streamed one; ignores anything else. */
  take(given: unknown, at: number): void;
  /** Whether an event ended the answer, in APIs that have such events beside `[DONE]`. */
  readonly isOver: boolean;
  /** The whole text; null where there is none, it is incomplete, it calls a tool, or it is too long. */
  readonly text: string | null;
  /** In the clock's milliseconds; null where there was no token, or the answer was not streamed. */
  readonly firstTokenAt: number | null;
  /** What holds token counts, for `readUsage`; null where nothing did. */
  readonly reported: unknown;
  /** The id by which a later request may continue the answer; null where there is none. */
  readonly continuableId?: string | null;
}

/** A longer answer is not written back as a memory. */
export const MAX_ANSWER_CHARACTERS = 100_000;

export class BoundedText {
  #text: string | null = "";

  append(more: unknown): void {
    if (typeof more !== "string" || this.#text === null) return;
    this.#text = this.#text.length + more.length > MAX_ANSWER_CHARACTERS ? null : this.#text + more;
  }

  /** Null where there is none, or it is longer than {@link MAX_ANSWER_CHARACTERS}. */
  get whole(): string | null {
    return this.#text === "" ? null : this.#text;
  }
}

const FAILED = new Set([
  ...["error", "network_error", "insufficient_system_resource", "timeout"],
  ...["abort", "aborted", "cancelled", "canceled", "user_cancel"],
  // A call that the engine could not read.
  ...["function_call_filter", "malformed_function_call", "malformed_tool_use", "malformed_model_output"],
  ...["malformed_response", "unexpected_tool_call", "too_many_tool_calls"],
]);
/** OpenAI's, Anthropic's, Bedrock's, Cohere's, Gemini's and GLM's. */
const WITHHELD = new Set([
  ...["content_filter", "refusal", "content_filtered", "guardrail_intervened", "error_toxic"],
  ...["safety", "recitation", "blocklist", "prohibited_content", "spii", "sensitive", "language"],
  ...["image_safety", "image_prohibited_content", "image_recitation"],
]);

/** Whether an answer that ended for this reason is all that the model said, up to a limit. False without a reason: it did not end. */
export function isWholeText(reason: unknown): boolean {
  const names = reasonsIn(reason);
  return names.length > 0 && !names.some((name) => WITHHELD.has(name) || FAILED.has(name) || name === GOES_ON);
}

/** Anthropic's, of a turn that the client should continue. */
const GOES_ON = "pause_turn";

/**
 * Gemini and Cohere write names in capitals, some gateways with hyphens or in camel case; Gemini's OpenAI endpoint writes two:
 * `content_filter: RECITATION`.
 */
function reasonsIn(reason: unknown): readonly string[] {
  if (typeof reason !== "string") return [];
  const names =
    reason
      .replace(/([a-z])([A-Z])/g, "$1_$2")
      .toLowerCase()
      .replaceAll("-", "_")
      .match(/\w+/g) ?? [];
  return names.map((name) => name.replace(/^(?:finish_|stop_)?reason_/, ""));
}
