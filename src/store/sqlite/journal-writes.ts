import type { FirstTokenTime, MemoryId, Scope, UserId } from "../../core/index.js";
import { type DeletionCounts, isSameVersion, StaleScopeError } from "../api/store.js";
import { bucketOf } from "../database/digest-seal.js";
import type { DatabaseConnection } from "../database/open-database.js";
import { PreparedTexts } from "../database/sql.js";
import { ForgottenPieces } from "../erasure/forgotten-pieces.js";
import type {
  CountedDeletion,
  JournalChange,
  JournalUnit,
  NewRecord,
  ResponseRow,
  RewrittenRecord,
  WrittenUnit,
} from "../journal/journal-database.js";
import {
  countValues,
  EVERYTHING,
  HAS_RECORD,
  numberOf,
  RECORD_COLUMNS,
  type RecordRow,
  readRecord,
  rewriteValues,
  scopeKey,
  sumOfRecord,
  sumOfSnapshot,
  USES_BETWEEN_REMOVALS,
  WRITES,
} from "../journal/journal-sql.js";

/** A scope while a unit is applied to it. */
interface Applied {
  readonly scopeId: number;
  /** The last record's number and `seq`; 0: none. */
  n: number;
  seq: number;
  /** Its checksum. */
  sum: number;
  /** What removed records said of known memories. */
  readonly loose: Buffer[];
}

/** A scope's name, and its last record. */
interface Claimed {
  readonly tenant: string;
  readonly userId: string;
  readonly agentId: string;
  readonly n: number | null;
  readonly seq: number | null;
  readonly sum: number | null;
}

/** Everything that a user's scopes say. */
const BODIES_OF_USER = `with own as (select scope_id from scopes where tenant = ? and user_id = ?)
  select data from snapshots where scope_id in own
  union all select changes from journal where scope_id in own and changes is not null
  union all select said from journal where scope_id in own and said is not null
  union all select messages from instructions where scope_id in own`;

/** The request may be gone by now: withdrawn, expired or forgotten. */
const KEEP_RESPONSE = `insert into responses (scope_id, request_id, id, tenant, used)
  select $1, $2, $3, $4, $5 where ${HAS_RECORD}
  on conflict (scope_id, id) do update set used = excluded.used, request_id = excluded.request_id`;

/**
 * What `JournalDatabase` writes to a file. Runs inside the caller's transaction. Calls throw {@link StaleScopeError} before they have
 * written anything; after any other error the transaction has to be undone.
 */
export class JournalWrites {
  readonly #sql: PreparedTexts;
  #erased: ForgottenPieces | null = null;

  constructor(private readonly database: DatabaseConnection) {
    this.#sql = new PreparedTexts(database.sqlite);
  }

  /** Pieces of the texts that calls erased since the last call of this; null: no call erased any. */
  takeErased(): ForgottenPieces | null {
    const erased = this.#erased;
    this.#erased = null;
    return erased;
  }

  /** See `JournalDatabase.writeTogether`. Each unit is compared with what was stored before any of them. */
  writeTogether(units: readonly JournalUnit[]): WrittenUnit[] {
    const versions = units.map((unit) => this.#compare(unit));
    return units.map((unit, at) => this.#apply(unit, versions[at] ?? null));
  }

  /** See `JournalDatabase.deleteUser`. */
  deleteUser(tenant: string, userId: UserId, isInSource: boolean): number {
    const pieces = this.#erasing([]);
    for (const json of this.database.sqlite
      .prepare<unknown[], string>(BODIES_OF_USER)
      .pluck()
      .iterate(tenant, userId)) {
      if (pieces.isFull) break;
      addText(pieces, json);
    }
    this.#count({ tenant, userId }, { memoryId: null, isInSource });
    this.#sql.run(WRITES.removeForgotten.text, [tenant, userId]);
    const text = "delete from scopes where tenant = $1 and user_id = $2 returning scope_id";
    return this.#sql.run(text, [tenant, userId]).length;
  }

  /** See `JournalDatabase.deletedFromSource`. The removed row held the user's name. */
  deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): void {
    this.#sql.run(WRITES.confirm.text, [tenant, userId, memoryId ?? EVERYTHING]);
    this.#erasing([]);
  }

  /** See `JournalDatabase.emptyLog`. */
  emptyLog(): void {
    this.#erasing([]);
  }

  /** See `Store.keepResponse`. */
  keepResponse(
    scope: Scope,
    deletions: DeletionCounts,
    { id, requestId }: ResponseRow,
    continued: string | null,
    most: number,
  ): void {
    const { tenant } = scope;
    const scopeId = this.#scopeId(scope);
    if (scopeId === null || !this.#areStill(scope, deletions)) return;
    const next = "select coalesce(max(used), 0) + 1 as used from responses where tenant = $1";
    const used = this.#sql.run<{ used: number }>(next, [tenant])[0]?.used ?? 1;
    const use = "update responses set used = $3 where scope_id = $1 and id = $2";
    if (continued !== null) this.#sql.run(use, [scopeId, continued, used]);
    this.#sql.run(KEEP_RESPONSE, [scopeId, requestId, id, tenant, used]);
    if (used % USES_BETWEEN_REMOVALS !== 0) return;
    const removeOldest = `delete from responses where tenant = $1 and used <=
      (select used from responses where tenant = $1 order by used desc limit 1 offset $2)`;
    this.#sql.run(removeOldest, [tenant, most]);
  }

  /** See `Store.keepFirstTokenTime`. */
  keepFirstTokenTime(engine: string, { uncachedTokens, cachedTokens, ms }: FirstTokenTime, most: number): void {
    this.#sql.run(WRITES.keepTime.text, [engine, uncachedTokens, cachedTokens, ms]);
    this.#sql.run(WRITES.dropTimes.text, [engine, most]);
  }

  /** Where pieces of erased texts go; asked for by whatever leaves something to erase. */
  #erasing(texts: readonly string[]): ForgottenPieces {
    this.#erased ??= new ForgottenPieces();
    for (const text of texts) this.#erased.add(text);
    return this.#erased;
  }

  /** Whether nothing of a user was deleted since these counts. */
  #areStill(user: Pick<Scope, "tenant" | "userId">, { users, memories }: DeletionCounts): boolean {
    const text = "select users, memories from deletions where bucket = $1";
    const [now] = this.#sql.run<DeletionCounts>(text, [bucketOf(user, this.database.digests)]);
    return (now?.users ?? 0) === users && (now?.memories ?? 0) === memories;
  }

