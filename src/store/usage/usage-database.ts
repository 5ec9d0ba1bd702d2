import type { NamedStatement } from "../postgres/connections.js";
import type { Columns } from "./usage-tables.js";

/** Sends a statement after those sent before, and gives its rows. Its parameters are `$1`, `$2`, … */
export type RunQuery = <R extends object>(statement: NamedStatement, values?: readonly unknown[]) => Promise<R[]>;

/** How a database says what others say otherwise. */
export interface Dialect {
  /** A JSON array's objects as the rows of a table, for `from`. */
  rows(parameter: string, alias: string, columns: Columns): string;
  /** After a column: whether its value is among those of a query. Found by the column's index. */
  among(query: string): string;
}

/** What a usage log is kept in, with the tables of `usage-tables.ts`. Rejects with the store's faults. */
export interface UsageDatabase {
  readonly dialect: Dialect;
  /** Reads one state of the database. `questions` sends everything before it waits. */
  read<T>(questions: (query: Query) => Promise<T>): Promise<T>;
  /**
   * A transaction beside which no other writes. It is committed when `work` has resolved and everything that it sent has succeeded.
   * `work` runs once more where the connection was lost.
   */
  write<T>(work: (query: Query) => Promise<T>): Promise<T>;
  /** After rows were deleted: nothing of them is left in files. */
  erase(): Promise<void>;
  close(): Promise<void>;
}
