/** An evaluation cannot be run as requested; the message says what to change. */
export class EvaluationError extends Error {
  override readonly name = "EvaluationError";
}
