/** An evaluation cannot be run as it was asked for; the message says what to put right. */
export class EvaluationError extends Error {
  override readonly name = "EvaluationError";
}
