import Database from "better-sqlite3";
import { type StoreFault, StoreUnavailableError } from "../store.js";

/** By SQLite's primary result code (https://sqlite.org/rescode.html); an extended code begins with its primary one. */
const FAULTS: readonly (readonly [code: string, fault: StoreFault])[] = [
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_LOCKED", "busy"],
  ["SQLITE_FULL", "full"],
  ["SQLITE_READONLY", "read-only"],
  ["SQLITE_PERM", "read-only"],
  ["SQLITE_IOERR", "failing"],
  ["SQLITE_CANTOPEN", "failing"],
  ["SQLITE_CORRUPT", "damaged"],
  ["SQLITE_NOTADB", "damaged"],
];

/** The fault that one of SQLite's errors stands for; null for any other error, a bug of ours included. */
export function faultOf(error: unknown): StoreFault | null {
  if (!(error instanceof Database.SqliteError)) return null;
  const { code } = error;
  return FAULTS.find(([primary]) => code === primary || code.startsWith(`${primary}_`))?.[1] ?? null;
}

/** The error as `Store` names it. */
export function namedFault(error: unknown): unknown {
  const fault = faultOf(error);
  return fault === null ? error : new StoreUnavailableError(fault, { cause: error });
}
