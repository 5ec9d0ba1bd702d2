import { closeSync, copyFileSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ERASURE_MARKER, STORE_DATABASES } from "../memory/embedded-store.js";
import { InvalidRequestError } from "../service/base/errors.js";
import { checkDatabase, checkStructure, rebuildIndexes } from "../store/check/check-database.js";
import { checkUsage } from "../store/check/check-usage.js";
import { DatabaseOpenError } from "../store/database/database-open-error.js";
import {
  backupDatabase,
  type DatabaseConnection,
  makeDirectory,
  openDatabase,
} from "../store/database/open-database.js";
import { faultOf } from "../store/database/sqlite-faults.js";
import { BackupError } from "./error-text.js";
import type { Settings } from "./setting-list.js";

/** memprefix's own database, in the data directory. */
const DATABASE = "memprefix.db";
/** The usage log, in it. */
export const USAGE_DATABASE = "usage.db";
/** The embedded Mem0's directory, in it. */
const MEM0 = "mem0";

/**
 * `memprefix check`: checks every database of a data directory, also while a service runs on it, and prints what is wrong with each.
 * True where nothing is wrong. Throws `DatabaseOpenError` where the directory has no database of ours.
 *
 * @param isRebuilding makes the indexes of memprefix's own database again first
 */
async function runCheck(directory: string, print: (line: string) => void, isRebuilding: boolean): Promise<boolean> {
  if (isRebuilding && existsSync(join(directory, DATABASE))) rebuildIndexes(join(directory, DATABASE));
  const { scopes, requests, findings } = await checkDatabase(join(directory, DATABASE));
  let isSound = report(DATABASE, `${scopes} scopes, ${requests} requests`, findings, print);
  if (existsSync(join(directory, USAGE_DATABASE))) {
    const { prompts, findings: ofUsage } = checkUsage(join(directory, USAGE_DATABASE));
    isSound = report(USAGE_DATABASE, `figures of ${prompts} prompts`, ofUsage, print) && isSound;
  }
  for (const name of mem0Databases(directory)) {
    const file = join(directory, MEM0, name);
    isSound = report(`${MEM0}/${name}`, "memories", checkStructure(file), print) && isSound;
  }
  return isSound;
}

/**
 * `memprefix check`: of the directory that it names, else of where the settings say that users' data is. True where nothing is wrong. Throws
 * `DatabaseOpenError`, and `InvalidRequestError` where a server's indexes are to be made again.
 */
export async function checkNamed(
  directory: string | undefined,
  { dataDir, databaseUrl }: Pick<Settings, "dataDir" | "databaseUrl">,
  print: (line: string) => void,
  isRebuilding = false,
): Promise<boolean> {
  if (directory !== undefined || databaseUrl === undefined) return runCheck(directory ?? dataDir, print, isRebuilding);
  if (!isRebuilding) return runServerCheck(databaseUrl, print);
  const message = "is a server's: its own `reindex schema memprefix` makes indexes again";
  throw new InvalidRequestError([{ field: "MEMPREFIX_DATABASE_URL", message }]);
}

/**
 * `memprefix check` of a PostgreSQL database: the scopes in it, while instances run. True where nothing is wrong. Throws `DatabaseOpenError` where it
 * cannot be reached, or its tables are not this version's.
 */
async function runServerCheck(url: string, print: (line: string) => void): Promise<boolean> {
  const { checkPostgres } = await import("../store/check/check-postgres.js");
  const { placeOf } = await import("../store/postgres/open-postgres.js");
  const { scopes, requests, findings } = await checkPostgres(url);
  return report(placeOf(url), `${scopes} scopes, ${requests} requests`, findings, print);
}

/**
 * `memprefix backup`: copies a data directory, each database consistently, while a service runs on it. Mem0's memories are copied
 * first: what is forgotten between the two copies is forgotten in memprefix's, and not sent. The usage log is copied last: it has no user who
 * is deleted meanwhile. A damaged one is left out, as everything else goes on without it.
 * The copy appears whole or not at all. Rejects where it exists already, or cannot be written.
 */
