/** A body arrived too slowly; no work was done for it. */
export class SlowBodyError extends Error {
  override readonly name = "SlowBodyError";
  /** @param setting whose limit was reached */
  constructor(
    readonly setting: "MEMSTEM_BODY_TIMEOUT_MS" | "MEMSTEM_BODY_BYTES_PER_SECOND",
    message: string,
  ) {
    super(message);
  }
}

/** One client has too many incomplete bodies; no work was done for this one. */
export class BodyShareError extends Error {
  override readonly name = "BodyShareError";
}
