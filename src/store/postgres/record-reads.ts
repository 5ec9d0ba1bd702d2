import type { Scope } from "../../core/index.js";
import type { StoredVersion } from "../api/store.js";
import type { JournalRecord, JournalScope, RecordFilter, RecordKey } from "../journal/journal-database.js";
import type { NamedStatement, ServerReader } from "./connections.js";
import type { LockKeys } from "./lock-keys.js";
import {
  KEY_COLUMNS,
  numberOf,
  ROW_COLUMNS,
  readKey,
  readRecord,
  type StoredKeyRow,
  type StoredRecordRow,
  scopeKey,
} from "./rows.js";
import { SCHEMA } from "./schema.js";
import { readScope, VERSION_OF } from "./scope-load.js";

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
export class RecordReads {
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
