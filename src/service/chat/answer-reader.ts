import type { ReportedDiagnosis } from "../../engines/adapters/reported-diagnosis.js";

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
  /** The answer's id; null where it has none. */
  readonly id: string | null;
  /**
   * What the provider says of its cache; null where it says nothing.
   *
   * @param wasCompared whether the request named an earlier answer to be compared with
   */
  diagnosis(wasCompared: boolean): ReportedDiagnosis | null;
}
