/** Why the engine inside could not do what was asked; `code` is for programs. */
export type EmbeddedEngineErrorCode =
  | "package_missing"
  | "binary_missing"
  | "model_unreadable"
  | "context_too_large"
  | "context_length_exceeded"
  | "queue_full"
  | "engine_closed";

/** The engine inside cannot be started, or cannot take a request. Its message quotes no prompt. */
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

/** The prompt does not fit into a slot, with at least one token of an answer. */
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

/** Too many requests wait already. None is dropped for a newer one. */
export class QueueFullError extends EmbeddedEngineError {
  override readonly name = "QueueFullError";
  constructor(
    /** Requests that wait: the caller's own, or all of them. */
    readonly waiting: number,
    readonly whose: "caller" | "all",
  ) {
    super(
      "queue_full",
      `${waiting} requests${whose === "caller" ? " of this caller" : ""} wait already; try again later.`,
    );
  }
}
