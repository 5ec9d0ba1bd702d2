import { crc32 } from "node:zlib";
import type { AgentId, FirstTokenTime, MemoryId, RequestId, Scope, UserId } from "../../core/index.js";
import {
  type DeletionCounts,
  type PendingSourceDeletions,
  type StoredVersion,
  StoreUnavailableError,
} from "../api/store.js";
import { bucketOf, type DigestSeal, type SealedDigest } from "../database/digest-seal.js";
import { type Dialect, named, type SqlReader } from "../database/sql.js";
import {
  CONVERSATION_PAGE,
  type JournalDatabase,
  type JournalRecord,
  type JournalScope,
  type NewRecord,
  RECORD_KINDS,
  type RecordFilter,
  type RecordKey,
  type RecordKind,
  type ResponseRow,
  type ScopeRow,
  type ScopeRowsFound,
  type SharedRow,
  type Snapshot,
  WITH_TURNS,
} from "./journal-database.js";

/*
 * What both databases have of the journal in common: the rows of its tables, statements that write, and all that is read.
 */

/** A row of `journal`, without its bodies. */
export interface KeyRow extends Omit<RecordKey, "kind"> {
  readonly kind: number;
}

/** A row of `journal`. */
export interface RecordRow extends KeyRow {
  readonly sum: number;
  readonly changes: string | null;
  readonly said: string | null;
}

/** A row of `scopes`. */
export interface NamedScopeRow {
  readonly scopeId: number;
  readonly tenant: string;
  readonly userId: string;
  /** Empty: no agent. */
  readonly agentId: string;
  readonly createdAt: number;
}

/** Columns of `journal j` and `scopes s`. */
const KEY_COLUMNS = `j.seq, j.scope_id as "scopeId", j.n, j.kind, j.turn, j.turns, j.conversation,
  j.request_id as "requestId", j.leaf, j.at`;
export const RECORD_COLUMNS = `${KEY_COLUMNS}, j.sum, j.changes, j.said`;
export const SCOPE_COLUMNS = `s.scope_id as "scopeId", s.tenant, s.user_id as "userId", s.agent_id as "agentId",
  s.created_at as "createdAt"`;

/** In place of a memory's id in `source_deletions`: everything of the user. */
export const EVERYTHING = "";

/** How often a tenant's oldest responses are removed: once in so many uses. */
export const USES_BETWEEN_REMOVALS = 64;

const NUMBERS = new Map<RecordKind, number>(RECORD_KINDS.map((kind, number) => [kind, number]));

/** A kind's number in rows. */
export function numberOf(kind: RecordKind): number {
  return NUMBERS.get(kind) as number;
}

/** Throws for a number that no kind has. */
function readKey(row: KeyRow): RecordKey {
  const kind = RECORD_KINDS[row.kind];
  if (kind === undefined) throw damagedRecord(row, `no record is of kind ${row.kind}`);
  return { ...row, kind };
}

/** Throws for a row that is not what was written. */
export function readRecord({ sum, changes, said, ...key }: RecordRow): JournalRecord {
  const record: JournalRecord = { ...readKey(key), changes, said };
  if (sumOfRecord(record, record) !== sum) throw damagedRecord(key, "its checksum is another's");
  return record;
}

/** The values that find a scope by its name. */
export function scopeKey({
  tenant,
  userId,
  agentId,
}: Scope): readonly [tenant: string, userId: string, agentId: string] {
  return [tenant, userId, agentId ?? ""];
}

export function readScopeRow({ scopeId, createdAt, tenant, userId, agentId }: NamedScopeRow): ScopeRow {
  const scope = { tenant, userId: userId as UserId, agentId: agentId === "" ? null : (agentId as AgentId) };
  return { scopeId, scope, createdAt };
}

/** CRC-32 of a record, but for its `seq`. The lengths stand in it so that no body's end can be taken for the next one's beginning. */
export function sumOfRecord(record: NewRecord, { scopeId, n }: Pick<JournalRecord, "scopeId" | "n">): number {
  const { kind, at, turn, turns, conversation, requestId, leaf, changes, said } = record;
  const lengths = [changes?.length ?? null, said?.length ?? null];
  const key = crc32(JSON.stringify([scopeId, n, kind, at, turn, turns, conversation, requestId, leaf, ...lengths]));
  return crc32(said ?? "", crc32(changes ?? "", key));
}

