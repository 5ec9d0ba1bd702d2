/** Reads an engine's answer while it is passed on. */
export interface AnswerObserver {
  /** Takes an answer, or one event of a streamed one; ignores anything else. `at`: the clock's milliseconds. */
  take(given: unknown, at: number): void;
  /** Arrival of the first token, in the clock's milliseconds; null where there was none, or the answer was not streamed. */
  readonly firstTokenAt: number | null;
  /** What holds the last token counts; null where none came. */
  readonly reported: unknown;
  /** The answer's text, once it is complete; null where it is not, or is too long. */
  readonly text: string | null;
  /** Whether the last event taken is the answer's end. */
  readonly isOver: boolean;
}
