/*
 * The database of a store, SQLite or PostgreSQL. Both get the same SQL. Parameters are `$1`, `$2`, …; values are numbers, texts and null.
 */

import type { User } from "./store.js";

export type SqlValue = number | string | null;

/** Its text is one of few: values are parameters. */
export interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

export function sql(text: string, ...values: readonly SqlValue[]): Statement {
  return { text, values };
}

/** Sends a query after those sent before. */
export type ReadRows = <R extends object>(text: string, values: readonly SqlValue[]) => Promise<R[]>;

/** A transaction that locks other processes out of one user's rows. */
export interface UserTransaction {
  /** Reads what was committed before the lock. Queries sent before anything is awaited go out with the lock. */
  readonly read: ReadRows;
  /**
   * Ends the transaction with these statements, in one round trip. Durable when it resolves; if it rejects, nothing is stored.
   *
   * @param how `apart`: no statement reads or writes what another one writes, so they may run as one; default: in order
   */
  commit(statements: readonly Statement[], how?: "apart" | "in order"): Promise<void>;
}

/** A database with the tables of docs/internals/store.md. Rejects with `StoreUnavailableError` for faults of disks, locks and connections. */
export interface Database {
  /** Whether other processes may write too, so that memory may be older than the store. */
  readonly isShared: boolean;
  /** SQL after a text column that tests for membership in a list, by the column's index. The parameter is the list as JSON. */
  readonly isAmong: (parameter: string) => string;
  readonly read: ReadRows;
  /** The same for a query over many rows: nothing else waits for it. */
  readonly readAside: ReadRows;
  /** Runs one statement that writes, in its own transaction, and gives the rows that it returns. May run twice. */
  readonly take: ReadRows;
  /** SQL after a subquery of rows to update: skips rows that another process is updating. */
  readonly lockFree: string;
  /** Runs statements in their own transaction. Safe to repeat. */
  write(statements: readonly Statement[]): Promise<void>;
  /**
   * Runs `work` while no other process holds this user. Nothing changes without a commit. `work` must read first: it runs again if its first
   * query found the connection lost.
   */
  hold<T>(user: User, work: (transaction: UserTransaction) => Promise<T>): Promise<T>;
  /** Takes deleted texts out of the files. `pending`: something else reads the files, so it is done later, perhaps by the next process. */
  erase(texts: readonly string[]): Promise<"erased" | "pending">;
  close(): Promise<void>;
}
