import type { Digest, NodeId, Scope, TurnId } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import type {
  CommitBase,
  ExpiredTurns,
  ExpiryRecord,
  MessageId,
  NamingTurn,
  ScannedTurns,
  ScopeDelta,
  ScopesFound,
  StoredVersion,
} from "../api/store.js";
import { appending, encodeAnew, encodeChange, plainRecord, writeUnit } from "./commits.js";
import {
  type JournalChange,
  type RecordKey,
  type RecordKind,
  type RewrittenRecord,
  WITH_TURNS,
} from "./journal-database.js";
import { type JournalParts, listAll, listInPages, readInPieces, turnsIn } from "./journal-parts.js";
import { requestsIn, requestsNamed } from "./request-reading.js";
import { type SaidTurn, SharedMessage } from "./said-codec.js";
import { hasTurns, TurnReading, type TurnRecord } from "./turn-reading.js";

/** What a record becomes that belongs to nothing any more, but whose changes are still folded. */
const CHANGES_ONLY: RewrittenRecord = {
  kind: "changed",
  turns: 0,
  conversation: null,
  requestId: null,
  leaf: null,
  said: null,
};

/**
 * See `Store.commitWithdrawal`. The turn's record keeps its changes, and the turns that were restated with it; the shared rows go that no other
 * turn refers to. The digests of its sections stay, as the prompt may have been seen.
 */
export async function commitWithdrawal(
  parts: JournalParts,
  scope: Scope,
  { version, deletions }: CommitBase,
  delta: ScopeDelta,
  turn: TurnId,
): Promise<StoredVersion> {
  const encoded = encodeChange(parts, version, delta);
  const withdrawn = version === null ? null : await findWithdrawn(parts, version.scopeId, turn);
  const record = withdrawn?.record;
  const said = record === undefined ? null : parts.said.encodeForgotten(record.sections);
  const changes = appending(encoded, [plainRecord(encoded, { kind: "withdrawn", said })]);
  append(changes, withdrawn?.changes ?? []);
  return writeUnit(parts, { scope, version, deletions, changes, at: 0 }, encoded.behind);
}

/** What a withdrawal changes; null where there is nothing to withdraw, because it is gone or is continued. */
async function findWithdrawn(parts: JournalParts, scopeId: number, turn: TurnId) {
  const reading = new TurnReading(parts, scopeId);
  const found = await reading.turn(turn);
  if (found === null || (await isContinued(parts, reading, found.record, turn))) return null;
  const { record } = found;
  const changes = [...(await withoutTurns(parts, [record], new Set([turn]), false))];
  const freed = await sharedOnlyBy(parts, scopeId, record, turn);
  if (freed.length > 0)
    changes.push({ kind: "remove-shared", digests: freed.map((digest) => parts.digests.seal(digest)) });
  return { record, changes };
}

async function isContinued(
  parts: JournalParts,
  reading: TurnReading,
  { key }: TurnRecord,
  turn: TurnId,
): Promise<boolean> {
  if (key.conversation === null) return false;
  const later = { kinds: WITH_TURNS, conversation: key.conversation, after: key.n - 1 };
  for await (const keys of listInPages(parts.database, reading.scopeId, later))
    for (const { turns } of await reading.recordsOf(keys))
      if (turns.some(({ turn: { parent } }) => parent === turn)) return true;
  return false;
}

/** The rows of a turn that no other turn of the scope refers to; mostly the newest other ones refer to all. */
async function sharedOnlyBy(
  parts: JournalParts,
  scopeId: number,
  record: TurnRecord,
  turn: TurnId,
): Promise<readonly Digest[]> {
  const own = record.turns.filter(({ turn: { id } }) => id === turn);
  const left = new Set(own.flatMap(sharedBy));
  const release = (turns: readonly SaidTurn[]) => {
    for (const other of turns) for (const digest of sharedBy(other)) left.delete(digest);
  };
  release(record.turns.filter(({ turn: { id } }) => id !== turn));
  const filter = { kinds: WITH_TURNS, newestFirst: true } as const;
  for await (const keys of listInPages(parts.database, scopeId, filter, 64)) {
    if (left.size === 0) break;
    const others = keys.filter(({ seq }) => seq !== record.key.seq).map(({ seq }) => seq);
    await readInPieces(parts.database, others, (other) => {
      if (hasTurns(other)) release(turnsIn(parts, other));
    });
  }
  return [...left];
}

