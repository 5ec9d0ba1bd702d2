/*
 * postgres/: the journal on a PostgreSQL server, for any number of processes.
 * In: calls of `JournalDatabase`. Out: rows in the schema `memstem`, and `StaleScopeError` or `StoreUnavailableError`.
 * `GroupWriter` collects units, `commitGroup` is one transaction of them; `RecordReads` and `UserReads` read, `SmallWrites` adds other writes,
 * `PostgresJournal` the units; `Connections` has the connections, `openPostgres` makes all of it. Hot SQL is written by hand; `schema.ts` is what migrations come from.
 */

import type { FirstTokenTime, MemoryId, Scope, UserId } from "../../core/index.js";
import type { DeletionCounts } from "../api/store.js";
import { DigestSeal, type SealedDigest } from "../database/digest-seal.js";
import type {
  CountedDeletion,
  JournalDatabase,
  JournalUnit,
  ResponseRow,
  WrittenUnit,
} from "../journal/journal-database.js";
import { BackgroundVacuum } from "./background-vacuum.js";
import { ask, type Connections, type NamedStatement } from "./connections.js";
import { GroupWriter } from "./group-writer.js";
import { UserReads } from "./journal-reads.js";
import { LockKeys, lockBuckets } from "./locks.js";
import { agentColumn, numberOf } from "./rows.js";
import { SCHEMA } from "./schema.js";
import { deleteScopes, EVERYTHING, sendDeletion } from "./unit-changes.js";

/** How often a tenant's oldest responses are removed: once in so many uses. */
const USES_BETWEEN_REMOVALS = 64;

/** Names the locks of engines among other advisory locks of the database. */
const ENGINE_LOCKS = 0x6d656d74;

/** Stored, and nothing of its user deleted since: gives its number. */
const ALLOWED = `select s.scope_id from ${SCHEMA}.scopes s left join ${SCHEMA}.deletions d on d.bucket = $4
  where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3 and coalesce(d.users, 0) = $5 and coalesce(d.memories, 0) = $6`;
const NEXT_USE = `select coalesce(max(used), 0) + 1 from ${SCHEMA}.responses where tenant = $1`;

/** The request may be gone by now: withdrawn, expired or forgotten. */
const KEEP_RESPONSE: NamedStatement = {
  name: "keep_response",
  text: `with allowed as materialized (${ALLOWED}), use as materialized (${NEXT_USE}),
      continued as (update ${SCHEMA}.responses set used = (table use)
        where scope_id = (table allowed) and id = $13 and id <> $7)
    insert into ${SCHEMA}.responses (scope_id, id, tenant, used, request_id, held, sent_messages, sent, output)
    select scope_id, $7, $1, (table use), $8, $9, $10, $11, $12 from allowed
    where exists (select from ${SCHEMA}.journal j
      where j.request_id = $8 and j.scope_id = allowed.scope_id and j.kind = ${numberOf("composed")})
    on conflict (scope_id, id) do update set used = excluded.used, request_id = excluded.request_id, held = excluded.held,
      sent_messages = excluded.sent_messages, sent = excluded.sent, output = excluded.output`,
};
const REMOVE_OLDEST: NamedStatement = {
  name: "remove_oldest_responses",
  text: `delete from ${SCHEMA}.responses where tenant = $1
    and (select max(used) from ${SCHEMA}.responses where tenant = $1) % ${USES_BETWEEN_REMOVALS} = 0
    and used <= (select used from ${SCHEMA}.responses where tenant = $1 order by used desc limit 1 offset $2)`,
};

const RESPONSE_COLUMNS = `id, request_id as "requestId", held, sent_messages as "sentMessages", sent, output`;
const RESPONSE: NamedStatement = {
  name: "response",
  text: `select ${RESPONSE_COLUMNS} from ${SCHEMA}.responses where scope_id = $1 and id = $2`,
};
const RESPONSES: NamedStatement = {
  name: "responses",
  text: `select ${RESPONSE_COLUMNS} from ${SCHEMA}.responses where scope_id = $1 order by used, id collate "C"`,
};

const LAST_TIME = `coalesce((select number from ${SCHEMA}.first_token_times where engine = $1 order by number desc limit 1), 0)`;
const COUNT_TIMES: NamedStatement = { name: "count_times", text: `select ${LAST_TIME} as count` };
const TIMES: NamedStatement = {
  name: "times",
  text: `select uncached_tokens as "uncachedTokens", cached_tokens as "cachedTokens", ms from ${SCHEMA}.first_token_times
    where engine = $1 and number <= $2 and number > $2 - $3 order by number`,
};
const LOCK_ENGINE: NamedStatement = {
  name: "lock_engine",
  text: `select pg_advisory_xact_lock(${ENGINE_LOCKS}, hashtext($1))`,
};
const KEEP_TIME: NamedStatement = {
  name: "keep_time",
  text: `insert into ${SCHEMA}.first_token_times (engine, number, uncached_tokens, cached_tokens, ms)
    select $1, ${LAST_TIME} + 1, $2, $3, $4`,
};
const DROP_TIMES: NamedStatement = {
  name: "drop_times",
  text: `delete from ${SCHEMA}.first_token_times where engine = $1 and number <= ${LAST_TIME} - $2::integer`,
};

/** All of `JournalDatabase` that writes no records: responses, first-token times, whole users. */
class SmallWrites extends UserReads {
  constructor(
    protected readonly connections: Connections,
    keys: LockKeys,
  ) {
    super(connections, keys);
  }