/** CRC-32 of a snapshot. */
export function sumOfSnapshot(scopeId: number, { n, data }: Snapshot): number {
  return crc32(data, crc32(JSON.stringify([scopeId, n])));
}

/** The error for a record, or a snapshot, that is not what was written. Its message quotes nothing stored. */
function damagedRecord({ scopeId, n }: Pick<JournalRecord, "scopeId" | "n">, what: string): StoreUnavailableError {
  return new StoreUnavailableError("damaged", { cause: new Error(`record ${n} of scope ${scopeId}: ${what}`) });
}

/** Of an engine (`$1`), whose times are numbered from 1. */
const LAST_TIME = "coalesce((select number from first_token_times where engine = $1 order by number desc limit 1), 0)";

/** Whether a composed request (`$2`) of a scope (`$1`) has a record. */
export const HAS_RECORD = `exists (select 1 from journal j
  where j.request_id = $2 and j.scope_id = $1 and j.kind = ${numberOf("composed")})`;

/** Statements that write, in both databases. */
export const WRITES = named("write", {
  snapshot: `insert into snapshots (scope_id, n, sum, data) values ($1, $2, $3, $4)
    on conflict (scope_id) do update set n = excluded.n, sum = excluded.sum, data = excluded.data`,
  /** What is not named stays: when it was written, and which of the scope's records it is. */
  rewrite: `update journal set kind = $2, turn = $3, turns = $4, conversation = $5, request_id = $6, leaf = $7, changes = $8,
    said = $9, sum = $10 where seq = $1`,
  forget: "insert into forgotten_memories (tenant, user_id, memory_id) values ($1, $2, $3) on conflict do nothing",
  removeForgotten: "delete from forgotten_memories where tenant = $1 and user_id = $2",
  /** Those of a request of which no record is left. */
  removeResponsesOf: `delete from responses where scope_id = $1 and request_id = $2 and not ${HAS_RECORD}`,
  countDeletion: `insert into deletions as d (bucket, users, memories) values ($1, $2, $3)
    on conflict (bucket) do update set users = d.users + excluded.users, memories = d.memories + excluded.memories`,
  owe: "insert into source_deletions (tenant, user_id, memory_id) values ($1, $2, $3) on conflict do nothing",
  confirm: "delete from source_deletions where tenant = $1 and user_id = $2 and memory_id = $3",
  keepTime: `insert into first_token_times (engine, number, uncached_tokens, cached_tokens, ms)
    select $1, ${LAST_TIME} + 1, $2, $3, $4`,
  dropTimes: `delete from first_token_times where engine = $1 and number <= ${LAST_TIME} - $2`,
});

/** The values of {@link WRITES.rewrite}. */
export function rewriteValues(record: JournalRecord): readonly unknown[] {
  const { seq, kind, turn, turns, conversation, requestId, leaf, changes, said } = record;
  const sum = sumOfRecord(record, record);
  return [seq, numberOf(kind), turn, turns, conversation, requestId, leaf, changes, said, sum];
}

/** The values of {@link WRITES.countDeletion} of a user's bucket. */
export function countValues(bucket: number, memoryId: MemoryId | null): readonly unknown[] {
  return [bucket, memoryId === null ? 1 : 0, memoryId === null ? 0 : 1];
}

/** Records per page of a walk. */
const RECORDS_AT_ONCE = 500;
const USERS_AT_ONCE = 500;

/** A scope and its version, by its name: `$1` to `$3`. */
const VERSION = `select s.scope_id as "scopeId", coalesce(l.n, 0) as commits, coalesce(l.sum, 0) as sum
  from scopes s left join journal l on l.scope_id = s.scope_id and l.n = (select max(n) from journal where scope_id = s.scope_id)
  where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3`;

