import type Database from "better-sqlite3";
import { is, Param, Placeholder, type Query } from "drizzle-orm";

/** A statement that writes, with its values by the names of its placeholders. */
export interface WriteStatement {
  run(values: Readonly<Record<string, unknown>>): Database.RunResult;
}

/**
 * Takes a statement that drizzle has written past drizzle: there, every run looks up the class of every parameter, which costs as much as
 * SQLite does for the row. Throws where the SQL is wrong; `run` throws where a value is missing.
 */
export function writeStatement(sqlite: Database.Database, query: { toSQL(): Query }): WriteStatement {
  const { sql, params } = query.toSQL();
  const statement = sqlite.prepare(sql);
  const readers = params.map(readerOf);
  return {
    run: (values) => statement.run(...readers.map((read) => read(values))),
  };
}

type Reader = (values: Readonly<Record<string, unknown>>) => unknown;

function readerOf(parameter: unknown): Reader {
  if (is(parameter, Placeholder)) return named(parameter.name);
  if (is(parameter, Param) && is(parameter.value, Placeholder)) {
    const read = named(parameter.value.name);
    const { encoder } = parameter;
    return (values) => encoder.mapToDriverValue(read(values));
  }
  return () => parameter;
}

function named(name: string): Reader {
  return (values) => {
    const value = values[name];
    if (value === undefined) throw new Error(`no value for ${name}`);
    return value;
  };
}
