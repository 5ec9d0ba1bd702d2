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
 * Throws if a newer version wrote the schema, or one from before the first release.
 *
 * @param applied times of the applied migrations, oldest first; `known` are this version's
 * @param instead what can be opened in its place
 */
export function refuseOtherSchema(applied: readonly unknown[], known: readonly number[], instead: string): void {
  const times = applied.map(Number);
  if (times.some((time, at) => at < known.length && time !== known[at]))
    throw new Error(
      `a development version from before 0.1.0 wrote it, which this version does not read; use ${instead}`,
    );
  if (times.length > known.length) throw new Error("it was written by a newer version of memprefix");
}
