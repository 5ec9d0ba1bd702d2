/** A body came too slowly; nothing was done for it. */
export class SlowBodyError extends Error {
  override readonly name = "SlowBodyError";
  /** @param setting the one whose limit was met */
  constructor(
    readonly setting: "MEMSTEM_BODY_TIMEOUT_MS" | "MEMSTEM_BODY_BYTES_PER_SECOND",
    message: string,
  ) {
    super(message);
  }
}

/** More bodies of one client are waited for than may be; nothing was done for this one. */
export class BodyShareError extends Error {
  override readonly name = "BodyShareError";
}
