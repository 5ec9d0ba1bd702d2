/** The database file could not be opened or brought up to date; nothing in it was changed by the attempt. */
export class DatabaseOpenError extends Error {
  override readonly name = "DatabaseOpenError";
  constructor(
    readonly file: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`cannot open the database ${file}: ${reason}`, options);
  }
}
