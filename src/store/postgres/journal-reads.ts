import type { MemoryId, Scope, UserId } from "../../core/index.js";
import type { DeletionCounts, PendingSourceDeletions, StoredVersion } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type {
  JournalRecord,
  JournalScope,
  RecordFilter,
  RecordKey,
  ScopeRow,
  ScopeRowsFound,
  SharedRow,
} from "../journal/journal-database.js";
import type { NamedStatement, ServerReader } from "./connections.js";
import type { LockKeys } from "./locks.js";
import {
  KEY_COLUMNS,
  type NamedScopeRow,
  numberOf,
  ROW_COLUMNS,
  readKey,
  readRecord,
  readScopeRow,
  SCOPE_COLUMNS,
  type StoredKeyRow,
  type StoredRecordRow,
  scopeKey,
} from "./rows.js";
import { SCHEMA } from "./schema.js";
import { readScope, VERSION_OF } from "./scope-load.js";
import { EVERYTHING } from "./unit-changes.js";

const READ: NamedStatement = {
  name: "read",
  text: `select ${ROW_COLUMNS} from ${SCHEMA}.journal j where j.seq = any($1::bigint[])`,
};

/**
 * `turn` never falls from one record to the next, so this halves the range of numbers for each turn, and needs no index of its own that
 * every compose would write to. Before each step, records below `low` have smaller turns, and the first one from `high` on does not.
 */
const OF_TURNS: NamedStatement = {
  name: "with_turns",
  text: `with recursive
    bounds as materialized (select
      (select n from ${SCHEMA}.journal where scope_id = $1 order by n limit 1) as first,
      (select n from ${SCHEMA}.journal where scope_id = $1 order by n desc limit 1) as last),
    search (turn, low, high) as (
      select wanted.turn, bounds.first, bounds.last from unnest($2::integer[]) as wanted (turn), bounds
      union all
      select s.turn,
        case when probe.turn < s.turn then probe.n + 1 else s.low end,
        case when probe.turn < s.turn then s.high else (s.low + s.high) / 2 end
      from search s, lateral (
        select j.n, j.turn from ${SCHEMA}.journal j where j.scope_id = $1 and j.n >= (s.low + s.high) / 2 order by j.n limit 1
      ) as probe
      where s.low < s.high)
    select distinct ${KEY_COLUMNS} from search s, lateral (
      select * from ${SCHEMA}.journal r where r.scope_id = $1 and r.n >= s.low order by r.n limit 1
    ) as j
    where s.low >= s.high and j.turn >= s.turn and j.turn - j.turns < s.turn order by j.n`,
};

const OF_TENANT: NamedStatement = {
  name: "requests_of_tenant",
  text: `select ${KEY_COLUMNS} from ${SCHEMA}.journal j join ${SCHEMA}.scopes s on s.scope_id = j.scope_id
    where j.request_id = any($2::text[]) and s.tenant = $1 order by j.scope_id, j.n`,
};

const OF_SCOPE: NamedStatement = {
  name: "requests_of_scope",
  text: `select ${KEY_COLUMNS} from ${SCHEMA}.journal j
    where j.request_id = any($2::text[]) and j.scope_id = $1 order by j.n`,
};

const COUNTS: NamedStatement = {
  name: "counts",
  text: `select count(*) filter (where kind = ${numberOf("composed")}) as requests, coalesce(sum(turns), 0) as turns,
      count(distinct conversation) filter (where turns > 0) as conversations
    from ${SCHEMA}.journal where scope_id = $1`,
};

/** What `JournalDatabase` reads of records and states. */
class RecordReads {
  constructor(
    protected readonly reader: ServerReader,
    protected readonly keys: LockKeys,
  ) {}

  load(scope: Scope, conversation?: number): Promise<JournalScope> {
    return readScope(this.reader, scope, this.keys.bucketOf(scope), conversation ?? null);
  }

  async versionOf(scope: Scope): Promise<StoredVersion | null> {
    const statement = { name: "version", text: VERSION_OF };
    const [version] = await this.reader.read<StoredVersion & object>(statement, scopeKey(scope));
    return version ?? null;
  }

