import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import pg from "pg";
import { StoredApiKeys } from "../database/api-keys.js";
import { DatabaseOpenError, refuseOtherSchema } from "../open-error.js";
import { ask, Connections, clientConfig, SCHEMA } from "./connections.js";
import { faultOfPostgres } from "./postgres-faults.js";
import { PostgresJournal } from "./postgres-journal.js";

/** An open database on a PostgreSQL server. Closing the journal closes it. */
export interface OpenPostgres {
  readonly journal: PostgresJournal;
  readonly keys: StoredApiKeys;
}

// Equally deep in `src` and `dist`.
const MIGRATIONS = fileURLToPath(new URL("../../../migrations/postgres", import.meta.url));
const MIGRATIONS_TABLE = "migrations";

/** The advisory lock that instances which start together migrate under, one after the other. */
const MIGRATION_LOCK = "7883957431812026";

/**
 * Opens the database of a URL, and brings its schema `memprefix` up to date. Throws {@link DatabaseOpenError}, whose message has neither
 * user nor password, where the server cannot be reached or written to, or another version of memprefix wrote the schema.
 */
export async function openPostgres(url: string): Promise<OpenPostgres> {
  try {
    const sealKey = await prepareDatabase(url);
    const connections = new Connections(url);
    return { journal: new PostgresJournal(connections, url, sealKey), keys: keysOnServer(connections) };
  } catch (error) {
    throw openingError(url, error);
  }
}

/** Milliseconds for which an instance's requests share what it read of API keys. */
const SHARED_MS = 50;

function keysOnServer(connections: Connections): StoredApiKeys {
  return new StoredApiKeys({
    sharedMs: SHARED_MS,
    read: (statement, values) => connections.read(statement, values),
    change: (...statements) =>
      connections.change(async (client) => {
        const answers = await Promise.all([
          client.query("begin"),
          ...statements.map(([statement, values]) => ask<object>(client, statement, values)),
          client.query("commit"),
        ]);
        return answers.at(-2) as object[];
      }),
  });
}

/** Why the database of a URL could not be opened, without its user and password. */
function openingError(url: string, error: unknown): DatabaseOpenError {
  return new DatabaseOpenError(placeOf(url), reasonOf(error), { cause: error });
}

/** Migrates; gives the key that seals digests. */
async function prepareDatabase(url: string): Promise<Buffer> {
  const client = new pg.Client(clientConfig(url));
  // What fails then is the statement under way.
  client.on("error", () => {});
  try {
    await client.connect();
    const encoding = await client.query<{ encoding: string }>("select current_setting('server_encoding') as encoding");
    if (encoding.rows[0]?.encoding !== "UTF8") throw new Error("its encoding is not UTF8");
    await client.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
    await migrateToLatest(client);
    const made = [1, randomBytes(32)];
    await client.query(`insert into ${SCHEMA}.digest_keys (id, key) values ($1, $2) on conflict do nothing`, made);
    const { rows } = await client.query<{ key: Buffer }>(`select key from ${SCHEMA}.digest_keys where id = 1`);
    return rows[0]?.key as Buffer;
  } finally {
    await client.end();
  }
}

/** All missing steps in one transaction. The caller holds the lock. Rejects as {@link refuseOtherSchema} throws. */
async function migrateToLatest(client: pg.Client): Promise<void> {
  const known = readMigrationFiles({ migrationsFolder: MIGRATIONS }).map(({ folderMillis }) => folderMillis);
  const applied = await appliedMigrations(client);
  refuseOtherSchema(applied, known, `an empty database, or drop its schema ${SCHEMA}`);
  // Without anything to do, no right to create anything is needed.
  if (applied.length === known.length) return;
  await migrate(drizzle(client), {
    migrationsFolder: MIGRATIONS,
    migrationsSchema: SCHEMA,
    migrationsTable: MIGRATIONS_TABLE,
  });
}

/** When the applied migrations were made, oldest first. */
async function appliedMigrations(client: pg.Client): Promise<readonly unknown[]> {
  const table = `${SCHEMA}.${MIGRATIONS_TABLE}`;
  const found = await client.query<{ found: string | null }>("select to_regclass($1)::text as found", [table]);
  if ((found.rows[0]?.found ?? null) === null) return [];
  const { rows } = await client.query<{ at: unknown }>(`select created_at as at from ${table} order by created_at`);
  return rows.map(({ at }) => at);
}

/** Host and database of a URL. */
function placeOf(url: string): string {
  try {
    const { host, pathname } = new URL(url);
    return `postgres://${host}${pathname}`;
  } catch {
    return "postgres";
  }
}

function reasonOf(error: unknown): string {
  const message = error instanceof Error && error.message !== "" ? error.message : String(error);
  switch (faultOfPostgres(error)) {
    case "unreachable":
      return `its server cannot be reached, or takes no connection (${message})`;
    case "read-only":
      return "it cannot be written: its server is a standby, or the user's transactions are read-only";
    case "full":
      return "the server's disk is full";
    default:
      return message;
  }
}
