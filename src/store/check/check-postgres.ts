import pg from "pg";
import { DigestSeal } from "../database/digest-seal.js";
import type { SqlReader } from "../database/sql.js";
import { ask, clientConfig, POSTGRES_DIALECT, SCHEMA } from "../postgres/connections.js";
import { openingError, schemaOf } from "../postgres/open-postgres.js";
import { isConnectionLost } from "../postgres/postgres-faults.js";
import { PostgresReads } from "../postgres/postgres-journal.js";
import { checkScopes, type DatabaseCheck } from "./check-database.js";

/** Result of a check of a server's database. Names users, never text. */
export type ServerCheck = Omit<DatabaseCheck, "schema">;

/**
 * Checks every scope on a PostgreSQL server as `checkDatabase` does those of a file: each in one read-only transaction, while instances run.
 * Pages and indexes are the server's own to check (`pg_amcheck`). Changes and migrates nothing. Rejects with `DatabaseOpenError` where the
 * server cannot be reached, and where the schema is not this version's.
 */
export async function checkPostgres(url: string): Promise<ServerCheck> {
  const client = new pg.Client({ ...clientConfig(url), pipeline: true });
  // What fails then is the statement under way.
  client.on("error", () => {});
  try {
    const digests = await opened(client);
    const reader: SqlReader = {
      dialect: POSTGRES_DIALECT,
      read: (statement, values) => ask(client, statement, values),
    };
    const together = async <T>(work: () => Promise<T>) => {
      await client.query("begin isolation level repeatable read read only");
      try {
        return await work();
      } finally {
        await client.query("rollback").catch(() => {});
      }
    };
    const refuse = (error: unknown) => {
      // Nothing is wrong with the scope then.
      if (isConnectionLost(error)) throw error;
    };
    const findings: string[] = [];
    const reads = new PostgresReads(reader, digests);
    return { ...(await checkScopes({ digests, reads, reader, together, refuse }, findings)), findings };
  } catch (error) {
    throw openingError(url, error);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Connects; gives the database's seal. */
async function opened(client: pg.Client): Promise<DigestSeal> {
  await client.connect();
  const { applied, known } = await schemaOf(client);
  if (applied === 0) throw new Error("it has no tables of memprefix's");
  if (applied < known) throw new Error("its tables are those of an earlier version of memprefix");
  await client.query(`set search_path = ${SCHEMA}`);
  const { rows } = await client.query<{ key: Buffer }>("select key from digest_keys where id = 1");
  const key = rows[0]?.key;
  if (key === undefined) throw new Error("the key that seals its digests is missing");
  return new DigestSeal(() => key);
}