/** The rows that a turn refers to: its instructions, and the messages that it shares. */
function sharedBy({ turn, given }: SaidTurn): readonly Digest[] {
  return [turn.head, ...given.flatMap((message) => (message instanceof SharedMessage ? message.key : []))];
}

/**
 * See `Store.commitExpiry`. Records go whole, with what was reported of their requests and said in response; a snapshot takes the place of
 * all changes before it, as those of records that stay hold texts that expire.
 */
export async function commitExpiry(
  parts: JournalParts,
  scope: Scope,
  { version, deletions }: CommitBase,
  { delta, turns, heads, messages }: ExpiryRecord,
): Promise<StoredVersion> {
  const encoded = encodeAnew(parts, delta);
  const changes = appending(encoded, [plainRecord(encoded, { kind: "expired" })]);
  if (version !== null) {
    const gone = new Set(turns.expired.map(({ id }) => id));
    const reading = new TurnReading(parts, version.scopeId);
    const records = await reading.recordsOf(await parts.database.withTurns(version.scopeId, [...gone]));
    const leaving = new Set(records.map(({ key }) => key.seq));
    append(changes, await withoutChanges(parts, scope, { version, deletions }, leaving));
    append(changes, await withoutTurns(parts, records, gone, true));
  }
  const freed = [...heads, ...(messages as readonly string[] as readonly Digest[])];
  changes.push({ kind: "remove-shared", digests: freed.map((digest) => parts.digests.seal(digest)) });
  return writeUnit(parts, { scope, version, deletions, changes, at: 0 }, encoded.behind);
}

/**
 * Takes turns out of their records, with their requests. `isWhole`: a snapshot has their changes, and those that are left without turns
 * are removed.
 */
async function withoutTurns(
  parts: JournalParts,
  records: readonly TurnRecord[],
  gone: ReadonlySet<TurnId>,
  isWhole: boolean,
): Promise<readonly JournalChange[]> {
  const changes: JournalChange[] = [];
  const removed: number[] = [];
  const leave = ({ seq }: RecordKey) => {
    if (isWhole) removed.push(seq);
    else changes.push({ kind: "rewrite", seq, to: CHANGES_ONLY });
  };
  const withoutRequest: RecordKey[] = [];
  for (const { key, turns, sections, request } of records) {
    const kept = turns.filter(({ turn }) => !gone.has(turn.id));
    const last = kept.at(-1)?.turn;
    const losesRequest = last === undefined || last.id !== turns.at(-1)?.turn.id;
    if (losesRequest) withoutRequest.push(key);
    if (last === undefined) leave(key);
    else {
      const said = parts.said.encodeComposed({ turns: kept, sections, request: losesRequest ? null : request });
      const unnamed = losesRequest ? ({ kind: "said", requestId: null, leaf: null } as const) : {};
      const superseded = isWhole ? { changes: null } : {};
      const to = { turn: last.id, turns: kept.length, said, ...unnamed, ...superseded };
      changes.push({ kind: "rewrite", seq: key.seq, to });
    }
  }
  const [first] = records;
  if (first !== undefined) {
    const { others, before } = await endRequests(parts, first.key.scopeId, withoutRequest);
    for (const key of others) leave(key);
    for (const { seq } of before)
      changes.push({ kind: "rewrite", seq, to: { kind: "said", requestId: null, leaf: null } });
  }
  if (removed.length > 0) changes.push({ kind: "remove", seqs: removed });
  return changes;
}

/**
 * What else there is of the requests of some records: reports and evictions, and earlier records under the same ids, which would be taken
 * for the requests once those are gone.
 */
