import type { FieldIssue } from "../service/base/call-types.js";

/** A problem as the service answers it (RFC 9457), with fields as HTTP names them. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly errors?: readonly FieldIssue[];
}

/** A call failed. `cause` has the runtime's own error, if there is one. */
export class MemprefixError extends Error {
  override readonly name = "MemprefixError";
  constructor(
    message: string,
    /** HTTP's status; null: there was no answer, or a part of one. */
    readonly status: number | null,
    /** Null: the answer was no problem of memprefix's, so it may be another server's. */
    readonly problem: Problem | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
