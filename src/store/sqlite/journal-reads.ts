import type Database from "better-sqlite3";
import type { FirstTokenTime, MemoryId, Scope, UserId } from "../../core/index.js";
import type { DeletionCounts, PendingSourceDeletions, StoredVersion } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type { DatabaseConnection } from "../database/open-database.js";
import { keyOf, type Statement } from "../database/statements.js";
import { damagedRecord, sumOfSnapshot } from "../journal/damaged-record.js";
import type {
  JournalRecord,
  JournalScope,
  RecordFilter,
  RecordKey,
  ResponseRow,
  ScopeRow,
  ScopeRowsFound,
  SharedRow,
  Snapshot,
} from "../journal/journal-database.js";
import { Deletions } from "./deletions.js";
import {
  type JournalRow,
  KEY_COLUMNS,
  type KeyRow,
  type NamedScope,
  numberOf,
  prepareReads,
  readKey,
  readRecord,
  readScopeRow,
} from "./journal-statements.js";

/** Rows of known memories per page: some milliseconds. */
const MEMORIES_AT_ONCE = 20_000;
/** Records per page. */
const RECORDS_AT_ONCE = 500;

/** See `JournalDatabase.withMemory`. Without an index, because every compose would pay for one and this is rare. `after` is a record's `seq`. */
function readWithMemory(
  sqlite: Database.Database,
  scopeById: Statement<number, NamedScope>,
  tenant: string,
  hash: number,
  after: number,
): ScopeRowsFound {
  const rows = sqlite
    .prepare<[number], { readonly seq: number; readonly scopeId: number; readonly hashes: Buffer }>(
      `select seq, scope_id as scopeId, hashes from known_memories where seq > ? order by seq limit ${MEMORIES_AT_ONCE}`,
    )
    .all(after);
  const found = new Set<number>();
  for (const { scopeId, hashes } of rows) if (hashesIn(hashes).includes(hash >>> 0)) found.add(scopeId);
  const scopes = namesOf(scopeById, found).filter(({ scope }) => scope.tenant === tenant);
  return { scopes, next: rows.length < MEMORIES_AT_ONCE ? null : (rows.at(-1)?.seq ?? null) };
}

/** See `JournalDatabase.writtenBefore`. Records are in the order of time, so reading ends at the first younger one. `after` is a `seq`. */
function readWrittenBefore(
  sqlite: Database.Database,
  scopeById: Statement<number, NamedScope>,
  before: number,
  after: number,
): ScopeRowsFound {
  const rows = sqlite
    .prepare<[number], { readonly seq: number; readonly scopeId: number; readonly at: number; readonly turns: number }>(
      `select seq, scope_id as scopeId, at, turns from journal where seq > ? order by seq limit ${RECORDS_AT_ONCE}`,
    )
    .all(after);
  const withTurns = rows.filter(({ turns }) => turns > 0);
  const young = withTurns.findIndex(({ at }) => at >= before);
  const found = new Set((young < 0 ? withTurns : withTurns.slice(0, young)).map(({ scopeId }) => scopeId));
  const isEnd = young >= 0 || rows.length < RECORDS_AT_ONCE;
  return { scopes: namesOf(scopeById, found), next: isEnd ? null : (rows.at(-1)?.seq ?? null) };
}

/** The hashes of one row. */
function hashesIn(bytes: Buffer): number[] {
  const hashes: number[] = [];
  for (let at = 0; at + 4 <= bytes.length; at += 4) hashes.push(bytes.readUInt32BE(at));
  return hashes;
}

function namesOf(scopeById: Statement<number, NamedScope>, ids: Iterable<number>) {
  return [...ids].flatMap((id) => {
    const row = scopeById.get(id);
    return row === undefined ? [] : [readScopeRow(row)];
  });
}

/**
 * The record that has a turn of a scope; null for none. `turn` never falls from one record to the next, so this halves the range of
 * numbers: some fifteen steps for a scope of 30,000 records, and no index of its own that every compose would write to.
 */