export async function runBackup(from: string, to: string, print: (line: string) => void): Promise<void> {
  if (to === "") throw new BackupError('""', "it names no directory");
  const target = resolve(to);
  if (existsSync(target)) throw new BackupError(to, "it exists already");
  if (!existsSync(join(from, DATABASE))) throw new DatabaseOpenError(join(from, DATABASE), "there is no such file");
  const partial = `${target}.partial`;
  try {
    rmSync(partial, { recursive: true, force: true });
    makeDirectory(partial);
  } catch (error) {
    throw new BackupError(to, (error as Error).message, { cause: error });
  }
  try {
    const databases = mem0Databases(from);
    if (databases.length > 0) mkdirSync(join(partial, MEM0));
    for (const file of [...databases.map((name) => join(MEM0, name)), DATABASE])
      await backupDatabase(join(from, file), join(partial, file));
    await backupUsage(from, partial, print);
    // What Mem0 deleted and had no time to overwrite is overwritten where the copy is used.
    const marker = join(MEM0, ERASURE_MARKER);
    if (existsSync(join(from, marker))) copyFileSync(join(from, marker), join(partial, marker));
    for (const folder of databases.length > 0 ? [join(partial, MEM0), partial] : [partial]) syncDirectory(folder);
    renameSync(partial, target);
    syncDirectory(dirname(target));
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    if (faultOf(error) === null) throw error;
    throw new BackupError(to, (error as Error).message, { cause: error });
  }
  print(`${from} is copied to ${to}`);
}

async function backupUsage(from: string, to: string, print: (line: string) => void): Promise<void> {
  if (!existsSync(join(from, USAGE_DATABASE))) return;
  try {
    await backupDatabase(join(from, USAGE_DATABASE), join(to, USAGE_DATABASE));
  } catch (error) {
    if (faultOf(error) !== "damaged") throw error;
    rmSync(join(to, USAGE_DATABASE), { force: true });
    print(`${USAGE_DATABASE} is damaged, and not in the copy`);
  }
}

function mem0Databases(directory: string): string[] {
  return STORE_DATABASES.filter((name) => existsSync(join(directory, MEM0, name)));
}

function report(name: string, said: string, findings: readonly string[], print: (line: string) => void): boolean {
  const outcome = findings.length === 0 ? "nothing is wrong" : `${findings.length} findings`;
  print(`${name}: ${said}: ${outcome}`);
  for (const finding of findings) print(`${name}: ${finding}`);
  return findings.length === 0;
}

/** Syncs a directory, so that the names in it are durable. */
function syncDirectory(directory: string): void {
  const handle = openSync(directory, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

type Place = Pick<Settings, "dataDir" | "databaseUrl">;

/** Opens the database in the data directory, creating it if it is missing. Throws as {@link fileDirectory} does, and `DatabaseOpenError`. */
export function openDataDir(settings: Place): DatabaseConnection {
  return openDatabase(join(fileDirectory(settings), "memprefix.db"));
}

/** The data directory. Throws `InvalidRequestError` where the database is a server's: then a file here is not the one that is meant. */
export function fileDirectory({ dataDir, databaseUrl }: Place): string {
  if (databaseUrl === undefined) return dataDir;
  const message =
    "is for memprefix serve, keys, explain, export and check: this command reads the file in MEMPREFIX_DATA_DIR";
  throw new InvalidRequestError([{ field: "MEMPREFIX_DATABASE_URL", message }]);
}

/**
 * For commands that only read: a misspelt directory must not be created and reported as empty. Returns the settings. Throws `DatabaseOpenError` where the data directory has no database.
 */
export function withDatabase<S extends Place>(settings: S): S {
  // A server's is there, or opening it fails.
  if (settings.databaseUrl !== undefined) return settings;
  const file = join(settings.dataDir, "memprefix.db");
  if (!existsSync(file))
    throw new DatabaseOpenError(file, "there is no such file; MEMPREFIX_DATA_DIR says which directory");
  return settings;
}