/** What is read of a scope beside its records. */
interface StateRow extends DeletionCounts {
  readonly part: "state";
  /** The scope's number; null: it is not stored. */
  readonly stateOf: number | null;
  readonly commits: number;
  /** Of the newest record. */
  readonly newestSum: number;
  readonly newestAt: number;
  /** JSON of the ids. */
  readonly forgotten: string | null;
  readonly snapshotAt: number | null;
  readonly snapshotSum: number;
  readonly snapshot: string;
}
interface PartRow extends RecordRow {
  readonly part: "behind" | "said";
}

/**
 * A row for the state, and one for each record: whole records, as their checksums are of all of them. One statement sees one state of the
 * database, so it needs no transaction, whose statements a new user's first compose would wait for.
 */
function loadText({ list }: Dialect): string {
  const state: Readonly<Record<Exclude<keyof StateRow, "part">, string>> = {
    stateOf: `v."scopeId"`,
    commits: "v.commits",
    newestSum: "v.sum",
    newestAt: `coalesce((select at from journal where scope_id = v."scopeId" and kind = ${numberOf("composed")}
      order by n desc limit 1), 0)`,
    users: "coalesce(d.users, 0)",
    memories: "coalesce(d.memories, 0)",
    forgotten: `(select ${list("memory_id")} from forgotten_memories where tenant = $1 and user_id = $2)`,
    snapshotAt: "t.n",
    snapshotSum: "t.sum",
    snapshot: "t.data",
  };
  const noState = Object.keys(state).map((name) => `null as "${name}"`);
  const noRecord = RECORD_COLUMNS.split(",").map(() => "null");
  return `with v as materialized (${VERSION})
    select 'behind' as part, ${RECORD_COLUMNS}, ${noState} from v join journal j on j.scope_id = v."scopeId"
    where j.changes is not null and j.n > coalesce((select t.n from snapshots t where t.scope_id = v."scopeId"), 0)
    union all
    select 'state', ${noRecord}, ${Object.values(state)}
    from (select cast($4 as integer) as bucket) u left join v on true
    left join snapshots t on t.scope_id = v."scopeId" left join deletions d on d.bucket = u.bucket
    union all
    select 'said', ${RECORD_COLUMNS}, ${noState} from (select * from journal r
      where cast($5 as bigint) is not null and r.scope_id = (select "scopeId" from v) and r.conversation = cast($5 as bigint)
        and r.kind in (${WITH_TURNS.map(numberOf)}) order by r.n desc limit ${CONVERSATION_PAGE}) j`;
}

/**
 * `turn` never falls from one record to the next, so this halves the range of numbers for each turn, and needs no index of its own that
 * every compose would write to. Before each step, records below `low` have smaller turns, and the first one from `high` on does not.
 */
function ofTurnsText({ rows }: Dialect): string {
  const probe = (column: string, from: string) =>
    `(select r.${column} from journal r where r.scope_id = $1 and r.n >= ${from} order by r.n limit 1)`;
  const middle = "(s.low + s.high) / 2";
  return `with recursive
    bounds as materialized (select (select min(n) from journal where scope_id = $1) as first,
      (select max(n) from journal where scope_id = $1) as last),
    search (turn, low, high) as (
      select wanted.turn, bounds.first, bounds.last from ${rows("$2", "wanted", { turn: "bigint" })} cross join bounds
      union all
      select s.turn, case when ${probe("turn", middle)} < s.turn then ${probe("n", middle)} + 1 else s.low end,
        case when ${probe("turn", middle)} < s.turn then s.high else ${middle} end
      from search s where s.low < s.high),
    found as materialized (select s.turn, ${probe("n", "s.low")} as n from search s where s.low >= s.high)
    select distinct ${KEY_COLUMNS} from found f cross join journal j
    where j.scope_id = $1 and j.n = f.n and j.turn >= f.turn and j.turn - j.turns < f.turn order by j.n`;
}

