/** A database file could not be opened or migrated; the attempt changed nothing in it. */
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
