import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import pg from "pg";
import { messageOf } from "../../core/text/thrown.js";
import type { Database } from "../database.js";
import { DatabaseOpenError, refuseOtherSchema } from "../open-error.js";
import { StoreUnavailableError } from "../store.js";
import { Connections, clientConfig } from "./connections.js";
import { PostgresDatabase } from "./database.js";
import { faultOfPostgres } from "./faults.js";
import { SCHEMA, Statements } from "./statements.js";

// Equally deep in `src` and `dist`.
const MIGRATIONS = fileURLToPath(new URL("../../../migrations/postgres", import.meta.url));
const MIGRATIONS_TABLE = `${SCHEMA}.migrations`;

/** An advisory lock: instances that start together migrate one after the other. */
const MIGRATION_LOCK = "7883957431812026";

/** PostgreSQL 13 introduced `xid8`. */
const OLDEST_SERVER = 130_000;

/**
 * Opens a database and migrates its schema `memprefix`. Rejects with {@link DatabaseOpenError}, which names neither user nor password, if the
 * server cannot be reached or written to, or a newer version wrote the schema.
 */
export async function openPostgres(url: string): Promise<Database> {
  try {
    const isPooled = await prepareServer(url);
    return new PostgresDatabase(new Connections(url, new Statements(isPooled)));
  } catch (error) {
    throw new DatabaseOpenError(placeOf(url), reasonOf(error), { cause: error });
  }
}

/** Checks and migrates. Gives whether a pooler is in between. */
async function prepareServer(url: string): Promise<boolean> {
  const client = new pg.Client(clientConfig(url));
  // The running statement rejects too.
  client.on("error", () => {});
  try {
    await client.connect();
    await checkServer(client);
    await migrate(client);
    return await isPooled(client);
  } finally {
    await client.end();
  }
}

const CHECK = `select current_setting('server_encoding') as encoding, current_setting('server_version_num')::integer as version,
  current_setting('transaction_read_only') as "readOnly"`;

async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ encoding: string; version: number; readOnly: string }>(CHECK);
  const { encoding, version, readOnly } = rows[0] ?? { version: 0 };
  if (version < OLDEST_SERVER) throw new Error("its server is older than PostgreSQL 13");
  if (encoding !== "UTF8") throw new Error("its encoding is not UTF8");
  if (readOnly === "on") throw new StoreUnavailableError("read-only");
}

/** A pooler greets with a made-up process number. */
async function isPooled(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ id: number }>("select pg_backend_pid() as id");
  return !("processID" in client) || client.processID !== rows[0]?.id;
}

/** Like drizzle's `migrate`, but in one transaction with the lock, as a pooler needs it. */
async function migrate(client: pg.Client): Promise<void> {
  const known = readMigrationFiles({ migrationsFolder: MIGRATIONS });
  await client.query("begin");
  await client.query("select pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
  const applied = await appliedMigrations(client);
  const times = known.map(({ folderMillis }) => folderMillis);
  refuseOtherSchema(applied, times, `an empty database, or drop its schema ${SCHEMA}`);
  const missing = known.slice(applied.length);
  // Otherwise the user needs no right to create tables.
  if (missing.length > 0) {
    await client.query(`create schema if not exists ${SCHEMA}`);
    const columns = "id serial primary key, hash text not null, created_at bigint";
    await client.query(`create table if not exists ${MIGRATIONS_TABLE} (${columns})`);
  }
  for (const { sql, hash, folderMillis } of missing) {
    for (const statement of sql) await client.query(statement);
    await client.query(`insert into ${MIGRATIONS_TABLE} (hash, created_at) values ($1, $2)`, [hash, folderMillis]);
  }
  await client.query("commit");
}

async function appliedMigrations(client: pg.Client): Promise<readonly unknown[]> {
  const found = await client.query("select 1 where to_regclass($1) is not null", [MIGRATIONS_TABLE]);
  if (found.rows.length === 0) return [];
  const applied = `select created_at as at from ${MIGRATIONS_TABLE} order by created_at`;
  return (await client.query<{ at: unknown }>(applied)).rows.map(({ at }) => at);
}

function placeOf(url: string): string {
  try {
    const { host, pathname } = new URL(url);
    return `postgres://${host}${pathname}`;
  } catch {
    return "postgres";
  }
}

function reasonOf(error: unknown): string {
  const message = messageOf(error).replace(/\b(user|role)(?: "[^"]*"|: \S+)/g, "$1");
  const fault = faultOfPostgres(error);
  if (fault === "unreachable") return `its server cannot be reached, or takes no connection (${message})`;
  return fault === "read-only"
    ? "it cannot be written: its server is a standby, or the user's transactions are read-only"
    : message;
}
