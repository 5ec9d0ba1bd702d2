import type { FieldIssue } from "../service/base/call-types.js";

/*
 * What the client throws. Where the library throws an error for the same reason, it has the same `name`, message and fields. The classes are
 * the client's own, because it is published without the library: take them from the module whose function was called, or compare `name`.
 */

/** A problem as the service answers it (RFC 9457), with fields as the caller named them. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly errors?: readonly FieldIssue[];
}

/** What came back in place of success. */
export interface Refusal {
  readonly status: number;
  /** Null: the body was no problem, so it may be another server's answer. */
  readonly problem: Problem | null;
  /** How long the service requests to wait before another try, in milliseconds; null: it did not say. */
  readonly retryAfterMs: number | null;
}

/** The service, or a server in front of it, answered with something other than success. */
export class MemprefixHttpError extends Error {
  override readonly name: string = "MemprefixHttpError";
  /** HTTP's status; null: the client found the fault before it sent anything. */
  readonly status: number | null;
  readonly problem: Problem | null;
  readonly retryAfterMs: number | null;
  constructor(message: string, refusal: Refusal | null) {
    super(message);
    this.status = refusal?.status ?? null;
    this.problem = refusal?.problem ?? null;
    this.retryAfterMs = refusal?.retryAfterMs ?? null;
  }
}

/** The request is invalid; nothing was written. `issues` names every invalid field. Statuses 400, 413, 415 and 422. */
export class InvalidRequestError extends MemprefixHttpError {
  override readonly name = "InvalidRequestError";
  constructor(
    readonly issues: readonly FieldIssue[],
    refusal: Refusal | null = null,
  ) {
    super(issues.map(({ field, message }) => `${field}: ${message}`).join("; "), refusal);
  }
}

/** What the request names does not exist. Status 404. */
export class NotFoundError extends MemprefixHttpError {
  override readonly name = "NotFoundError";
  constructor(
    readonly field: string,
    message: string,
    refusal: Refusal,
  ) {
    super(message, refusal);
  }
}

/** The user, or a memory of theirs, was deleted while the request ran; nothing of it was stored. Status 409. */
export class DeletedMeanwhileError extends MemprefixHttpError {
  override readonly name = "DeletedMeanwhileError";
}

/** The memory source failed, or cannot do this. Statuses 501, 502 and 504. */
export class MemorySourceError extends MemprefixHttpError {
  override readonly name = "MemorySourceError";
}

/** No answer, or not a whole one: the service could not be reached, or the connection broke. `cause` has the runtime's own error. */
export class MemprefixConnectionError extends Error {
  override readonly name: string = "MemprefixConnectionError";
}

/** No answer within the time-out. */
export class MemprefixTimeoutError extends MemprefixConnectionError {
  override readonly name = "MemprefixTimeoutError";
  constructor(
    what: string,
    readonly afterMs: number,
  ) {
    super(`${what} had no answer within ${afterMs} ms`);
  }
}

/** The client was closed before the call. */
export class ClosedError extends Error {
  override readonly name = "ClosedError";
  constructor() {
    super("memprefix is closed: make another with createMemprefixClient");
  }
}