  async list(scopeId: number, filter: RecordFilter): Promise<RecordKey[]> {
    const values: unknown[] = [scopeId];
    const place = (value: unknown) => `$${values.push(value)}`;
    const { kinds, conversation, after, before, newestFirst = false, most } = filter;
    const conditions = [
      "j.scope_id = $1",
      ...(kinds === undefined ? [] : [`j.kind = any(${place(kinds.map(numberOf))}::smallint[])`]),
      ...(conversation === undefined ? [] : [`j.conversation = ${place(conversation)}`]),
      ...(after === undefined ? [] : [`j.n > ${place(after)}`]),
      ...(before === undefined ? [] : [`j.n < ${place(before)}`]),
    ];
    const text = `select ${KEY_COLUMNS} from ${SCHEMA}.journal j where ${conditions.join(" and ")}
      order by j.n ${newestFirst ? "desc" : "asc"} limit ${place(most)}`;
    // A name for each combination of filters.
    const given = [kinds, conversation, after, before].map((one) => (one === undefined ? 0 : 1)).join("");
    const rows = await this.reader.read<StoredKeyRow>({ name: `list_${given}_${newestFirst}`, text }, values);
    return rows.map(readKey);
  }

  async read(seqs: readonly number[]): Promise<JournalRecord[]> {
    if (seqs.length === 0) return [];
    const rows = await this.reader.read<StoredRecordRow>(READ, [seqs]);
    const bySeq = new Map(rows.map((row) => [row.seq, row]));
    return seqs.flatMap((seq) => {
      const row = bySeq.get(seq);
      return row === undefined ? [] : [readRecord(row)];
    });
  }

  async withTurns(scopeId: number, turns: readonly number[]): Promise<RecordKey[]> {
    if (turns.length === 0) return [];
    const rows = await this.reader.read<StoredKeyRow>(OF_TURNS, [scopeId, [...new Set(turns)]]);
    return rows.map(readKey);
  }

  async withRequests(
    of: { readonly tenant: string } | { readonly scopeId: number },
    ids: readonly string[],
  ): Promise<RecordKey[]> {
    if (ids.length === 0) return [];
    const rows =
      "tenant" in of
        ? await this.reader.read<StoredKeyRow>(OF_TENANT, [of.tenant, ids])
        : await this.reader.read<StoredKeyRow>(OF_SCOPE, [of.scopeId, ids]);
    return rows.map(readKey);
  }

  async counts(scopeId: number): Promise<{ requests: number; turns: number; conversations: number }> {
    const rows = await this.reader.read<{ requests: number; turns: number; conversations: number }>(COUNTS, [scopeId]);
    return rows[0] ?? { requests: 0, turns: 0, conversations: 0 };
  }
}

/** Rows of known memories per page, plus the rest of the last scope: some milliseconds. */
const MEMORIES_AT_ONCE = 20_000;
/** Records per page. */
const RECORDS_AT_ONCE = 500;

const SCOPES_OF: NamedStatement = {
  name: "scopes_of",
  text: `select ${SCOPE_COLUMNS} from ${SCHEMA}.scopes s where s.tenant = $1 and s.user_id = $2 order by s.agent_id collate "C"`,
};
const SCOPES_BY_ID: NamedStatement = {
  name: "scopes_by_id",
  text: `select ${SCOPE_COLUMNS} from unnest($1::bigint[]) with ordinality as u (scope_id, at)
    join ${SCHEMA}.scopes s on s.scope_id = u.scope_id order by u.at`,
};
const FORGOTTEN: NamedStatement = {
  name: "forgotten",
  text: `select memory_id as "memoryId" from ${SCHEMA}.forgotten_memories where tenant = $1 and user_id = $2`,
};
const DELETIONS: NamedStatement = {
  name: "deletions",
  text: `select users, memories from ${SCHEMA}.deletions where bucket = $1`,
};
const SHARED_DIGESTS: NamedStatement = {
  name: "shared_digests",
  text: `select digest from ${SCHEMA}.instructions where scope_id = $1`,
};
const SHARED: NamedStatement = {
  name: "shared_rows",
  text: `select digest, messages from ${SCHEMA}.instructions where scope_id = $1 and digest = any($2::text[])`,
};
const PAGE_END: NamedStatement = {
  name: "known_memories_page",
  text: `select scope_id as "end" from ${SCHEMA}.known_memories where scope_id > $1 order by scope_id
    offset ${MEMORIES_AT_ONCE} limit 1`,
};
const HOLDERS: NamedStatement = {
  name: "known_memories_holders",
  text: `select ${SCOPE_COLUMNS} from ${SCHEMA}.scopes s where s.tenant = $1 and s.scope_id in (
      select k.scope_id from ${SCHEMA}.known_memories k
      where k.scope_id > $2 and ($3::bigint is null or k.scope_id <= $3) and $4 = any(k.hashes))
    order by s.scope_id`,
};
const OLDEST: NamedStatement = {
  name: "oldest_records",
  text: `select seq, scope_id as "scopeId", at from ${SCHEMA}.journal where seq > $1 and turns > 0
    order by seq limit ${RECORDS_AT_ONCE}`,
};
const PENDING: NamedStatement = {
  name: "pending_in_source",
  text: `select memory_id as "memoryId" from ${SCHEMA}.source_deletions where tenant = $1 and user_id = $2
    order by memory_id collate "C"`,
};
const USERS_PENDING: NamedStatement = {
  name: "users_pending_in_source",
  text: `select distinct tenant, user_id as "userId" from ${SCHEMA}.source_deletions`,
};