async function endRequests(parts: JournalParts, scopeId: number, gone: readonly RecordKey[]) {
  const ids = [...new Set(gone.flatMap(({ requestId }) => requestId ?? []))];
  const keys = ids.length === 0 ? [] : await parts.database.withRequests({ scopeId }, ids);
  const goneSeqs = new Set(gone.map(({ seq }) => seq));
  const ended = new Set(
    requestsIn(keys).flatMap(({ requestId, composed }) => (goneSeqs.has(composed.seq) ? [requestId] : [])),
  );
  const left = keys.filter(({ seq, requestId }) => requestId !== null && ended.has(requestId) && !goneSeqs.has(seq));
  return {
    others: left.filter(({ kind }) => kind !== "composed"),
    before: left.filter(({ kind }) => kind === "composed"),
  };
}

/** Records that are looked at, and rewritten, at once. */
const AT_ONCE = 200;
/** Kinds of records that say nothing without their changes. */
const PASSING: readonly RecordKind[] = ["changed", "expired"];
const TELLING: readonly RecordKind[] = ["said", "composed", "reported", "evicted", "forgotten", "withdrawn"];
/** An expiry leaves no changes in any record before its own. */
const MARK = { kinds: ["expired"], newestFirst: true, most: 1 } as const;

/**
 * What takes the changes out of all of a scope's records, in a unit that ends with an `expired` record and a snapshot: they hold texts of
 * blocks that expire. Records that say nothing without their changes are removed. Each record is read once in its life for this.
 *
 * What the stored snapshot has superseded already may be of any length, and is written here and now, in pieces; so the unit has the changes
 * that a load reads, at most. `leaving`: records that go with the unit anyway.
 */
async function withoutChanges(
  { database }: JournalParts,
  scope: Scope,
  { version, deletions }: CommitBase & { readonly version: StoredVersion },
  leaving: ReadonlySet<number>,
): Promise<readonly JournalChange[]> {
  const { scopeId } = version;
  const passing = await listAll(database, scopeId, { kinds: PASSING });
  const inUnit: JournalChange[] = [{ kind: "remove", seqs: passing.map(({ seq }) => seq) }];
  const [mark] = await database.list(scopeId, MARK);
  const superseded = (await database.load(scope)).snapshot?.n ?? 0;
  for await (const keys of listInPages(database, scopeId, { kinds: TELLING, after: mark?.n ?? 0 }, AT_ONCE)) {
    const now: JournalChange[] = [];
    const seqs = keys.map(({ seq }) => seq).filter((seq) => !leaving.has(seq));
    await readInPieces(database, seqs, ({ seq, n, changes }) => {
      if (changes !== null) (n <= superseded ? now : inUnit).push({ kind: "rewrite", seq, to: { changes: null } });
    });
    if (now.length > 0) await database.write({ scope, version, deletions, changes: now, at: 0 });
  }
  return inUnit;
}

/** Records of a scan that are read at once. */
const SCANNED_AT_ONCE = 200;

/** See `Store.scopesWithOldTurns`. */
export async function findScopesWithOldTurns(parts: JournalParts, before: number, after: number): Promise<ScopesFound> {
  const { scopes, next } = await parts.database.writtenBefore(before, after);
  const found: ScopesFound["scopes"][number][] = [];
  // Old turns of an active conversation stay; a scope that has only those is left out, so that it is not scanned each time.
  for (const { scopeId, scope } of scopes) if (await hasExpired(parts, scopeId, before)) found.push(scope);
  return { scopes: found, next };
}

async function hasExpired({ database }: JournalParts, scopeId: number, before: number): Promise<boolean> {
  const active = new Set<number>();
  for await (const keys of listInPages(database, scopeId, { kinds: WITH_TURNS, newestFirst: true }))
    for (const { conversation, at } of keys) {
      if (at < before && (conversation === null || !active.has(conversation))) return true;
      if (conversation !== null) active.add(conversation);
    }
  return false;
}

