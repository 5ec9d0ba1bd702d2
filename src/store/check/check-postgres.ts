import pg from "pg";
import { DigestSeal } from "../database/digest-seal.js";
import type { ScopeRow } from "../journal/journal-database.js";
import { ask, clientConfig, type ServerReader } from "../postgres/connections.js";
import { UserReads } from "../postgres/journal-reads.js";
import { LockKeys } from "../postgres/locks.js";
import { openingError, schemaOf } from "../postgres/open-postgres.js";
import { isConnectionLost } from "../postgres/postgres-faults.js";
import { type NamedScopeRow, readScopeRow, SCOPE_COLUMNS } from "../postgres/rows.js";
import { SCHEMA } from "../postgres/schema.js";
import { MOST_FINDINGS, nameOfScope, problemOf } from "./check-database.js";
import { type CheckedScope, RECORDS_AT_ONCE, ScopeRecords } from "./scope-records.js";

const SCOPES = {
  text: `select ${SCOPE_COLUMNS} from ${SCHEMA}.scopes s where s.scope_id > $1 order by s.scope_id limit $2`,
};
const SCOPE = { text: `select ${SCOPE_COLUMNS} from ${SCHEMA}.scopes s where s.scope_id = $1` };
const MEMORIES = { text: `select unnest(hashes) as hash from ${SCHEMA}.known_memories where scope_id = $1` };
const RESPONSES = { text: `select request_id as "requestId" from ${SCHEMA}.responses where scope_id = $1` };

/** A scope as it stood at one moment, for whoever compares what is stored of it. */
export interface ScopeSnapshot {
  readonly row: ScopeRow;
  readonly records: Pick<UserReads, "list" | "read" | "withRequests" | "shared">;
  load(): ReturnType<UserReads["load"]>;
  /** Hashes of the memories by which walks find the scope. */
  memories(): Promise<readonly number[]>;
  /** Requests that stored responses refer to. */
  responses(): Promise<readonly { readonly requestId: string }[]>;
}

/** Reads a server's journal scope by scope over a connection of its own, while instances write. Changes and migrates nothing. */
class JournalSnapshots {
  private constructor(
    private readonly client: pg.Client,
    readonly digests: DigestSeal,
  ) {}

  /** Throws `DatabaseOpenError` where the server cannot be reached, and where the schema is not this version's. */
  static async open(url: string): Promise<JournalSnapshots> {
    const client = new pg.Client({ ...clientConfig(url), pipeline: true });
    // What fails then is the statement under way.
    client.on("error", () => {});
    try {
      await client.connect();
      const { applied, known } = await schemaOf(client);
      if (applied === 0) throw new Error("it has no tables of memstem's");
      if (applied < known) throw new Error("its tables are those of an earlier version of memstem");
      const { rows } = await client.query<{ key: Buffer }>(`select key from ${SCHEMA}.digest_keys where id = 1`);
      const key = rows[0]?.key;
      if (key === undefined) throw new Error("the key that seals its digests is missing");
      return new JournalSnapshots(client, new DigestSeal(() => key));
    } catch (error) {
      await client.end().catch(() => {});
      throw openingError(url, error);
    }
  }

  /** Numbers of scopes after one, in order; 0 begins. */
  async scopeIds(after: number, most: number): Promise<readonly number[]> {
    return (await ask<NamedScopeRow & object>(this.client, SCOPES, [after, most])).map(({ scopeId }) => scopeId);
  }

  /** Reads of one scope, all of the same moment; null where it is gone. */
  async of<T>(scopeId: number, work: (snapshot: ScopeSnapshot) => Promise<T>): Promise<T | null> {
    const { client } = this;
    await client.query("begin isolation level repeatable read read only");
    try {
      const [found] = await ask<NamedScopeRow & object>(client, SCOPE, [scopeId]);
      return found === undefined ? null : await work(this.#snapshot(readScopeRow(found)));
    } finally {
      await client.query("rollback").catch(() => {});
    }
  }

  close(): Promise<void> {
    return this.client.end();
  }

  #snapshot(row: ScopeRow): ScopeSnapshot {
    const { client } = this;
    const reader: ServerReader = { read: (statement, values) => ask(client, statement, values) };
    const records = new UserReads(reader, new LockKeys(this.digests));
    const of = [row.scopeId];
    return {
      row,
      records,
      load: () => records.load(row.scope),
      memories: async () => (await ask<{ hash: number }>(client, MEMORIES, of)).map(({ hash }) => hash >>> 0),
      responses: () => ask<{ requestId: string }>(client, RESPONSES, of),
    };
  }
}

/** Scopes that are listed together. */
const SCOPES_AT_ONCE = 500;

/** Result of a check of a server's database. Names users, never text. */
export interface ServerCheck {
  readonly scopes: number;
  readonly requests: number;
  /** A line each; empty: none. */
  readonly findings: readonly string[];
}

/**
 * Checks every scope on a PostgreSQL server as `checkDatabase` does those of a file: each in one read-only transaction, while instances run.
 * Pages and indexes are the server's own to check (`pg_amcheck`). Throws `DatabaseOpenError`.
 */
export async function checkPostgres(url: string): Promise<ServerCheck> {
  const snapshots = await JournalSnapshots.open(url);
  const findings: string[] = [];
  let scopes = 0;
  let requests = 0;
  try {
    for (let after = 0; findings.length < MOST_FINDINGS; ) {
      const ids = await snapshots.scopeIds(after, SCOPES_AT_ONCE);
      for (const id of ids) {
        if (findings.length >= MOST_FINDINGS) break;
        await snapshots.of(id, async (snapshot) => {
          scopes++;
          const name = nameOfScope(snapshot.row.scope);
          try {
            const checked = await checkScope(snapshots, snapshot);
            requests += checked.requests;
            for (const problem of checked.problems) findings.push(`${name}: ${problem}`);
          } catch (error) {
            // Nothing is wrong with the scope then.
            if (isConnectionLost(error)) throw openingError(url, error);
            findings.push(`${name}: ${problemOf(error)}`);
          }
        });
      }
      const last = ids.at(-1);
      if (last === undefined) break;
      after = last;
    }
  } finally {
    await snapshots.close();
  }
  return { scopes, requests, findings };
}

async function checkScope({ digests }: JournalSnapshots, snapshot: ScopeSnapshot): Promise<CheckedScope> {
  const { row, records: reads } = snapshot;
  const { scopeId } = row;
  const records = new ScopeRecords(scopeId, await snapshot.load(), digests);
  for (let after = 0; ; ) {
    const keys = await reads.list(scopeId, { after, most: RECORDS_AT_ONCE });
    records.takeRecords(await reads.read(keys.map(({ seq }) => seq)), keys.length);
    const last = keys.at(-1);
    if (last === undefined) break;
    after = last.n;
  }
  for (const piece of records.referred) records.takeShared(piece, await reads.shared(scopeId, piece));
  const found = [];
  for (const ids of records.requestIds) found.push(await reads.withRequests({ scopeId }, ids));
  return records.finish({
    memories: await snapshot.memories(),
    responses: await snapshot.responses(),
    found: found.flat(),
  });
}
