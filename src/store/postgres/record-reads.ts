import type { MemoryId, Scope } from "../../core/index.js";
import type { DeletionCounts, StoredVersion } from "../api/store.js";
import {
  CONVERSATION_PAGE,
  type JournalRecord,
  type JournalScope,
  type RecordFilter,
  type RecordKey,
  type Snapshot,
  WITH_TURNS,
} from "../journal/journal-database.js";
import { damagedRecord, sumOfSnapshot } from "../journal/record-sum.js";
import { ask, type NamedStatement, type ServerReader } from "./connections.js";
import {
  agentColumn,
  KEY_COLUMNS,
  newestRecord,
  numberOf,
  ROW_COLUMNS,
  readKey,
  readRecord,
  type StoredKeyRow,
  type StoredRecordRow,
} from "./rows.js";
import { SCHEMA } from "./schema.js";
import { FORGOTTEN } from "./user-reads.js";

const VERSION_OF = `select s.scope_id as "scopeId", coalesce(l.n, 0) as commits, coalesce(l.sum, 0) as sum
  from ${SCHEMA}.scopes s left join ${newestRecord("s.scope_id")} l on true where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3`;

const STATE: NamedStatement = {
  name: "state",
  text: `select v."scopeId", v.commits, v.sum, t.n, t.sum as "snapshotSum", t.data, coalesce(d.users, 0) as users, coalesce(d.memories, 0) as memories,
      coalesce(newest.at, 0) as "newestAt"
    from (select $4::integer as bucket) u left join (${VERSION_OF}) v on true
    left join ${SCHEMA}.snapshots t on t.scope_id = v."scopeId" left join ${SCHEMA}.deletions d on d.bucket = u.bucket
    left join lateral (select at from ${SCHEMA}.journal where scope_id = v."scopeId" and kind = ${numberOf("composed")}
      order by n desc limit 1) newest on true`,
};

interface StateRow extends DeletionCounts {
  readonly scopeId: number | null;
  readonly commits: number;
  /** Of the newest record. */
  readonly sum: number;
  readonly newestAt: number;
  readonly n: number | null;
  readonly snapshotSum: number;
  readonly data: string;
}

/** By the scope's name, so that it is asked together with `STATE`. Whole records, as their checksums are of all of them. */
const BEHIND: NamedStatement = {
  name: "behind",
  text: `select ${ROW_COLUMNS} from ${SCHEMA}.scopes s join ${SCHEMA}.journal j on j.scope_id = s.scope_id
    where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3 and j.changes is not null
      and j.n > coalesce((select t.n from ${SCHEMA}.snapshots t where t.scope_id = s.scope_id), 0)
    order by j.n`,
};

/** By the scope's name, too. */
const CONVERSATION: NamedStatement = {
  name: "conversation",
  text: `select ${ROW_COLUMNS} from ${SCHEMA}.scopes s join ${SCHEMA}.journal j on j.scope_id = s.scope_id
    where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3 and j.conversation = $4
      and j.kind in (${WITH_TURNS.map(numberOf).join(", ")})
    order by j.n desc limit ${CONVERSATION_PAGE}`,
};

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

/** What is read of records and states. */
export class RecordReads {
  constructor(private readonly connections: ServerReader) {}

  async load(scope: Scope, bucket: number, conversation?: number): Promise<JournalScope> {
    const name = nameOf(scope);
    const [[state], rows, forgotten, newest] = await this.connections.readTogether((client) =>
      Promise.all([
        ask<StateRow & object>(client, STATE, [...name, bucket]),
        ask<StoredRecordRow>(client, BEHIND, name),
        ask<{ memoryId: MemoryId }>(client, FORGOTTEN, [scope.tenant, scope.userId]),
        conversation === undefined ? [] : ask<StoredRecordRow>(client, CONVERSATION, [...name, conversation]),
      ]),
    );
    const { scopeId = null, commits = 0, sum = 0, users = 0, memories = 0, newestAt = 0 } = state ?? {};
    return {
      version: scopeId === null ? null : { scopeId, commits, sum },
      snapshot: state === undefined ? null : readSnapshot(state),
      behind: rows.map((row) => {
        const { n, kind, changes } = readRecord(row);
        return { n, kind, changes };
      }),
      deletions: { users, memories },
      forgotten: forgotten.map(({ memoryId }) => memoryId),
      newestAt,
      conversation: newest.map(readRecord),
    };
  }

  async versionOf(scope: Scope): Promise<StoredVersion | null> {
    const statement = { name: "version", text: VERSION_OF };
    const [version] = await this.connections.read<StoredVersion & object>(statement, nameOf(scope));
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
    const rows = await this.connections.read<StoredKeyRow>({ name: `list_${given}_${newestFirst}`, text }, values);
    return rows.map(readKey);
  }

  async read(seqs: readonly number[]): Promise<JournalRecord[]> {
    if (seqs.length === 0) return [];
    const rows = await this.connections.read<StoredRecordRow>(READ, [seqs]);
    const bySeq = new Map(rows.map((row) => [row.seq, row]));
    return seqs.flatMap((seq) => {
      const row = bySeq.get(seq);
      return row === undefined ? [] : [readRecord(row)];
    });
  }

  async withTurns(scopeId: number, turns: readonly number[]): Promise<RecordKey[]> {
    if (turns.length === 0) return [];
    const rows = await this.connections.read<StoredKeyRow>(OF_TURNS, [scopeId, [...new Set(turns)]]);
    return rows.map(readKey);
  }

  async withRequests(
    of: { readonly tenant: string } | { readonly scopeId: number },
    ids: readonly string[],
  ): Promise<RecordKey[]> {
    if (ids.length === 0) return [];
    const rows =
      "tenant" in of
        ? await this.connections.read<StoredKeyRow>(OF_TENANT, [of.tenant, ids])
        : await this.connections.read<StoredKeyRow>(OF_SCOPE, [of.scopeId, ids]);
    return rows.map(readKey);
  }

  async counts(scopeId: number): Promise<{ requests: number; turns: number; conversations: number }> {
    const rows = await this.connections.read<{ requests: number; turns: number; conversations: number }>(COUNTS, [
      scopeId,
    ]);
    return rows[0] ?? { requests: 0, turns: 0, conversations: 0 };
  }
}

/** Throws for a snapshot that is not what was written. */
function readSnapshot({ scopeId, n, snapshotSum, data }: StateRow): Snapshot | null {
  if (scopeId === null || n === null) return null;
  if (sumOfSnapshot(scopeId, { n, data }) !== snapshotSum)
    throw damagedRecord({ scopeId, n }, "its snapshot is damaged");
  return { n, data };
}

/** The values that find a scope by name. */
function nameOf(scope: Scope): [tenant: string, userId: string, agentId: string] {
  return [scope.tenant, scope.userId, agentColumn(scope)];
}
