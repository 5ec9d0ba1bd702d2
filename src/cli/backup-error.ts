/** A data directory could not be copied; the partial copy was removed. */
export class BackupError extends Error {
  override readonly name = "BackupError";
  constructor(
    readonly directory: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`cannot copy to ${directory}: ${reason}`, options);
  }
}