function statementsOf(dialect: Dialect) {
  const { rows, among } = dialect;
  const amongGiven = (parameter: string, type: "bigint" | "text") =>
    among(`select g.one from ${rows(parameter, "g", { one: type })}`);
  return named("read", {
    version: VERSION,
    load: loadText(dialect),
    ofTurns: ofTurnsText(dialect),
    records: `select ${RECORD_COLUMNS} from journal j where j.seq ${amongGiven("$1", "bigint")}`,
    ofTenant: `select ${KEY_COLUMNS} from journal j join scopes s on s.scope_id = j.scope_id
      where j.request_id ${amongGiven("$2", "text")} and s.tenant = $1 order by j.scope_id, j.n`,
    // With a sign, so that requests are found by their ids, and not among all records of the scope.
    ofScope: `select ${KEY_COLUMNS} from journal j
      where j.request_id ${amongGiven("$2", "text")} and +j.scope_id = $1 order by j.n`,
    counts: `select count(*) filter (where kind = ${numberOf("composed")}) as requests, coalesce(sum(turns), 0) as turns,
        count(distinct conversation) filter (where turns > 0) as conversations
      from journal where scope_id = $1`,
    usersAfter: `select distinct tenant, user_id as "userId" from scopes
      where tenant > $1 or (tenant = $1 and user_id > $2) order by tenant, user_id limit ${USERS_AT_ONCE}`,
    scopesOf: `select ${SCOPE_COLUMNS} from scopes s where s.tenant = $1 and s.user_id = $2 order by s.scope_id`,
    scopesById: `select ${SCOPE_COLUMNS} from scopes s where s.scope_id ${amongGiven("$1", "bigint")}`,
    forgotten: `select memory_id as "memoryId" from forgotten_memories where tenant = $1 and user_id = $2`,
    deletions: "select users, memories from deletions where bucket = $1",
    sharedDigests: "select digest from instructions where scope_id = $1",
    shared: `select digest, messages from instructions where scope_id = $1 and digest ${amongGiven("$2", "text")}`,
    oldest: `select seq, scope_id as "scopeId", at from journal where seq > $1 and turns > 0
      order by seq limit ${RECORDS_AT_ONCE}`,
    pending: `select memory_id as "memoryId" from source_deletions where tenant = $1 and user_id = $2`,
    usersPending: `select distinct tenant, user_id as "userId" from source_deletions`,
    response: `select request_id as "requestId" from responses where scope_id = $1 and id = $2`,
    responses: `select id, request_id as "requestId" from responses where scope_id = $1 order by used`,
    countTimes: `select ${LAST_TIME} as count`,
    times: `select uncached_tokens as "uncachedTokens", cached_tokens as "cachedTokens", ms from first_token_times
      where engine = $1 and number <= $2 and number > $2 - $3 order by number`,
  });
}

/** A parameter of which `among` is. */
function given(values: Iterable<number | string>): string {
  return JSON.stringify([...new Set(values)].map((one) => ({ one })));
}

/** What `JournalDatabase` reads, but for the walk by memories, whose rows differ. */
export class JournalReads implements Partial<JournalDatabase> {
  readonly #statements: ReturnType<typeof statementsOf>;

  constructor(
    readonly reader: SqlReader,
    protected readonly digests: DigestSeal,
  ) {
    this.#statements = statementsOf(reader.dialect);
  }

