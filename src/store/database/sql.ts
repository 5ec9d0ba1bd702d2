import type Database from "better-sqlite3";
import { keptIn } from "../../core/text/collections.js";
import { throwNamed } from "./sqlite-faults.js";

/*
 * SQL that SQLite and PostgreSQL both take. Parameters are `$1`, `$2`, …
 */

/** A statement; in PostgreSQL, those with a `name` are prepared once per connection. */
export interface NamedStatement {
  readonly name?: string;
  readonly text: string;
}

/** Statements by their names, which begin with `prefix` in PostgreSQL. */
export function named<K extends string>(
  prefix: string,
  texts: Readonly<Record<K, string>>,
): Readonly<Record<K, NamedStatement>> {
  const statements = Object.entries<string>(texts).map(([name, text]) => [name, { name: `${prefix}_${name}`, text }]);
  return Object.fromEntries(statements) as Readonly<Record<K, NamedStatement>>;
}

/** A column's type in PostgreSQL; with a question mark: may be null. */
type ColumnType = "bigint" | "double precision" | "text";
type Column = ColumnType | `${ColumnType}?`;
export type Columns = Readonly<Record<string, Column>>;

/** A column's type without the question mark. */
export function typeOf(column: Column): ColumnType {
  return column.replace("?", "") as ColumnType;
}

/** How a database says what others say otherwise. */
export interface Dialect {
  /** A JSON array's objects as the rows of a table, for `from`. */
  rows(parameter: string, alias: string, columns: Columns): string;
  /** After a column: whether its value is among those of a query. Found by the column's index. */
  among(query: string): string;
  /** An expression's values in all rows, as the text of a JSON array. */
  list(expression: string): string;
}

/** What queries are sent to. */
export interface SqlReader {
  readonly dialect: Dialect;
  /** Runs one query. Rejects with the store's faults. */
  read<R extends object>(statement: NamedStatement, values?: readonly unknown[]): Promise<R[]>;
}

export const SQLITE_DIALECT: Dialect = {
  rows: (parameter, alias, columns) => {
    const values = Object.keys(columns).map((name) => `value ->> '${name}' as ${name}`);
    return `(select ${values.join()} from json_each(${parameter})) as ${alias}`;
  },
  among: (query) => `in (${query})`,
  list: (expression) => `json_group_array(${expression})`,
};

/** Statements of a SQLite connection, each prepared once: their texts are the program's own, and few. */
export class PreparedTexts {
  readonly #statements = new Map<string, Database.Statement>();

  constructor(private readonly sqlite: Database.Database) {}

  /** Runs a statement; gives its rows, of one that has none an empty list. Throws the store's faults. */
  run<R>(text: string, values: readonly unknown[] = []): R[] {
    try {
      const statement = keptIn(this.#statements, text, (): Database.Statement => this.sqlite.prepare(text));
      const given = values.length === 0 ? [] : [Object.fromEntries(values.map((value, at) => [at + 1, value]))];
      if (statement.reader) return statement.all(...given) as R[];
      statement.run(...given);
      return [];
    } catch (error) {
      throwNamed(error);
    }
  }
}
