/** A database could not be opened or migrated; the attempt changed nothing in it. */
export class DatabaseOpenError extends Error {
  override readonly name = "DatabaseOpenError";
  constructor(
    /** Its file, or the server's host and database. */
    readonly place: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`cannot open the database ${place}: ${reason}`, options);
  }
}

/**
 * Throws if another version wrote the schema.
 *
 * @param applied times of the applied migrations, oldest first; `known` are this version's
 * @param instead what can be opened in its place
 */
export function refuseOtherSchema(applied: readonly unknown[], known: readonly number[], instead: string): void {
  if (applied.some((time, at) => Number(time) !== known[at]))
    throw new Error(`another version of memprefix wrote it; use that version, or ${instead}`);
}
