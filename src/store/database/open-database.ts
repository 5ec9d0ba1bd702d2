/*
 * database/: one SQLite file: opening, migrations, schema, sealed digests, faults by name; SQL that both databases take (`sql.ts`).
 * In: a path.
 * Out: an open connection (`DatabaseConnection`) whose schema is up to date, or a `DatabaseOpenError`.
 */

import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { messageOf } from "../../core/text/thrown.js";
import { DatabaseOpenError, refuseOtherSchema } from "../open-error.js";
import { DigestSeal } from "./digest-seal.js";
import { faultOf } from "./sqlite-faults.js";

/** A connection to a database file, and the key of its digests. */
export interface DatabaseConnection {
  readonly sqlite: Database.Database;
  readonly digests: DigestSeal;
}

/** Milliseconds that a commit waits for a lock. It blocks the thread, so callers wait longer between their own retries. */
const COMMIT_WAIT_MS = 20;

/**
 * Commits survive a kill of the process at any point; a power cut may lose the last ones, never the file's integrity. FULL, which survives
 * that too, waits for the disk once for each group: 3 to 4 ms of every answer, and a sixth of the throughput, on a virtual machine's disk.
 */
const SYNCHRONOUS = "NORMAL";

/** Opens one more connection to a file that this process has open, so its schema is up to date. Throws SQLite's errors. */
export function connect(file: string): DatabaseConnection {
  const sqlite = new Database(file, { fileMustExist: true, timeout: COMMIT_WAIT_MS });
  sqlite.pragma(`synchronous = ${SYNCHRONOUS}`);
  sqlite.pragma("foreign_keys = ON");
  sqlite.pragma("secure_delete = ON");
  return { sqlite, digests: DigestSeal.of(sqlite) };
}

/** Checkpoints and truncates the log; false where a reader still needs it, or the disk fails. */
export function eraseLog(sqlite: Database.Database): boolean {
  try {
    const [outcome] = sqlite.pragma("wal_checkpoint(TRUNCATE)") as { readonly busy: number }[];
    return outcome?.busy === 0;
  } catch (error) {
    if (faultOf(error) === null) throw error;
    return false;
  }
}

// Equally deep in `src` and `dist`.
const MIGRATIONS = fileURLToPath(new URL("../../../migrations", import.meta.url));

/** Processes that start together may all try to migrate: the later ones find it done when they retry. */
const MIGRATION_ATTEMPTS = 3;

/** Brings a file's schema up to date, all steps in one transaction. Throws as {@link refuseForeignSchema} does. */
function migrateToLatest(sqlite: Database.Database): void {
  for (let attempt = 1; ; attempt++) {
    try {
      migrate(drizzle(sqlite), { migrationsFolder: MIGRATIONS });
      return;
    } catch (error) {
      if (sqlite.inTransaction) sqlite.exec("rollback");
      if (attempt === MIGRATION_ATTEMPTS || faultOf(error) !== null) throw error;
    }
  }
}

/** Throws where the file is another program's, a newer version's, or has a schema that no migration leads on from. */
function refuseForeignSchema(sqlite: Database.Database): void {
  const tables = sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all();
  if (!tables.includes("__drizzle_migrations")) {
    if (tables.length > 0) throw new Error("it is the database of another program");
    return;
  }
  const known = readMigrationFiles({ migrationsFolder: MIGRATIONS }).map(({ folderMillis }) => folderMillis);
  const times = sqlite.prepare<[], number>("select created_at from __drizzle_migrations order by created_at");
  refuseOtherSchema(times.pluck().all(), known, "an empty data directory");
}

/** The install script runs also where npm is configured to run none. */
const REBUILD =
  "better-sqlite3 has no native build for this Node.js; make it with: npm rebuild better-sqlite3 --ignore-scripts=false";

/**
 * What to do about an error that `better-sqlite3` throws without a native build which this Node.js can load: it was installed without its
 * script, or for another Node.js. Null for other errors.
 */
function nativeBuildProblem(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const isUnloadable = "code" in error && error.code === "ERR_DLOPEN_FAILED";
  return isUnloadable || error.message.startsWith("Could not locate the bindings file") ? REBUILD : null;
}

/** Tries whether there is a native build; says what to do where there is none, else null. */
export function missingNativeBuild(): string | null {
  try {
    new Database(":memory:").close();
    return null;
  } catch (error) {
    return nativeBuildProblem(error);
  }
}

/**
 * Makes a directory and its missing parents. Throws what `mkdir` throws. Node's own `recursive` loops forever on a file system that answers
 * `ENOENT` to every new directory, as /proc does: it takes the parent for missing, finds it, and retries.
 */
export function makeDirectory(path: string): void {
  const missing = [resolve(path)];
  for (let above = dirname(resolve(path)); !existsSync(above); above = dirname(above)) missing.push(above);
  for (const directory of missing.reverse()) makeOne(directory);
}

function makeOne(directory: string): void {
  try {
    mkdirSync(directory);
  } catch (error) {
    // It exists, or another process made it first.
    if (!existsSync(directory) || !statSync(directory).isDirectory()) throw error;
  }
}

/** What SQLite's quick check finds wrong in a file, a line each. Another process may be writing to it. */
export function quickCheck(file: string): string[] {
  try {
    const sqlite = new Database(file, { readonly: true, timeout: OPEN_WAIT_MS });
    try {
      const lines = sqlite.prepare<[], string>("pragma quick_check").pluck().all();
      return lines.filter((line) => line !== "ok");
    } finally {
      sqlite.close();
    }
  } catch (error) {
    return [reasonOf(error)];
  }
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
export function openDatabase(file: string): DatabaseConnection {
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

function openOnce(file: string): DatabaseConnection {
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
    migrateToLatest(sqlite);
    refuseReadOnly(sqlite);
    eraseLog(sqlite);
    sqlite.pragma(`busy_timeout = ${COMMIT_WAIT_MS}`);
    return { sqlite, digests: DigestSeal.of(sqlite) };
  } catch (error) {
    sqlite?.close();
    throw error;
  }
}

/** Checked through a read-only connection: a writable one would checkpoint the log into a foreign file when it closes. */
function refuseForeign(file: string): void {
  if (!existsSync(file) || statSync(file).size === 0) return;
  const sqlite = new Database(file, { readonly: true, timeout: OPEN_WAIT_MS });
  try {
    refuseForeignSchema(sqlite);
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
      return messageOf(error);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Database.SqliteError ? error.code : "";
}
