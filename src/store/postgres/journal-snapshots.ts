import pg from "pg";
import { DigestSeal } from "../database/digest-seal.js";
import type { ScopeRow } from "../journal/journal-database.js";
import { ask, clientConfig, type ServerReader } from "./connections.js";
import { LockKeys } from "./lock-keys.js";
import { openingError, schemaOf } from "./open-postgres.js";
import { type NamedScopeRow, readScopeRow, SCOPE_COLUMNS } from "./rows.js";
import { SCHEMA } from "./schema.js";
import { UserReads } from "./user-reads.js";

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
export class JournalSnapshots {
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

  /** Numbers of scopes behind one, in order; 0 begins. */
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
