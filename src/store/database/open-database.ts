/*
 * database/: one SQLite file: opening, migrations, schema, hot statements, transactions, checkpoints, sealed digests.
 * In: a path; committed work (`CommitGroup`).
 * Out: an open connection (`OpenDatabase`) whose schema is up to date, or a `DatabaseOpenError`.
 * Hot SQL is written by hand in `statements.ts` and typed by `schema.ts`; cold SQL uses drizzle.
 */

import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { type BetterSQLite3Database, drizzle } from "drizzle-orm/better-sqlite3";
import { faultOf } from "../api/store-faults.js";
import { DatabaseOpenError } from "./database-open-error.js";
import { DigestSeal } from "./digest-seal.js";
import { makeDirectory } from "./make-directory.js";
import { migrateToLatest, type SchemaProgress, schemaOf } from "./migrations.js";
import * as schema from "./schema.js";

/** An open database. */
export interface OpenDatabase {
  readonly sqlite: Database.Database;
  readonly orm: BetterSQLite3Database<typeof schema>;
  readonly digests: DigestSeal;
}

/**
 * Of files that are new; those that are there keep theirs. A compose changes a few bytes on each of some fifteen pages, and all of each goes
 * into the log: smaller pages make that half of what SQLite's standard of 4,096 does, and still hold most rows whole.
 */
const PAGE_BYTES = 2_048;

/** How long opening waits for another process that holds the file, in milliseconds. */
const OPEN_WAIT_MS = 5_000;
/** How long until opening is tried again after a lock that SQLite does not wait for, in milliseconds. */
const OPEN_AGAIN_MS = 20;
/** How long a commit waits for one. Nothing else is served meanwhile, so the longer wait is its caller's, between two attempts. */
const COMMIT_WAIT_MS = 20;
/**
 * Opens a database file, or `":memory:"`, and brings its schema up to date, all steps in one transaction. WAL with `synchronous = NORMAL`:
 * what was committed survives the death of the process at any point; a power cut may take the last commits, never the file's integrity.
 * Deleted text is overwritten (`secure_delete`). Throws {@link DatabaseOpenError}, and has then written nothing into a file that is not
 * its own to write: no database, another program's, a newer version's, a damaged one.
 */
export function openDatabase(file: string): OpenDatabase {
  try {
    return retryWhileLocked(() => openOnce(file));
  } catch (error) {
    throw new DatabaseOpenError(file, reasonOf(error), { cause: error });
  }
}

/**
 * SQLite does not wait for every lock: where two processes turn a new file to WAL at once, one fails at once
 * (https://sqlite.org/wal.html#sometimes_queries_return_sqlite_busy_in_wal_mode). Waiting blocks: nothing is served yet.
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
    sqlite.pragma("synchronous = NORMAL");
    // A checkpoint waits for the disk: let the log grow to 16 MB, so that fewer composes meet one.
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
 * Opens a database file as it is, to read it; another process may write to it meanwhile. Throws {@link DatabaseOpenError} where it is none
 * of ours.
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

/** Writes the log back into the file and empties it; false where somebody still reads what it holds, or the disk does not let us. */
export function eraseLog(sqlite: Database.Database): boolean {
  try {
    const [outcome] = sqlite.pragma("wal_checkpoint(TRUNCATE)") as { readonly busy: number }[];
    return outcome?.busy === 0;
  } catch (error) {
    if (faultOf(error) === null) throw error;
    return false;
  }
}

/** Looks through a connection that cannot write: one that can would write a log back into the file when it closes. */
function refuseForeign(file: string): void {
  if (!existsSync(file) || statSync(file).size === 0) return;
  const sqlite = new Database(file, { readonly: true, timeout: OPEN_WAIT_MS });
  try {
    schemaOf(sqlite);
  } finally {
    sqlite.close();
  }
}

/** SQLite opens what it may only read without a word, even begins to write, and fails with the first statement that could change a row. */
function refuseReadOnly(sqlite: Database.Database): void {
  sqlite.exec("delete from __drizzle_migrations where false");
}

function reasonOf(error: unknown): string {
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