function keyWithTurn(
  { bounds, from, keyOfNumber }: Pick<ReturnType<typeof prepareReads>, "bounds" | "from" | "keyOfNumber">,
  scopeId: number,
  turn: number,
): KeyRow | null {
  const { first = null, last = null } = bounds.get({ scopeId }) ?? {};
  if (first === null || last === null) return null;
  // The first record whose `turn` is at least the one looked for has a number in [low, high], or there is none.
  let low = first;
  let high = last;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const next = from.get({ scopeId, n: middle });
    if (next === undefined || next.turn >= turn) high = middle;
    else low = next.n + 1;
  }
  const found = from.get({ scopeId, n: low });
  if (found === undefined || found.turn < turn || found.turn - found.turns >= turn) return null;
  return keyOfNumber.get({ scopeId, n: found.n }) ?? null;
}

/** What `JournalDatabase` reads from a file, on the calling thread. */
export class JournalReads {
  readonly #deletions: Deletions;
  readonly #statements: ReturnType<typeof prepareReads>;
  /** Lists by their SQL: one for each combination of filters. */
  readonly #lists = new Map<string, Database.Statement<[object], KeyRow>>();
  readonly #load: Database.Transaction<(scope: Scope, conversation?: number) => JournalScope>;

  constructor(private readonly database: DatabaseConnection) {
    const { sqlite } = database;
    this.#deletions = new Deletions(database);
    this.#statements = prepareReads(sqlite);
    this.#load = sqlite.transaction((scope: Scope, conversation?: number) => this.#read(scope, conversation));
  }

  load(scope: Scope, conversation?: number): JournalScope {
    return this.#load(scope, conversation);
  }

  versionOf(scope: Scope): StoredVersion | null {
    return this.#statements.version.get(keyOf(scope)) ?? null;
  }

  deletionsOf(tenant: string, userId: UserId): DeletionCounts {
    return this.#deletions.countsOf({ tenant, userId });
  }

  scopesOf(tenant: string, userId: UserId): ScopeRow[] {
    return this.#statements.scopesOf.all({ tenant, userId }).map(readScopeRow);
  }

  forgottenOf(tenant: string, userId: UserId): MemoryId[] {
    return this.#statements.forgotten.all({ tenant, userId }) as MemoryId[];
  }

  list(scopeId: number, filter: RecordFilter): RecordKey[] {
    const { kinds, conversation, after, before, newestFirst, most } = filter;
    const conditions = [
      "scope_id = @scopeId",
      ...(kinds === undefined ? [] : [`kind in (${kinds.map(numberOf).join(", ")})`]),
      ...(conversation === undefined ? [] : ["conversation = @conversation"]),
      ...(after === undefined ? [] : ["n > @after"]),
      ...(before === undefined ? [] : ["n < @before"]),
    ];
    const order = newestFirst === true ? "n desc" : "n";
    const sql = `select ${KEY_COLUMNS} from journal where ${conditions.join(" and ")} order by ${order} limit @most`;
    const statement = this.#lists.get(sql) ?? this.database.sqlite.prepare<[object], KeyRow>(sql);
    this.#lists.set(sql, statement);
    return statement.all({ scopeId, conversation, after, before, most }).map(readKey);
  }

  read(seqs: readonly number[]): JournalRecord[] {
    return seqs.flatMap((seq) => {
      const row = this.#statements.record.get(seq);
      return row === undefined ? [] : [readRecord(row)];
    });
  }