/** Reads which of a scope's turns were not used since a time. Records are given whole, as they are removed whole. */
export class OldTurns {
  readonly #reading: TurnReading;
  /** When conversations were used last. */
  readonly #lastUse = new Map<number, number>();

  constructor(
    private readonly parts: JournalParts,
    private readonly scopeId: number,
    private readonly before: number,
  ) {
    this.#reading = new TurnReading(parts, scopeId);
  }

  /** See `Store.scanTurns`. At least `most` turns where there are so many, as records are given whole. */
  async scan(after: TurnId | 0, most: number): Promise<ScannedTurns> {
    const expired: NamingTurn[] = [];
    const remaining: NamingTurn[] = [];
    let last: TurnId | null = null;
    for await (const keys of this.#keysAfter(after, Math.min(most, SCANNED_AT_ONCE))) {
      for (const record of await this.#reading.recordsOf(keys)) {
        const list = (await this.#isOld(record.key)) ? expired : remaining;
        for (const turn of namingTurns(record)) if (turn.id > after) list.push(turn);
        last = record.turns.at(-1)?.turn.id ?? last;
        if (expired.length + remaining.length >= most) return { expired, remaining, next: last };
      }
    }
    return { expired, remaining, next: null };
  }

  /** See `Store.findExpired`. */
  async among(turns: readonly TurnId[]): Promise<ExpiredTurns> {
    const expired: NamingTurn[] = [];
    const old = new Map<number, RecordKey>();
    const keys = await this.parts.database.withTurns(this.scopeId, turns);
    for (const record of await this.#reading.recordsOf(keys)) {
      if (!(await this.#isOld(record.key))) continue;
      for (const turn of namingTurns(record)) expired.push(turn);
      old.set(record.key.seq, record.key);
    }
    const ids = [...old.values()].flatMap(({ requestId }) => requestId ?? []);
    const named = await requestsNamed(this.parts.database, this.scopeId, ids);
    const live = named
      .filter(({ composed, isEvicted }) => !isEvicted && old.has(composed.seq))
      .map(({ composed: { leaf, turn } }) => ({ leaf: leaf as NodeId, turn: turn as TurnId }));
    return { expired, live };
  }

  /** Keys of the records with turns after one, in order. */
  async *#keysAfter(turn: TurnId | 0, most: number): AsyncGenerator<readonly RecordKey[], void, undefined> {
    const { database } = this.parts;
    const [own] = turn === 0 ? [] : await database.withTurns(this.scopeId, [turn]);
    if (turn === 0 || own !== undefined) {
      const after = own === undefined ? 0 : own.n - (own.turn > turn ? 1 : 0);
      yield* listInPages(database, this.scopeId, { kinds: WITH_TURNS, after }, most);
      return;
    }
    // The turn is gone, as its records were removed since: what came after it is new, and little.
    const newer: RecordKey[] = [];
    for await (const keys of listInPages(database, this.scopeId, { kinds: WITH_TURNS, newestFirst: true }, most)) {
      const after = keys.filter((key) => key.turn > turn);
      append(newer, after);
      if (after.length < keys.length) break;
    }
    yield newer.reverse();
  }

  /** A conversation's turns are used together. */
  async #isOld({ conversation, at }: RecordKey): Promise<boolean> {
    if (conversation === null) return at < this.before;
    const known = this.#lastUse.get(conversation);
    if (known !== undefined) return known < this.before;
    const filter = { kinds: WITH_TURNS, conversation, newestFirst: true, most: 1 };
    const [newest] = await this.parts.database.list(this.scopeId, filter);
    const lastUse = newest?.at ?? at;
    this.#lastUse.set(conversation, lastUse);
    return lastUse < this.before;
  }
}

function namingTurns({ turns }: TurnRecord): readonly NamingTurn[] {
  return turns.map(({ turn: { id, conversationId, injection, retention, requested, head }, given }) => {
    // Other messages stand in the turn's record, and go with it.
    const messages = given.flatMap((message) =>
      message instanceof SharedMessage ? (message.key as string as MessageId) : [],
    );
    return { id, conversationId, injection, retention, requested, head, messages };
  });
}
