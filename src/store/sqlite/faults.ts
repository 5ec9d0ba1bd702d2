import Database from "better-sqlite3";
import type { StoreFault } from "../store.js";

/** By SQLite's primary result code (https://sqlite.org/rescode.html), with which an extended code begins. */
const FAULTS = new Map<string | undefined, StoreFault>([
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_LOCKED", "busy"],
  ["SQLITE_FULL", "full"],
  ["SQLITE_READONLY", "read-only"],
  ["SQLITE_PERM", "read-only"],
  ["SQLITE_IOERR", "failing"],
  ["SQLITE_CANTOPEN", "failing"],
  ["SQLITE_CORRUPT", "damaged"],
  ["SQLITE_NOTADB", "damaged"],
]);

/** Null for any other error, such as a bug. */
export function faultOf(error: unknown): StoreFault | null {
  if (!(error instanceof Database.SqliteError)) return null;
  return FAULTS.get(/^SQLITE_[A-Z]+/.exec(error.code)?.[0]) ?? null;
}
