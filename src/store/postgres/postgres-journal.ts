/*
 * postgres/: the journal on a PostgreSQL server, for any number of processes.
 * In: calls of `JournalDatabase`. Out: rows in the schema `memprefix`, and `StaleScopeError` or `StoreUnavailableError`.
 * `GroupWriter` collects units, `commitGroup` is one transaction of them; `PostgresJournal` reads, and writes everything else; `Connections` has
 * the connections, whose sessions find tables in that schema; `openPostgres` makes all of it. `migrations/postgres/schema.ts`
 * is what migrations come from.
 */

import type { FirstTokenTime, MemoryId, Scope, UserId } from "../../core/index.js";
import type { DeletionCounts } from "../api/store.js";
import { bucketOf, DigestSeal } from "../database/digest-seal.js";
import { named } from "../database/sql.js";
import type {
  JournalDatabase,
  JournalUnit,
  ResponseRow,
  ScopeRowsFound,
  WrittenUnit,
} from "../journal/journal-database.js";
import {
  EVERYTHING,
  JournalReads,
  type NamedScopeRow,
  numberOf,
  readScopeRow,
  SCOPE_COLUMNS,
  scopeKey,
  USES_BETWEEN_REMOVALS,
  WRITES,
} from "../journal/journal-sql.js";
import { BackgroundVacuum } from "./background-vacuum.js";
import { ask, type Connections } from "./connections.js";
import { lockBuckets } from "./group-commit.js";
import { GroupWriter } from "./group-writer.js";
import { deleteScopes, sendDeletion } from "./unit-changes.js";

/** Names the locks of engines among other advisory locks of the database. */
const ENGINE_LOCKS = 0x6d656d74;

/** Rows of known memories per page, plus the rest of the last scope: some milliseconds. */
const MEMORIES_AT_ONCE = 20_000;

/** Stored, and nothing of its user deleted since: gives its number. */
const ALLOWED = `select s.scope_id from scopes s left join deletions d on d.bucket = $4
  where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3 and coalesce(d.users, 0) = $5 and coalesce(d.memories, 0) = $6`;
const NEXT_USE = "select coalesce(max(used), 0) + 1 from responses where tenant = $1";

const STATEMENTS = named("journal", {
  /** The request may be gone by now: withdrawn, expired or forgotten. */
  keepResponse: `with allowed as materialized (${ALLOWED}), use as materialized (${NEXT_USE}),
      continued as (update responses set used = (table use)
        where scope_id = (table allowed) and id = $9 and id <> $7)
    insert into responses (scope_id, id, tenant, used, request_id)
    select scope_id, $7, $1, (table use), $8 from allowed
    where exists (select from journal j
      where j.request_id = $8 and j.scope_id = allowed.scope_id and j.kind = ${numberOf("composed")})
    on conflict (scope_id, id) do update set used = excluded.used, request_id = excluded.request_id`,
  removeOldest: `delete from responses where tenant = $1
    and (select max(used) from responses where tenant = $1) % ${USES_BETWEEN_REMOVALS} = 0
    and used <= (select used from responses where tenant = $1 order by used desc limit 1 offset $2)`,
  lockEngine: `select pg_advisory_xact_lock(${ENGINE_LOCKS}, hashtext($1))`,
  toDelete: `select scope_id as "scopeId" from scopes where tenant = $1 and user_id = $2`,
  pageEnd: `select scope_id as "end" from known_memories where scope_id > $1 order by scope_id
    offset ${MEMORIES_AT_ONCE} limit 1`,
  holders: `select ${SCOPE_COLUMNS} from scopes s where s.tenant = $1 and s.scope_id in (
      select k.scope_id from known_memories k
      where k.scope_id > $2 and ($3::bigint is null or k.scope_id <= $3) and $4 = any(k.hashes))
    order by s.scope_id`,
});

/** What `JournalDatabase` reads from a server. */
class PostgresReads extends JournalReads {
  /** `after` is a scope's number. */
  async withMemory(tenant: string, hash: number, after: number): Promise<ScopeRowsFound> {
    const [page] = await this.reader.read<{ end: number }>(STATEMENTS.pageEnd, [after]);
    const next = page?.end ?? null;
    const rows = await this.reader.read<NamedScopeRow>(STATEMENTS.holders, [tenant, after, next, hash | 0]);
    return { scopes: rows.map(readScopeRow), next };
  }
}

/** A journal in PostgreSQL. */
export class PostgresJournal extends PostgresReads implements JournalDatabase {
  readonly #writer: GroupWriter;
  readonly #vacuum: BackgroundVacuum;

  constructor(
    private readonly connections: Connections,
    url: string,
    readonly sealKey: Buffer,
  ) {
    super(connections, new DigestSeal(() => sealKey));
    this.#writer = new GroupWriter(connections, this.digests);
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

  /**
   * See `JournalDatabase.deleteUser`. No commit of the user's is under way while its bucket is locked. Where its outcome is not heard of it is
   * done again: then it finds nothing, and is counted twice, which says no more than once.
   */
  async deleteUser(tenant: string, userId: UserId, isInSource: boolean): Promise<number> {
    const user = { tenant, userId };
    const bucket = bucketOf(user, this.digests);
    let found = 0;
    await this.connections.changeAgain(async (client) => {
      const [, , rows] = await Promise.all([
        client.query("begin"),
        lockBuckets(client, [bucket], new Set([bucket])),
        ask<{ scopeId: number }>(client, STATEMENTS.toDelete, [tenant, userId]),
      ]);
      const scopeIds = rows.map(({ scopeId }) => scopeId);
      found = Math.max(found, scopeIds.length);
      await Promise.all([
        ...deleteScopes(client, scopeIds),
        ask(client, WRITES.removeForgotten, [tenant, userId]),
        ...sendDeletion(client, bucket, user, { memoryId: null, isInSource }),
        client.query("commit"),
      ]);
    });
    this.#vacuum.request();
    return found;
  }

  async deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): Promise<void> {
    await this.connections.read(WRITES.confirm, [tenant, userId, memoryId ?? EVERYTHING]);
    this.#vacuum.request();
  }

  async keepResponse(
    scope: Scope,
    deletions: DeletionCounts,
    { id, requestId }: ResponseRow,
    continued: string | null,
    most: number,
  ): Promise<void> {
    const bucket = bucketOf(scope, this.digests);
    const values = [...scopeKey(scope), bucket, deletions.users, deletions.memories, id, requestId, continued];
    await this.connections.changeAgain((client) =>
      Promise.all([
        client.query("begin"),
        lockBuckets(client, [bucket]),
        ask(client, STATEMENTS.keepResponse, values),
        ask(client, STATEMENTS.removeOldest, [scope.tenant, most]),
        client.query("commit"),
      ]),
    );
  }

  async keepFirstTokenTime(engine: string, { uncachedTokens, cachedTokens, ms }: FirstTokenTime, most: number) {
    await this.connections.change((client) =>
      Promise.all([
        client.query("begin"),
        ask(client, STATEMENTS.lockEngine, [engine]),
        ask(client, WRITES.keepTime, [engine, uncachedTokens, cachedTokens, ms]),
        ask(client, WRITES.dropTimes, [engine, most]),
        client.query("commit"),
      ]),
    );
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

  async close(): Promise<void> {
    await this.idle();
    await this.#vacuum.close();
    await this.connections.close();
  }
}
