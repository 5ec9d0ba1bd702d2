import type { FieldIssue } from "../service/base/call-types.js";

/** The service's error (RFC 9457), with HTTP's field names. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly errors?: readonly FieldIssue[];
}

/** A call failed. `cause`: the runtime's own error, if any. */
export class MemprefixError extends Error {
  override readonly name = "MemprefixError";
  constructor(
    message: string,
    /** HTTP's status; null: no answer, or only part of one. */
    readonly status: number | null,
    /** Null: the answer was no problem of memprefix's, so it may be another server's. */
    readonly problem: Problem | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
