/** What an engine's answer says, read while it is passed on. */
export interface AnswerReader {
  /** Takes an answer, or the data of one event of a streamed one; ignores anything else. */
  take(given: unknown, at: number): void;
  /** Whether an event ended the answer, where the format has such events beside `[DONE]`. */
  readonly isOver: boolean;
  /** The whole text of the answer; null where there is none, it is incomplete, or too long. */
  readonly text: string | null;
  /** Arrival of the first token, in the clock's milliseconds; null where there was none, or the answer was not streamed. */
  readonly firstTokenAt: number | null;
  /** What holds token counts, for `readUsage`; null where nothing did. */
  readonly reported: unknown;
}

/** Most characters of an answer that is written back as a memory; a longer one is not. */
export const MAX_ANSWER_CHARACTERS = 100_000;

/** An answer's text, as its pieces come. */
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