  withTurns(scopeId: number, turns: readonly number[]): RecordKey[] {
    const found = new Map<number, RecordKey>();
    for (const turn of turns) {
      const row = keyWithTurn(this.#statements, scopeId, turn);
      if (row !== null) found.set(row.n, readKey(row));
    }
    return [...found.values()].sort((a, b) => a.n - b.n);
  }

  withRequests(of: { readonly tenant: string } | { readonly scopeId: number }, ids: readonly string[]): RecordKey[] {
    const { requestsOfTenant, requestsOfScope } = this.#statements;
    const rows = [...new Set(ids)].flatMap((requestId) =>
      "tenant" in of ? requestsOfTenant.all({ ...of, requestId }) : requestsOfScope.all({ ...of, requestId }),
    );
    return rows.map(readKey).sort((a, b) => a.scopeId - b.scopeId || a.n - b.n);
  }

  scopesById(ids: readonly number[]): ScopeRow[] {
    return ids.flatMap((id) => {
      const row = this.#statements.scopeById.get(id);
      return row === undefined ? [] : [readScopeRow(row)];
    });
  }

  counts(scopeId: number) {
    return this.#statements.counts.get(scopeId) ?? { requests: 0, turns: 0, conversations: 0 };
  }

  shared(scopeId: number, digests: readonly SealedDigest[]): SharedRow[] {
    return [...new Set(digests)].flatMap((digest) => this.#statements.sharedRow.get({ scopeId, digest }) ?? []);
  }

  sharedDigests(scopeId: number): SealedDigest[] {
    return this.#statements.sharedDigests.all(scopeId);
  }

  withMemory(tenant: string, hash: number, after: number): ScopeRowsFound {
    return readWithMemory(this.database.sqlite, this.#statements.scopeById, tenant, hash, after);
  }

  /** Hashes of the memories by which {@link withMemory} finds a scope, for checks. */
  memoriesOf(scopeId: number): number[] {
    return this.#statements.memoriesOf.all(scopeId).flatMap(hashesIn);
  }

  writtenBefore(before: number, after: number): ScopeRowsFound {
    return readWrittenBefore(this.database.sqlite, this.#statements.scopeById, before, after);
  }

  pendingInSource(tenant: string, userId: UserId): PendingSourceDeletions | null {
    return this.#deletions.pendingOf({ tenant, userId });
  }

  usersPendingInSource(): Pick<Scope, "tenant" | "userId">[] {
    return this.#deletions.usersPending();
  }

  findResponse(scopeId: number, id: SealedDigest): ResponseRow | null {
    const row = this.#statements.response.get({ scopeId, id });
    return row === undefined ? null : { ...row, held: row.held === 1 };
  }

  responsesOf(scopeId: number): ResponseRow[] {
    return this.#statements.responses.all(scopeId).map((row) => ({ ...row, held: row.held === 1 }));
  }

  countFirstTokenTimes(engine: string): number {
    return this.#statements.lastTime.get(engine) ?? 0;
  }

  firstTokenTimes(engine: string, count: number, most: number): FirstTokenTime[] {
    return this.#statements.times.all({ engine, count, most });
  }

  ping(): void {
    this.database.sqlite.prepare("select 1").get();
  }

  #read(scope: Scope, conversation: number | undefined): JournalScope {
    const { tenant, userId } = scope;
    const user = { deletions: this.deletionsOf(tenant, userId), forgotten: this.forgottenOf(tenant, userId) };
    const version = this.versionOf(scope);
    if (version === null) return { version, snapshot: null, behind: [], newestAt: 0, conversation: [], ...user };
    const { scopeId } = version;
    const snapshot = this.#snapshotOf(scopeId);
    return {
      version,
      snapshot,
      behind: this.#changesAfter(scopeId, snapshot?.n ?? 0),
      newestAt: this.#statements.newestAt.get(scopeId) ?? 0,
      conversation: conversation === undefined ? [] : this.#newestOf(scopeId, conversation),
      ...user,
    };
  }

  #newestOf(scopeId: number, conversation: number): JournalRecord[] {
    return this.#statements.conversation.all({ scopeId, conversation }).map(readRecord);
  }

  #snapshotOf(scopeId: number): Snapshot | null {
    const row = this.#statements.snapshot.get(scopeId);
    if (row === undefined) return null;
    const { sum, ...snapshot } = row;
    if (sumOfSnapshot(scopeId, snapshot) !== sum)
      throw damagedRecord({ scopeId, n: snapshot.n }, "its snapshot is damaged");
    return snapshot;
  }

  #changesAfter(scopeId: number, n: number): JournalScope["behind"] {
    const rows: JournalRow[] = this.#statements.behind.all({ scopeId, n });
    return rows.map((row) => {
      const { n: number, kind, changes } = readRecord(row);
      return { n: number, kind, changes };
    });
  }
}
