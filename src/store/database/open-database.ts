/*
 * database/: one SQLite file: opening, migrations, schema, typed statements, sealed digests, faults by name.
 * In: a path.
 * Out: an open connection (`OpenDatabase`) whose schema is up to date, or a `DatabaseOpenError`.
 */

import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { type BetterSQLite3Database, drizzle } from "drizzle-orm/better-sqlite3";
import { COMMIT_WAIT_MS, eraseLog, SYNCHRONOUS } from "./connection.js";
import { DatabaseOpenError } from "./database-open-error.js";
import { DigestSeal } from "./digest-seal.js";
import { makeDirectory } from "./make-directory.js";
import { migrateToLatest, schemaOf } from "./migrations.js";
import { nativeBuildProblem } from "./native-build.js";
import * as schema from "./schema.js";
import type { SchemaProgress } from "./schema-progress.js";
import { faultOf } from "./sqlite-faults.js";

/** An open database. */
export interface OpenDatabase {
  readonly sqlite: Database.Database;
  readonly orm: BetterSQLite3Database<typeof schema>;
  readonly digests: DigestSeal;
}

/**
 * Page size of new files; existing ones keep theirs. A compose changes a few bytes on some fifteen pages, and each goes into the log whole:
 * this writes half of what SQLite's default of 4,096 does, and still holds most rows on one page.
 */
const PAGE_BYTES = 2_048;

/** Milliseconds that opening waits for another process's lock. */
const OPEN_WAIT_MS = 5_000;
/** Milliseconds between retries for locks that SQLite itself does not wait for. */
const OPEN_AGAIN_MS = 20;
/**
 * Opens a database file, or `":memory:"`, and migrates its schema in one transaction. WAL with `synchronous = NORMAL`: commits survive a
 * kill of the process at any point; a power cut may lose the last ones, never the file's integrity. Deleted text is overwritten
 * (`secure_delete`). Throws {@link DatabaseOpenError} without having written to the file where it is not a database, another program's, of
 * another schema, a newer version's or damaged.
 */
export function openDatabase(file: string): OpenDatabase {
  try {
    return retryWhileLocked(() => openOnce(file));
  } catch (error) {
    throw new DatabaseOpenError(file, reasonOf(error), { cause: error });
  }
}

/**
 * SQLite does not wait for every lock: where two processes switch a new file to WAL together, one fails immediately
 * (https://sqlite.org/wal.html#sometimes_queries_return_sqlite_busy_in_wal_mode). Waiting may block: nothing is served yet.
 */
function retryWhileLocked<T>(work: () => T): T {
  const deadline = performance.now() + OPEN_WAIT_MS;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (faultOf(error) !== "busy" || performance.now() >= deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, OPEN_AGAIN_MS);
    }
  }
}

function openOnce(file: string): OpenDatabase {
  let sqlite: Database.Database | undefined;
  try {
    if (file !== ":memory:") {
      makeDirectory(dirname(file));
      refuseForeign(file);
    }
    sqlite = new Database(file, { timeout: OPEN_WAIT_MS });
    sqlite.pragma(`page_size = ${PAGE_BYTES}`);
    sqlite.pragma("journal_mode = WAL");
    sqlite.pragma(`synchronous = ${SYNCHRONOUS}`);
    // A checkpoint waits for the disk. 8,000 pages, 16 MB, so that few composes meet one.
    sqlite.pragma("wal_autocheckpoint = 8000");
    sqlite.pragma("foreign_keys = ON");
    sqlite.pragma("secure_delete = ON");
    const orm = drizzle(sqlite, { schema });
    migrateToLatest(sqlite, orm);
    refuseReadOnly(sqlite);
    eraseLog(sqlite);
    sqlite.pragma(`busy_timeout = ${COMMIT_WAIT_MS}`);
    return { sqlite, orm, digests: DigestSeal.of(sqlite) };
  } catch (error) {
    sqlite?.close();
    throw error;
  }
}

/**
 * Opens a database file read-only and unmigrated; another process may write to it meanwhile. Throws {@link DatabaseOpenError} where it is
 * not a memstem database.
 */
export function openToRead(file: string): OpenDatabase & { readonly schema: SchemaProgress } {
  let sqlite: Database.Database | undefined;
  try {
    if (!existsSync(file)) throw new Error("there is no such file");
    sqlite = new Database(file, { readonly: true, fileMustExist: true, timeout: OPEN_WAIT_MS });
    const progress = schemaOf(sqlite);
    return { sqlite, orm: drizzle(sqlite, { schema }), digests: DigestSeal.of(sqlite), schema: progress };
  } catch (error) {
    sqlite?.close();
    throw new DatabaseOpenError(file, reasonOf(error), { cause: error });
  }
}

/** Checked through a read-only connection: a writable one would checkpoint the log into a foreign file when it closes. */
function refuseForeign(file: string): void {
  if (!existsSync(file) || statSync(file).size === 0) return;
  const sqlite = new Database(file, { readonly: true, timeout: OPEN_WAIT_MS });
  try {
    schemaOf(sqlite);
  } finally {
    sqlite.close();
  }
}

/** SQLite opens a read-only file without an error, and fails at the first statement that could change a row. */
function refuseReadOnly(sqlite: Database.Database): void {
  sqlite.exec("delete from __drizzle_migrations where false");
}

/** Why a file could not be opened, as {@link DatabaseOpenError} says it. */
function reasonOf(error: unknown): string {
  const unbuilt = nativeBuildProblem(error);
  if (unbuilt !== null) return unbuilt;
  switch (faultOf(error)) {
    case "busy":
      return "another process holds it locked";
    case "full":
      return "the disk is full";
    case "read-only":
      return "it cannot be written: its file, directory or file system is read-only";
    case "damaged":
      return codeOf(error) === "SQLITE_NOTADB"
        ? "it is not a database, or its beginning is damaged"
        : "it is damaged or cut short; restore a backup";
    case "failing":
      return `its files could not be opened, read or written (${codeOf(error)})`;
    default:
      return error instanceof Error ? error.message : String(error);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Database.SqliteError ? error.code : "";
}
