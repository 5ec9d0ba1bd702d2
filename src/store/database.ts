/*
 * The database of a store, SQLite or PostgreSQL. Both are sent the same SQL. Parameters are `$1`, `$2`, …; values are
 * numbers, texts and null.
 */

import type { User } from "./store.js";

export type SqlValue = number | string | null;

/** A statement with its values. Its text is one of few: values stand in parameters. */
export interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** A statement with the values of `$1`, `$2`, … */
export function sql(text: string, ...values: readonly SqlValue[]): Statement {
  return { text, values };
}

/** Sends a query after those sent before, and gives its rows. */
export type ReadRows = <R extends object>(text: string, values: readonly SqlValue[]) => Promise<R[]>;

/** A transaction that keeps other processes from the rows of one user. */
export interface UserTransaction {
  /** Reads what was committed before the user was held. The first queries go out with the lock: all sent before anything is awaited. */
  readonly read: ReadRows;
  /**
   * Ends it with these statements, in one round trip. Durable when it resolves; a rejection means that nothing of it is stored.
   *
   * @param how `apart`: none of them reads or writes what another one writes, so that they may run as one; default: in their order
   */
  commit(statements: readonly Statement[], how?: "apart" | "in order"): Promise<void>;
}

/** A database with the tables of docs/internals/store.md. Rejects with `StoreUnavailableError` for faults of disks, locks and connections. */
export interface Database {
  /** Whether other processes may write to it, too: then what is in memory may be older than what is stored. */
  readonly isShared: boolean;
  /** What follows a column of texts whose value is one of a list, which is a parameter: JSON of it. Found by the column's index. */
  readonly isAmong: (parameter: string) => string;
  /** Rows of one query, on what is committed. */
  readonly read: ReadRows;
  /** The same for a query over many rows: nothing else waits for it. */
  readonly readAside: ReadRows;
  /** Runs statements in one transaction of its own. Safe to be run twice. */
  write(statements: readonly Statement[]): Promise<void>;
  /**
   * Runs `work` while no other process holds this user. Without a commit nothing is changed. `work` reads before it does anything else: it
   * is run again where its first query found the connection lost.
   */
  hold<T>(user: User, work: (transaction: UserTransaction) => Promise<T>): Promise<T>;
  /**
   * Takes deleted text out of the files. `pending`: something else reads them; it is done later, by the next process if need be.
   *
   * @param texts what was deleted, as it stood in rows
   */
  erase(texts: readonly string[]): Promise<"erased" | "pending">;
  /** Stores what was handed over, and closes. */
  close(): Promise<void>;
}
