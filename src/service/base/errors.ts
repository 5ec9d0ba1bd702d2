export { UpstreamError } from "../../engines/upstream/upstream.js";
export { MemorySourceError } from "../../memory/memory-source.js";
export { StoreUnavailableError } from "../../store/api/store.js";

/** One thing that is wrong with a request; `field` names it as the caller wrote it. Never quotes memory text. */
export interface FieldIssue {
  readonly field: string;
  readonly message: string;
}

/** The request cannot be served as it is; nothing was written. */
export class InvalidRequestError extends Error {
  override readonly name = "InvalidRequestError";
  constructor(readonly issues: readonly FieldIssue[]) {
    super(issues.map(({ field, message }) => `${field}: ${message}`).join("; "));
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

/** Too many of the user's requests wait for each other already; nothing was written. */
export class BusyUserError extends Error {
  override readonly name = "BusyUserError";
  constructor(readonly limit: number) {
    super(`${limit} requests of this user are under way or wait already`);
  }
}

/** The caller went away before its turn came; nothing was written. */
export class AbandonedRequestError extends Error {
  override readonly name = "AbandonedRequestError";
  constructor() {
    super("the caller went away before its request was served");
  }
}

/** It was closed before the call; nothing was written. */
export class ClosedError extends Error {
  override readonly name = "ClosedError";
  constructor() {
    super("memstem is closed: make another with createMemstem");
  }
}

/** The user, or a memory of theirs, was deleted since what is under way began. Nothing of it was stored. */
export class DeletedMeanwhileError extends Error {
  override readonly name = "DeletedMeanwhileError";
  constructor() {
    super("the user, or a memory of theirs, was deleted while this was under way");
  }
}