/** What `JournalDatabase` reads: of users, their scopes and their memories, too. */
export class UserReads extends RecordReads {
  async deletionsOf(tenant: string, userId: UserId): Promise<DeletionCounts> {
    const bucket = this.keys.bucketOf({ tenant, userId });
    const [counts] = await this.reader.read<{ users: number; memories: number }>(DELETIONS, [bucket]);
    return counts ?? { users: 0, memories: 0 };
  }

  async scopesOf(tenant: string, userId: UserId): Promise<ScopeRow[]> {
    const rows = await this.reader.read<NamedScopeRow & object>(SCOPES_OF, [tenant, userId]);
    return rows.map(readScopeRow);
  }

  async scopesById(ids: readonly number[]): Promise<ScopeRow[]> {
    if (ids.length === 0) return [];
    const rows = await this.reader.read<NamedScopeRow>(SCOPES_BY_ID, [ids]);
    return rows.map(readScopeRow);
  }

  async forgottenOf(tenant: string, userId: UserId): Promise<MemoryId[]> {
    const rows = await this.reader.read<{ memoryId: MemoryId }>(FORGOTTEN, [tenant, userId]);
    return rows.map(({ memoryId }) => memoryId);
  }

  async shared(scopeId: number, digests: readonly SealedDigest[]): Promise<SharedRow[]> {
    if (digests.length === 0) return [];
    return this.reader.read<{ digest: SealedDigest; messages: string }>(SHARED, [scopeId, digests]);
  }

  async sharedDigests(scopeId: number): Promise<SealedDigest[]> {
    const rows = await this.reader.read<{ digest: SealedDigest }>(SHARED_DIGESTS, [scopeId]);
    return rows.map(({ digest }) => digest);
  }

  /** `after` is a scope's number. */
  async withMemory(tenant: string, hash: number, after: number): Promise<ScopeRowsFound> {
    const [page] = await this.reader.read<{ end: number }>(PAGE_END, [after]);
    const next = page?.end ?? null;
    const rows = await this.reader.read<NamedScopeRow>(HOLDERS, [tenant, after, next, hash | 0]);
    return { scopes: rows.map(readScopeRow), next };
  }

  /**
   * Records are nearly in the order of time: reading ends at the first younger one. `after` is a record's `seq`. What an instance with a late
   * clock wrote after that one is found by a later walk.
   */
  async writtenBefore(before: number, after: number): Promise<ScopeRowsFound> {
    const rows = await this.reader.read<{ seq: number; scopeId: number; at: number }>(OLDEST, [after]);
    const young = rows.findIndex(({ at }) => at >= before);
    const old = young < 0 ? rows : rows.slice(0, young);
    const scopes = await this.scopesById([...new Set(old.map(({ scopeId }) => scopeId))]);
    const isEnd = young >= 0 || rows.length < RECORDS_AT_ONCE;
    return { scopes, next: isEnd ? null : (rows.at(-1)?.seq ?? null) };
  }

  async pendingInSource(tenant: string, userId: UserId): Promise<PendingSourceDeletions | null> {
    const rows = await this.reader.read<{ memoryId: string }>(PENDING, [tenant, userId]);
    if (rows.length === 0) return null;
    const memoryIds = rows.flatMap(({ memoryId }) => (memoryId === EVERYTHING ? [] : [memoryId as MemoryId]));
    return { everything: memoryIds.length < rows.length, memoryIds };
  }

  usersPendingInSource(): Promise<Pick<Scope, "tenant" | "userId">[]> {
    return this.reader.read<{ tenant: string; userId: UserId }>(USERS_PENDING);
  }
}
