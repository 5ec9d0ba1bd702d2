import { fileURLToPath } from "node:url";
import type Database from "better-sqlite3";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { type ChatMessage, type Digest, digestOf, meaningDigest, messageDigest } from "../../core/index.js";
import { DigestSeal } from "./digest-seal.js";
import type * as schema from "./schema.js";
import { faultOf } from "./sqlite-faults.js";

/** A file's schema: migrations applied, of those that this version knows. */
export interface SchemaProgress {
  readonly applied: number;
  readonly known: number;
}

// Equally deep in `src` and `dist`.
const MIGRATIONS = fileURLToPath(new URL("../../../migrations", import.meta.url));

/** Processes that start together may all try to migrate: the later ones find it done when they retry. */
const MIGRATION_ATTEMPTS = 3;

/**
 * Brings a file's schema up to date, all steps in one transaction.
 *
 * @param onBegin called first where the file has an earlier schema
 */
export function migrateToLatest(
  sqlite: Database.Database,
  orm: BetterSQLite3Database<typeof schema>,
  onBegin: (schema: SchemaProgress) => void,
): void {
  provideMigrationFunctions(sqlite);
  const progress = sqlite.memory ? null : schemaOf(sqlite);
  if (progress !== null && progress.applied > 0 && progress.applied < progress.known) {
    onBegin(progress);
    rewriteAfterMigration(sqlite);
  }
  migrateTogether(sqlite, orm);
}

/** Throws where the file is another program's, or a newer version's. */
export function schemaOf(sqlite: Database.Database): SchemaProgress {
  const tables = sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all();
  const files = readMigrationFiles({ migrationsFolder: MIGRATIONS });
  if (!tables.includes("__drizzle_migrations")) {
    if (tables.length > 0) throw new Error("it is the database of another program");
    return { applied: 0, known: files.length };
  }
  const last = Number(sqlite.prepare("select max(created_at) from __drizzle_migrations").pluck().get() ?? 0);
  if (last > (files.at(-1)?.folderMillis ?? 0)) throw new Error("it was written by a newer version of memstem");
  return { applied: files.filter(({ folderMillis }) => folderMillis <= last).length, known: files.length };
}

/**
 * What a migration drops may stay in the free space of a page. Counts as a pending deletion (see `FileErasure`), before the steps, so that
 * a kill in between loses nothing.
 */
function rewriteAfterMigration(sqlite: Database.Database): void {
  sqlite.pragma(`user_version = ${1 + Number(sqlite.pragma("user_version", { simple: true }))}`);
}

function migrateTogether(sqlite: Database.Database, orm: BetterSQLite3Database<typeof schema>): void {
  for (let attempt = 1; ; attempt++) {
    try {
      migrate(orm, { migrationsFolder: MIGRATIONS });
      return;
    } catch (error) {
      if (sqlite.inTransaction) sqlite.exec("rollback");
      if (attempt === MIGRATION_ATTEMPTS || faultOf(error) !== null) throw error;
    }
  }
}

const DIGEST = /^[\w-]{43}$/;

/** Registers the functions that the migrations call for what SQL cannot do. */
function provideMigrationFunctions(sqlite: Database.Database): void {
  let key: Buffer | undefined;
  const seal = new DigestSeal(() => key as Buffer);
  sqlite.function("sealed", { deterministic: true }, (digest: unknown, digestKey: unknown) => {
    key ??= digestKey as Buffer;
    if (digest === null) return null;
    const text = String(digest);
    // A damaged row must not stop the migration: its digest matches nothing, as before.
    return seal.seal(DIGEST.test(text) ? (text as Digest) : digestOf(text));
  });
  sqlite.function("message_meaning", { deterministic: true }, (message: unknown) => {
    const read = JSON.parse(message as string) as ChatMessage;
    const exact = messageDigest(read);
    const meant = meaningDigest(read, exact);
    return meant === exact ? null : meant;
  });
  sqlite.function("message_digest", { deterministic: true }, (message: unknown) =>
    messageDigest(JSON.parse(message as string) as ChatMessage),
  );
}
