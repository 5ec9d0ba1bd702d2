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

/** A database's schema: migrations applied, of those that this version knows. */
export interface SchemaProgress {
  readonly applied: number;
  readonly known: number;
}

/**
 * How far a schema is, from when its migrations and the known ones were made, oldest first. Throws where a newer version wrote it, and where
 * no known migration leads on from it: one from before the first release.
 *
 * @param instead what can be opened in its place
 */
export function schemaProgress(applied: readonly unknown[], known: readonly number[], instead: string): SchemaProgress {
  const times = applied.map(Number);
  if (times.some((time, at) => at < known.length && time !== known[at]))
    throw new Error(
      `a development version from before 0.1.0 wrote it, which this version does not read; use ${instead}`,
    );
  if (times.length > known.length) throw new Error("it was written by a newer version of memprefix");
  return { applied: times.length, known: known.length };
}