  #count(user: Pick<Scope, "tenant" | "userId">, { memoryId, isInSource }: CountedDeletion): void {
    this.#sql.run(WRITES.countDeletion.text, countValues(bucketOf(user, this.database.digests), memoryId));
    if (isInSource) this.#sql.run(WRITES.owe.text, [user.tenant, user.userId, memoryId ?? EVERYTHING]);
  }

  #scopeId(scope: Scope): number | null {
    const text = `select scope_id as "scopeId" from scopes where tenant = $1 and user_id = $2 and agent_id = $3`;
    return this.#sql.run<{ scopeId: number }>(text, scopeKey(scope))[0]?.scopeId ?? null;
  }

  /** Gives the stored scope, null where there is none yet. */
  #compare({ scope, version, deletions }: JournalUnit): Applied | null {
    if (deletions !== null && !this.#areStill(scope, deletions)) throw stale();
    if (version === null) {
      if (this.#scopeId(scope) !== null) throw stale();
      return null;
    }
    const text = `select tenant, user_id as "userId", agent_id as "agentId", n, seq, sum
      from scopes left join journal on journal.scope_id = scopes.scope_id
      where scopes.scope_id = $1 order by n desc limit 1`;
    const { scopeId } = version;
    const [stored] = this.#sql.run<Claimed>(text, [scopeId]);
    const [tenant, userId, agentId] = scopeKey(scope);
    // By name too: the number of a scope whose first commit was undone is given again.
    const isNamed = stored?.tenant === tenant && stored.userId === userId && stored.agentId === agentId;
    if (stored === undefined || !isNamed) throw stale();
    const [commits, sum] = [stored.n ?? 0, stored.sum ?? 0];
    if (!isSameVersion({ scopeId, commits, sum }, version)) throw stale();
    return { scopeId, n: commits, seq: stored.seq ?? 0, sum, loose: [] };
  }

  #apply(unit: JournalUnit, stored: Applied | null): WrittenUnit {
    const scope = stored ?? this.#create(unit);
    if (unit.erased !== undefined) this.#erasing(unit.erased);
    let hasEnded = false;
    for (const change of unit.changes) {
      this.#change(unit, scope, change);
      hasEnded ||= change.kind === "end";
    }
    // Its number is the scope's version.
    const isLastGone = unit.changes.some((change) => change.kind === "remove" && change.seqs.includes(scope.seq));
    if (isLastGone) throw new Error("the last record of a scope stays");
    if (!hasEnded) this.#keepHashes(scope, Buffer.concat(scope.loose));
    if (unit.deletion !== undefined) this.#count(unit.scope, unit.deletion);
    const { scopeId, n: commits, sum } = scope;
    return { version: hasEnded ? null : { scopeId, commits, sum } };
  }

  #create({ scope, at }: JournalUnit): Applied {
    const text = `insert into scopes (tenant, user_id, agent_id, created_at) values ($1, $2, $3, $4)
      on conflict do nothing returning scope_id as "scopeId"`;
    const [created] = this.#sql.run<{ scopeId: number }>(text, [...scopeKey(scope), at]);
    // Another unit of the same call has created it.
    if (created === undefined) throw new Error("two units of one call write to one scope");
    return { scopeId: created.scopeId, n: 0, seq: 0, sum: 0, loose: [] };
  }

  #change(unit: JournalUnit, scope: Applied, change: JournalChange): void {
    const { scopeId } = scope;
    switch (change.kind) {
      case "append":
        for (const record of change.records) this.#append(scope, record);
        return;
      case "memories":
        this.#keepHashes(scope, hashBytes(change.hashes));
        return;
      case "snapshot": {
        const sum = sumOfSnapshot(scopeId, { n: scope.n, data: change.data });
        this.#sql.run(WRITES.snapshot.text, [scopeId, scope.n, sum, change.data]);
        return;
      }
      case "keep-shared": {
        const text = "insert into instructions (scope_id, digest, messages) values ($1, $2, $3) on conflict do nothing";
        for (const { digest, messages } of change.rows) this.#sql.run(text, [scopeId, digest, messages]);
        return;
      }
      case "remove-shared": {
        const text = "delete from instructions where scope_id = $1 and digest = $2";
        for (const digest of change.digests) this.#sql.run(text, [scopeId, digest]);
        return;
      }
      case "rewrite":
        this.#rewrite(scope, change.seq, change.to);
        return;
      case "remove":
        this.#remove(scope, change.seqs);
        return;
      case "forget":
        this.#sql.run(WRITES.forget.text, [unit.scope.tenant, unit.scope.userId, change.memoryId]);
        return;
      case "keep-responses": {
        const text = "delete from responses where scope_id = $1 and id not in (select value from json_each($2))";
        this.#sql.run(text, [scopeId, JSON.stringify(change.ids)]);
        return;
      }
      case "end":
        this.#sql.run("delete from scopes where scope_id = $1", [scopeId]);
    }
  }

  #append(scope: Applied, record: NewRecord): void {
    const { kind, at, turn, turns, conversation, requestId, leaf, changes, said } = record;
    const { scopeId } = scope;
    const n = scope.n + 1;
    const sum = sumOfRecord(record, { scopeId, n });
    const text = `insert into journal (scope_id, n, kind, at, turn, turns, conversation, request_id, leaf, sum, changes, said)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) returning seq`;
    const values = [scopeId, n, numberOf(kind), at, turn, turns, conversation, requestId, leaf, sum, changes, said];
    const [written] = this.#sql.run<{ seq: number }>(text, values);
    scope.n = n;
    scope.sum = sum;
    scope.seq = written?.seq ?? 0;
  }

  /** With the scope's last record: rows of memories are found, and removed, by their records. */
  #keepHashes({ scopeId, seq }: Applied, hashes: Buffer): void {
    if (hashes.length === 0) return;
    if (seq === 0) throw new Error("memories are kept with a record, and the scope has none");
    const text = `insert into known_memories (seq, scope_id, hashes) values ($1, $2, $3)
      on conflict (seq) do update set hashes = cast(hashes || excluded.hashes as blob)`;
    this.#sql.run(text, [seq, scopeId, hashes]);
  }

  #rewrite(scope: Applied, seq: number, to: RewrittenRecord): void {
    const { scopeId } = scope;
    const [row] = this.#sql.run<RecordRow>(`select ${RECORD_COLUMNS} from journal j where j.seq = $1`, [seq]);
    if (row === undefined || row.scopeId !== scopeId) throw new Error("a rewritten record is not there");
    const before = readRecord(row);
    const after = { ...before, ...to };
    this.#sql.run(WRITES.rewrite.text, rewriteValues(after));
    if (seq === scope.seq) scope.sum = sumOfRecord(after, after);
    if (before.requestId !== null && after.requestId !== before.requestId)
      this.#sql.run(WRITES.removeResponsesOf.text, [scopeId, before.requestId]);
  }

  #remove({ scopeId, loose }: Applied, seqs: readonly number[]): void {
    const removed = `delete from journal where seq = $1 and scope_id = $2 returning request_id as "requestId"`;
    for (const seq of seqs) {
      const [known] = this.#sql.run<{ hashes: Buffer }>("select hashes from known_memories where seq = $1", [seq]);
      if (known !== undefined) loose.push(known.hashes);
      const [row] = this.#sql.run<{ requestId: string | null }>(removed, [seq, scopeId]);
      if (row === undefined) throw new Error("a removed record is not there");
      if (row.requestId !== null) this.#sql.run(WRITES.removeResponsesOf.text, [scopeId, row.requestId]);
    }
  }
}

function stale(): StaleScopeError {
  return new StaleScopeError("the scope was changed by another process");
}

function hashBytes(hashes: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * hashes.length);
  hashes.forEach((hash, at) => {
    bytes.writeUInt32BE(hash >>> 0, 4 * at);
  });
  return bytes;
}

/** Adds a stored body's texts. A damaged body is deleted all the same. */
function addText(pieces: ForgottenPieces, json: string): void {
  try {
    pieces.addJson(JSON.parse(json));
  } catch {
    pieces.add(json);
  }
}
