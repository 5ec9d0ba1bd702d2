/** Why the embedded engine failed. */
export type EmbeddedEngineErrorCode =
  | "package_missing"
  | "binary_missing"
  | "model_unreadable"
  | "context_too_large"
  | "context_length_exceeded"
  | "queue_full"
  | "engine_closed";

/** The embedded engine cannot start, or rejected a request. `code` is for programs; the message quotes no prompt. */
export class EmbeddedEngineError extends Error {
  override readonly name: string = "EmbeddedEngineError";
  constructor(
    readonly code: EmbeddedEngineErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The prompt and one token of an answer do not fit into a slot. */
export class ContextLengthError extends EmbeddedEngineError {
  override readonly name = "ContextLengthError";
  constructor(
    readonly promptTokens: number,
    readonly contextTokens: number,
  ) {
    super(
      "context_length_exceeded",
      `The prompt has ${promptTokens} tokens, and this engine's context holds ${contextTokens}, the answer included.`,
    );
  }
}

/** The queue is full. No waiting request is dropped for a newer one. */
export class QueueFullError extends EmbeddedEngineError {
  override readonly name = "QueueFullError";
  constructor(
    /** Waiting requests: the caller's own, or all. */
    readonly waiting: number,
    readonly whose: "caller" | "all",
  ) {
    super(
      "queue_full",
      `The queue is full: ${waiting} requests${whose === "caller" ? " of this caller" : ""} are waiting. Try again later.`,
    );
  }
}