  /** Rejects for what is not what was written. */
  async load(scope: Scope, conversation?: number): Promise<JournalScope> {
    const values = [...scopeKey(scope), bucketOf(scope, this.digests), conversation ?? null];
    const rows = await this.reader.read<StateRow | PartRow>(this.#statements.load, values);
    let state: StateRow | undefined;
    const behind: JournalRecord[] = [];
    const said: JournalRecord[] = [];
    for (const row of rows) {
      if (row.part === "state") state = row;
      else (row.part === "behind" ? behind : said).push(recordOf(row));
    }
    if (state === undefined) throw new Error("the database answered without a state");
    const { stateOf: scopeId, commits, newestSum: sum, users, memories, forgotten, newestAt } = state;
    return {
      version: scopeId === null ? null : { scopeId, commits, sum },
      snapshot: snapshotOf(state),
      behind: behind.sort((a, b) => a.n - b.n).map(({ n, kind, changes }) => ({ n, kind, changes })),
      deletions: { users, memories },
      forgotten: JSON.parse(forgotten ?? "[]") as MemoryId[],
      newestAt,
      conversation: said.sort((a, b) => b.n - a.n),
    };
  }

  async versionOf(scope: Scope): Promise<StoredVersion | null> {
    const [version] = await this.reader.read<StoredVersion>(this.#statements.version, scopeKey(scope));
    return version ?? null;
  }

  async deletionsOf(tenant: string, userId: UserId): Promise<DeletionCounts> {
    const bucket = bucketOf({ tenant, userId }, this.digests);
    const [counts] = await this.reader.read<DeletionCounts>(this.#statements.deletions, [bucket]);
    return counts ?? { users: 0, memories: 0 };
  }

  usersAfter(tenant: string, userId: string): Promise<Pick<Scope, "tenant" | "userId">[]> {
    return this.reader.read(this.#statements.usersAfter, [tenant, userId]);
  }

  async scopesOf(tenant: string, userId: UserId): Promise<ScopeRow[]> {
    return (await this.reader.read<NamedScopeRow>(this.#statements.scopesOf, [tenant, userId])).map(readScopeRow);
  }

  async scopesById(ids: readonly number[]): Promise<ScopeRow[]> {
    if (ids.length === 0) return [];
    const rows = await this.reader.read<NamedScopeRow>(this.#statements.scopesById, [given(ids)]);
    const byId = new Map(rows.map((row) => [row.scopeId, readScopeRow(row)]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  async forgottenOf(tenant: string, userId: UserId): Promise<MemoryId[]> {
    const rows = await this.reader.read<{ memoryId: MemoryId }>(this.#statements.forgotten, [tenant, userId]);
    return rows.map(({ memoryId }) => memoryId);
  }

  async list(scopeId: number, { kinds, conversation, after, before, newestFirst, most }: RecordFilter) {
    const values: unknown[] = [scopeId];
    const place = (value: unknown) => `$${values.push(value)}`;
    const conditions = [
      "j.scope_id = $1",
      ...(kinds === undefined ? [] : [`j.kind in (${kinds.map(numberOf).join() || "null"})`]),
      ...(conversation === undefined ? [] : [`j.conversation = ${place(conversation)}`]),
      ...(after === undefined ? [] : [`j.n > ${place(after)}`]),
      ...(before === undefined ? [] : [`j.n < ${place(before)}`]),
    ];
    const text = `select ${KEY_COLUMNS} from journal j where ${conditions.join(" and ")}
      order by j.n ${newestFirst === true ? "desc" : "asc"} limit ${place(most)}`;
    // A name for each combination of filters.
    const filters = [conversation, after, before].map((one) => (one === undefined ? 0 : 1)).join("");
    const name = `list_${filters}_${newestFirst === true}_${kinds?.map(numberOf).join("") ?? "all"}`;
    return (await this.reader.read<KeyRow>({ name, text }, values)).map(readKey);
  }

  async read(seqs: readonly number[]): Promise<JournalRecord[]> {
    if (seqs.length === 0) return [];
    const rows = await this.reader.read<RecordRow>(this.#statements.records, [given(seqs)]);
    const bySeq = new Map(rows.map((row) => [row.seq, row]));
    return seqs.flatMap((seq) => {
      const row = bySeq.get(seq);
      return row === undefined ? [] : [readRecord(row)];
    });
  }

  async withTurns(scopeId: number, turns: readonly number[]): Promise<RecordKey[]> {
    if (turns.length === 0) return [];
    const wanted = JSON.stringify([...new Set(turns)].map((turn) => ({ turn })));
    return (await this.reader.read<KeyRow>(this.#statements.ofTurns, [scopeId, wanted])).map(readKey);
  }

  async withRequests(
    of: { readonly tenant: string } | { readonly scopeId: number },
    ids: readonly string[],
  ): Promise<RecordKey[]> {
    if (ids.length === 0) return [];
    const { ofTenant, ofScope } = this.#statements;
    const rows =
      "tenant" in of
        ? await this.reader.read<KeyRow>(ofTenant, [of.tenant, given(ids)])
        : await this.reader.read<KeyRow>(ofScope, [of.scopeId, given(ids)]);
    return rows.map(readKey);
  }

  async counts(scopeId: number): Promise<{ requests: number; turns: number; conversations: number }> {
    type Counts = { requests: number; turns: number; conversations: number };
    const [counts] = await this.reader.read<Counts>(this.#statements.counts, [scopeId]);
    return counts ?? { requests: 0, turns: 0, conversations: 0 };
  }

  async shared(scopeId: number, digests: readonly SealedDigest[]): Promise<SharedRow[]> {
    if (digests.length === 0) return [];
    return this.reader.read<SharedRow>(this.#statements.shared, [scopeId, given(digests)]);
  }

  async sharedDigests(scopeId: number): Promise<SealedDigest[]> {
    const rows = await this.reader.read<{ digest: SealedDigest }>(this.#statements.sharedDigests, [scopeId]);
    return rows.map(({ digest }) => digest);
  }

  /**
   * Records are nearly in the order of time: reading ends at the first younger one. `after` is a record's `seq`. What an instance with a late
   * clock wrote after that one is found by a later walk.
   */
  async writtenBefore(before: number, after: number): Promise<ScopeRowsFound> {
    const rows = await this.reader.read<{ seq: number; scopeId: number; at: number }>(this.#statements.oldest, [after]);
    const young = rows.findIndex(({ at }) => at >= before);
    const old = young < 0 ? rows : rows.slice(0, young);
    const scopes = await this.scopesById([...new Set(old.map(({ scopeId }) => scopeId))]);
    const isEnd = young >= 0 || rows.length < RECORDS_AT_ONCE;
    return { scopes, next: isEnd ? null : (rows.at(-1)?.seq ?? null) };
  }

  async pendingInSource(tenant: string, userId: UserId): Promise<PendingSourceDeletions | null> {
    const rows = await this.reader.read<{ memoryId: string }>(this.#statements.pending, [tenant, userId]);
    if (rows.length === 0) return null;
    const ids = rows.flatMap(({ memoryId }) => (memoryId === EVERYTHING ? [] : [memoryId as MemoryId]));
    return { everything: ids.length < rows.length, memoryIds: ids.sort() };
  }

  usersPendingInSource(): Promise<Pick<Scope, "tenant" | "userId">[]> {
    return this.reader.read(this.#statements.usersPending);
  }

  async findResponse(scopeId: number, id: string): Promise<RequestId | null> {
    const [row] = await this.reader.read<Pick<ResponseRow, "requestId">>(this.#statements.response, [scopeId, id]);
    return row?.requestId ?? null;
  }

  responsesOf(scopeId: number): Promise<ResponseRow[]> {
    return this.reader.read<ResponseRow>(this.#statements.responses, [scopeId]);
  }

  async countFirstTokenTimes(engine: string): Promise<number> {
    const [row] = await this.reader.read<{ count: number }>(this.#statements.countTimes, [engine]);
    return row?.count ?? 0;
  }

  firstTokenTimes(engine: string, count: number, most: number): Promise<FirstTokenTime[]> {
    return this.reader.read(this.#statements.times, [engine, count, most]);
  }

  async ping(): Promise<void> {
    await this.reader.read({ text: "select 1" });
  }
}

function recordOf(row: PartRow): JournalRecord {
  const { seq, scopeId, n, kind, turn, turns, conversation, requestId, leaf, at, sum, changes, said } = row;
  return readRecord({ seq, scopeId, n, kind, turn, turns, conversation, requestId, leaf, at, sum, changes, said });
}

/** Throws for a snapshot that is not what was written. */
function snapshotOf({ stateOf: scopeId, snapshotAt: n, snapshotSum, snapshot: data }: StateRow): Snapshot | null {
  if (scopeId === null || n === null) return null;
  if (sumOfSnapshot(scopeId, { n, data }) !== snapshotSum)
    throw damagedRecord({ scopeId, n }, "its snapshot is damaged");
  return { n, data };
}
