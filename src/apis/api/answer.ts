import { text } from "../../core/text/json.js";

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

/** OpenAI's, Anthropic's, Mistral's, Cohere's, Gemini's and Text Generation Inference's, also in capitals. */
const WHOLE: ReadonlySet<string> = new Set([
  ...["stop", "stop_sequence", "end_turn", "eos", "eos_token", "complete"],
  ...["length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"],
]);

/** Whether an answer that ended for this reason is all that the model said, up to a limit. */
export function isWholeText(reason: unknown): boolean {
  return WHOLE.has(text(reason).toLowerCase());
}
