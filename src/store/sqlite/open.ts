import { existsSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { messageOf } from "../../core/text/thrown.js";
import { DatabaseOpenError, refuseOtherSchema } from "../open-error.js";
import { StoreUnavailableError } from "../store.js";
import { Connection, LOCK_MS, SYNCHRONOUS, whileLocked } from "./connection.js";
import { SqliteDatabase } from "./database.js";
import { faultOf } from "./faults.js";
import { own } from "./owner.js";
import { finishErasure } from "./writer.js";

export const DATABASE_FILE = "memprefix.db";

// The same depth in `src` and `dist`.
const MIGRATIONS = fileURLToPath(new URL("../../../migrations", import.meta.url));
/** Page size of new files: about a row's size; a compose changes a few bytes on some ten pages. */
const PAGE_BYTES = 2_048;
/** Milliseconds that opening waits for another process's lock. */
const OPEN_WAIT_MS = 5_000;

/** A database in a data directory that this process owns. Closing it releases the directory. */
export interface OwnedDatabase {
  readonly database: SqliteDatabase;
  /** Publishes the service's address, for error messages in other processes. */
  announce(address: string): void;
}

interface Shared extends OwnedDatabase {
  users: number;
  /** Whether a second store ever used it, so that another store's memory may be older. */
  wasShared: boolean;
}

/** The directories that this process owns, by their real paths. */
const OWNED = new Map<string, Shared>();

/**
 * Opens the database in a data directory as its only owner. A second call in this process shares it; in another process it throws
 * {@link DatabaseOpenError}, which says what to do.
 */
export function openOwned(directory: string): OwnedDatabase {
  const name = named(directory, () => realpathSync(directory));
  const known = OWNED.get(name);
  if (known === undefined) return openFirst(directory, name);
  known.users++;
  known.wasShared = true;
  return known;
}

function openFirst(directory: string, name: string): OwnedDatabase {
  const { announce, release } = named(directory, () => own(name));
  try {
    const connection = openFile(join(directory, DATABASE_FILE), finishErasure);
    // Run from source, there is no JavaScript file for a thread.
    const threads = import.meta.filename.endsWith(".ts") ? null : new URL(".", import.meta.url);
    const database = new SqliteDatabase(connection, () => shared.wasShared, threads);
    const shared: Shared = { database, announce, users: 1, wasShared: false };
    const close = database.close.bind(database);
    database.close = async () => {
      if (--shared.users > 0) return;
      OWNED.delete(name);
      await close();
      release();
    };
    OWNED.set(name, shared);
    return shared;
  } catch (error) {
    release();
    throw error;
  }
}

/** Opens a data directory's database beside its owner, to read it and to manage keys. Throws {@link DatabaseOpenError}. */
export function openBeside(directory: string): SqliteDatabase {
  const connection = openFile(join(directory, DATABASE_FILE));
  // The owner may be writing a large group, or rewriting the file; a command can wait.
  connection.sqlite.pragma(`busy_timeout = ${OPEN_WAIT_MS}`);
  return new SqliteDatabase(connection, () => true, null);
}

export function openInMemory(): SqliteDatabase {
  return new SqliteDatabase(openFile(":memory:"), () => false, null);
}

/**
 * Opens a database file, or `":memory:"`, and migrates it in one transaction. Throws {@link DatabaseOpenError}, and writes nothing, if it is no
 * database, foreign or damaged, or has an unknown schema.
 *
 * @param prepare the owner's work before anything is served
 */
export function openFile(file: string, prepare: (connection: Connection) => void = () => {}): Connection {
  // If two processes switch a new file to WAL together, one fails without waiting for the lock
  // (https://sqlite.org/wal.html#sometimes_queries_return_sqlite_busy_in_wal_mode). Nothing is served yet.
  return named(file, () => whileLocked(() => openOnce(file, prepare), OPEN_WAIT_MS));
}

function named<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof DatabaseOpenError) throw error;
    throw new DatabaseOpenError(place, openProblem(error), { cause: error });
  }
}

function openOnce(file: string, prepare: (connection: Connection) => void): Connection {
  if (file !== ":memory:") refuseForeign(file);
  const sqlite = new Database(file, { timeout: OPEN_WAIT_MS });
  try {
    sqlite.pragma(`page_size = ${PAGE_BYTES}`);
    sqlite.pragma("journal_mode = WAL");
    sqlite.pragma(`synchronous = ${SYNCHRONOUS}`);
    // A checkpoint waits for the disk, so the writer makes them. Until then 16 MB at most.
    sqlite.pragma("wal_autocheckpoint = 4000");
    sqlite.pragma("secure_delete = ON");
    migrate(drizzle(sqlite), { migrationsFolder: MIGRATIONS });
    // SQLite opens a read-only file without an error, and fails at the first statement that could change a row.
    sqlite.exec("delete from __drizzle_migrations where false");
    const connection = new Connection(sqlite);
    prepare(connection);
    sqlite.pragma(`busy_timeout = ${LOCK_MS}`);
    return connection;
  } catch (error) {
    if (sqlite.inTransaction) sqlite.exec("rollback");
    sqlite.close();
    throw error;
  }
}

/** Checks through a read-only connection: a writable one would checkpoint the log into a foreign file when it closes. */
function refuseForeign(file: string): void {
  if (!existsSync(file) || statSync(file).size === 0) return;
  const sqlite = new Database(file, { readonly: true, timeout: OPEN_WAIT_MS });
  try {
    const tables = sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all();
    if (!tables.includes("__drizzle_migrations")) {
      if (tables.length > 0) throw new Error("it is the database of another program");
      return;
    }
    const known = readMigrationFiles({ migrationsFolder: MIGRATIONS }).map(({ folderMillis }) => folderMillis);
    const times = sqlite.prepare<[], number>("select created_at from __drizzle_migrations order by created_at");
    refuseOtherSchema(times.pluck().all(), known, "an empty data directory");
  } finally {
    sqlite.close();
  }
}

/** Forces the install script, even if npm is configured to run none. */
const REBUILD =
  "better-sqlite3 has no native build for this Node.js; make it with: npm rebuild better-sqlite3 --ignore-scripts=false";

/** What to do if `better-sqlite3` has no native build for this Node.js; null for other errors. */
export function nativeBuildProblem(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const isUnloadable = "code" in error && error.code === "ERR_DLOPEN_FAILED";
  return isUnloadable || error.message.startsWith("Could not locate the bindings file") ? REBUILD : null;
}

export function openProblem(error: unknown): string {
  const unbuilt = nativeBuildProblem(error);
  if (unbuilt !== null) return unbuilt;
  const code = error instanceof Database.SqliteError ? error.code : "";
  if (code === "SQLITE_NOTADB") return "it is not a database, or its beginning is damaged";
  const fault = faultOf(error);
  if (fault === "damaged") return "it is damaged or cut short; restore a backup";
  if (fault === "failing") return `its files could not be opened, read or written (${code})`;
  return fault === null ? messageOf(error) : new StoreUnavailableError(fault).message;
}
