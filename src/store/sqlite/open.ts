import { existsSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { messageOf } from "../../core/text/thrown.js";
import { DatabaseOpenError, refuseOtherSchema } from "../open-error.js";
import { Connection, LOCK_MS, SYNCHRONOUS, whileLocked } from "./connection.js";
import { SqliteDatabase } from "./database.js";
import { faultOf } from "./faults.js";
import { own } from "./owner.js";
import { finishErasure } from "./writer.js";

/** The database in a data directory. */
export const DATABASE_FILE = "memprefix.db";

// Equally deep in `src` and `dist`.
const MIGRATIONS = fileURLToPath(new URL("../../../migrations", import.meta.url));
/** Page size of new files: most rows have about as many bytes, and a compose changes a few bytes on some ten pages. */
const PAGE_BYTES = 2_048;
/** Milliseconds that opening waits for another process's lock. */
const OPEN_WAIT_MS = 5_000;

/** A database in a data directory that this process owns. Closing it gives the directory up. */
export interface OwnedDatabase {
  readonly database: SqliteDatabase;
  /** Says where the process's service listens, for the message to other processes. */
  announce(address: string): void;
}

interface Shared extends OwnedDatabase {
  users: number;
  /** Whether a second store ever used it: what another one has in memory may be older. */
  wasShared: boolean;
}

/** The directories that this process owns, by their real paths. */
const OWNED = new Map<string, Shared>();

/**
 * Opens the database in a data directory, as its one owner: a second call in this process shares the first one's database, another process
 * gets an error that says what to do. Throws {@link DatabaseOpenError}.
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
    // Run from source, there is no JavaScript file for a thread to load.
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

/** Opens the database of a data directory beside its owner: to read it, and for keys. Throws {@link DatabaseOpenError}. */
export function openBeside(directory: string): SqliteDatabase {
  const connection = openFile(join(directory, DATABASE_FILE));
  // The owner may be writing a large group, or rewriting the file; a command can wait.
  connection.sqlite.pragma(`busy_timeout = ${OPEN_WAIT_MS}`);
  return new SqliteDatabase(connection, () => true, null);
}

/** A database in memory. */
export function openInMemory(): SqliteDatabase {
  return new SqliteDatabase(openFile(":memory:"), () => false, null);
}

/**
 * Opens a database file, or `":memory:"`, and brings its schema up to date in one transaction. Throws {@link DatabaseOpenError}, and
 * writes nothing to the file, where it is no database, is another program's or damaged, or has a schema that this version does not know.
 *
 * @param prepare what else its owner does before anything is served
 */
export function openFile(file: string, prepare: (connection: Connection) => void = () => {}): Connection {
  // SQLite does not wait for every lock: where two processes switch a new file to WAL together, one fails immediately
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
    // A checkpoint waits for the disk; the writer makes them. 16 MB at most until then.
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

/** Checked through a read-only connection: a writable one would checkpoint the log into a foreign file when it closes. */
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

/** The install script runs also where npm is configured to run none. */
const REBUILD =
  "better-sqlite3 has no native build for this Node.js; make it with: npm rebuild better-sqlite3 --ignore-scripts=false";

/**
 * What to do about an error that `better-sqlite3` throws without a native build which this Node.js can load: it was installed without its
 * script, or for another Node.js. Null for other errors.
 */
export function nativeBuildProblem(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const isUnloadable = "code" in error && error.code === "ERR_DLOPEN_FAILED";
  return isUnloadable || error.message.startsWith("Could not locate the bindings file") ? REBUILD : null;
}

/** Why a file could not be opened, as {@link DatabaseOpenError} says it. */
export function openProblem(error: unknown): string {
  const unbuilt = nativeBuildProblem(error);
  if (unbuilt !== null) return unbuilt;
  const code = error instanceof Database.SqliteError ? error.code : "";
  switch (faultOf(error)) {
    case "busy":
      return "another process holds it locked";
    case "full":
      return "the disk is full";
    case "read-only":
      return "it cannot be written: its file, directory or file system is read-only";
    case "damaged":
      return code === "SQLITE_NOTADB"
        ? "it is not a database, or its beginning is damaged"
        : "it is damaged or cut short; restore a backup";
    case "failing":
      return `its files could not be opened, read or written (${code})`;
    default:
      return messageOf(error);
  }
}