  /**
   * See `JournalDatabase.deleteUser`. No commit of the user's is under way while its bucket is locked. Where its outcome is not heard of it is
   * done again: then it finds nothing, and is counted twice, which says no more than once.
   */
  async deleteUser(tenant: string, userId: UserId, { memoryId, isInSource }: CountedDeletion): Promise<number> {
    const user = { tenant, userId };
    const bucket = this.keys.bucketOf(user);
    let found = 0;
    await this.connections.changeAgain(async (client) => {
      const [, , rows] = await Promise.all([
        client.query("begin"),
        lockBuckets(client, [{ bucket, isDeleting: true }]),
        ask<{ scopeId: number }>(
          client,
          {
            name: "scopes_to_delete",
            text: `select scope_id as "scopeId" from ${SCHEMA}.scopes where tenant = $1 and user_id = $2`,
          },
          [tenant, userId],
        ),
      ]);
      const scopeIds = rows.map(({ scopeId }) => scopeId);
      found = Math.max(found, scopeIds.length);
      await Promise.all([
        ...deleteScopes(client, scopeIds),
        ask(
          client,
          {
            name: "delete_forgotten",
            text: `delete from ${SCHEMA}.forgotten_memories where tenant = $1 and user_id = $2`,
          },
          [tenant, userId],
        ),
        ...sendDeletion(client, bucket, user, memoryId, isInSource),
        client.query("commit"),
      ]);
    });
    return found;
  }

  async deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): Promise<void> {
    const text = `delete from ${SCHEMA}.source_deletions where tenant = $1 and user_id = $2 and memory_id = $3`;
    await this.connections.read({ name: "deleted_from_source", text }, [tenant, userId, memoryId ?? EVERYTHING]);
  }

  async findResponse(scopeId: number, id: SealedDigest): Promise<ResponseRow | null> {
    const [row] = await this.connections.read<ResponseRow & object>(RESPONSE, [scopeId, id]);
    return row ?? null;
  }

  responsesOf(scopeId: number): Promise<ResponseRow[]> {
    return this.connections.read<ResponseRow & object>(RESPONSES, [scopeId]);
  }

  async keepResponse(
    scope: Scope,
    deletions: DeletionCounts,
    row: ResponseRow,
    continued: SealedDigest | null,
    most: number,
  ): Promise<void> {
    const { tenant, userId } = scope;
    const bucket = this.keys.bucketOf(scope);
    const { id, requestId, held, sentMessages, sent, output } = row;
    const allowed = [tenant, userId, agentColumn(scope), bucket, deletions.users, deletions.memories];
    await this.connections.changeAgain((client) =>
      Promise.all([
        client.query("begin"),
        lockBuckets(client, [{ bucket, isDeleting: false }]),
        ask(client, KEEP_RESPONSE, [...allowed, id, requestId, held, sentMessages, sent, output, continued]),
        ask(client, REMOVE_OLDEST, [tenant, most]),
        client.query("commit"),
      ]),
    );
  }

  async countFirstTokenTimes(engine: string): Promise<number> {
    const [row] = await this.connections.read<{ count: number }>(COUNT_TIMES, [engine]);
    return row?.count ?? 0;
  }

  firstTokenTimes(engine: string, count: number, most: number): Promise<FirstTokenTime[]> {
    return this.connections.read<FirstTokenTime & object>(TIMES, [engine, count, most]);
  }

  async keepFirstTokenTime(engine: string, { uncachedTokens, cachedTokens, ms }: FirstTokenTime, most: number) {
    await this.connections.change((client) =>
      Promise.all([
        client.query("begin"),
        ask(client, LOCK_ENGINE, [engine]),
        ask(client, KEEP_TIME, [engine, uncachedTokens, cachedTokens, ms]),
        ask(client, DROP_TIMES, [engine, most]),
        client.query("commit"),
      ]),
    );
  }
}

/** A journal in PostgreSQL. */
export class PostgresJournal extends SmallWrites implements JournalDatabase {
  readonly #writer: GroupWriter;
  readonly #vacuum: BackgroundVacuum;

  constructor(
    connections: Connections,
    url: string,
    readonly sealKey: Buffer,
  ) {
    const keys = new LockKeys(new DigestSeal(() => sealKey));
    super(connections, keys);
    this.#writer = new GroupWriter(connections, keys);
    this.#vacuum = new BackgroundVacuum(url);
  }

  async write(unit: JournalUnit): Promise<WrittenUnit> {
    const [written] = await this.writeTogether([unit]);
    return written as WrittenUnit;
  }

  async writeTogether(units: readonly JournalUnit[]): Promise<readonly WrittenUnit[]> {
    if (units.length === 0) return [];
    const written = await this.#writer.write(units);
    if (units.some(({ erased }) => erased !== undefined)) this.#vacuum.request();
    return written;
  }

  override async deleteUser(tenant: string, userId: UserId, deletion: CountedDeletion): Promise<number> {
    const deleted = await super.deleteUser(tenant, userId, deletion);
    this.#vacuum.request();
    return deleted;
  }

  override async deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): Promise<void> {
    await super.deletedFromSource(tenant, userId, memoryId);
    this.#vacuum.request();
  }

  idle(): Promise<void> {
    return this.#writer.idle();
  }

  /** Resolves when the vacuums that erasures asked for have ended. */
  vacuumed(): Promise<void> {
    return this.#vacuum.done();
  }

  /** Nothing: the log is the server's. */
  async emptyLog(): Promise<void> {}

  /** Nothing: what a vacuum frees is overwritten when the server uses it. */
  async erased(): Promise<void> {}

  async ping(): Promise<void> {
    await this.connections.read({ text: "select 1" });
  }

  async close(): Promise<void> {
    await this.idle();
    await this.#vacuum.close();
    await this.connections.close();
  }
}
