import type { FieldIssue } from "./call-types.js";

export { UpstreamError } from "../../engines/upstream/upstream.js";
export { MemorySourceError } from "../../memory/memory-source.js";
export { StoreUnavailableError } from "../../store/store.js";
export type { FieldIssue } from "./call-types.js";

/** The request is invalid; nothing was written. */
export class InvalidRequestError extends Error {
  override readonly name = "InvalidRequestError";
  constructor(readonly issues: readonly FieldIssue[]) {
    super(issues.map(({ field, message }) => `${field}: ${message}`).join("; "));
  }
}

/** The messages come to more tokens than the prompt may have, without any memory; nothing was written. */
export class MessagesTooLongError extends InvalidRequestError {
  constructor(
    readonly tokens: number,
    readonly maxTokens: number,
  ) {
    const message = `come to ${tokens} tokens without any memory, more than max_prompt_tokens, ${maxTokens}`;
    super([{ field: "messages", message }]);
  }
}

/** What the request names does not exist. */
export class NotFoundError extends Error {
  override readonly name = "NotFoundError";
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

/** The user's queue is full; nothing was written. */
export class BusyUserError extends Error {
  override readonly name = "BusyUserError";
  constructor(readonly limit: number) {
    super(`${limit} requests of this user are running or queued already`);
  }
}

/** The caller disconnected before its request was served; nothing was written. */
export class AbandonedRequestError extends Error {
  override readonly name = "AbandonedRequestError";
  constructor() {
    super("the caller disconnected before its request was served");
  }
}

/** memprefix was closed before the call; nothing was written. */
export class ClosedError extends Error {
  override readonly name = "ClosedError";
  constructor() {
    super("memprefix is closed: make another with createMemprefix");
  }
}

/** The user was deleted while the request ran; nothing of it was stored. */
export class DeletedMeanwhileError extends Error {
  override readonly name = "DeletedMeanwhileError";
  constructor() {
    super("the user was deleted while the request ran");
  }
}
