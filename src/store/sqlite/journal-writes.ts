import type { FirstTokenTime, MemoryId, Scope, UserId } from "../../core/index.js";
import { type DeletionCounts, isSameVersion, StaleScopeError } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type { DatabaseConnection } from "../database/open-database.js";
import { keyOf } from "../database/statements.js";
import { ForgottenPieces } from "../erasure/forgotten-pieces.js";
import { sumOfRecord, sumOfSnapshot } from "../journal/damaged-record.js";
import type {
  CountedDeletion,
  JournalChange,
  JournalUnit,
  NewRecord,
  ResponseRow,
  RewrittenRecord,
  WrittenUnit,
} from "../journal/journal-database.js";
import { Deletions } from "./deletions.js";
import { numberOf, prepareWrites, readRecord } from "./journal-statements.js";

/** How often a tenant's oldest responses are removed: once in so many uses. */
const USES_BETWEEN_REMOVALS = 64;

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

/**
 * What `JournalDatabase` writes to a file. Runs inside the caller's transaction. Calls throw {@link StaleScopeError} before they have
 * written anything; after any other error the transaction has to be undone.
 */
export class JournalWrites {
  readonly #deletions: Deletions;
  readonly #statements: ReturnType<typeof prepareWrites>;
  #erased: ForgottenPieces | null = null;

  constructor(database: DatabaseConnection) {
    this.#deletions = new Deletions(database);
    this.#statements = prepareWrites(database.sqlite);
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
  deleteUser(tenant: string, userId: UserId, deletion: CountedDeletion, erased: readonly string[]): number {
    const s = this.#statements;
    const pieces = this.#erasing(erased);
    for (const json of s.bodiesOfUser.iterate({ tenant, userId })) {
      if (pieces.isFull) break;
      addText(pieces, json);
    }
    this.#deletions.count({ tenant, userId }, deletion.memoryId, deletion.isInSource);
    s.removeForgotten.run({ tenant, userId });
    return s.removeScopes.run({ tenant, userId }).changes;
  }

  /** See `JournalDatabase.deletedFromSource`. The removed row held the user's name. */
  deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): void {
    this.#deletions.done({ tenant, userId }, memoryId);
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
    row: ResponseRow,
    continued: SealedDigest | null,
    most: number,
  ): void {
    const { tenant } = scope;
    const s = this.#statements;
    const scopeId = s.scopeId.get(keyOf(scope));
    if (scopeId === undefined || !this.#deletions.areStill(scope, deletions)) return;
    const used = s.nextUse.get(tenant) ?? 1;
    if (continued !== null) s.useResponse.run({ scopeId, id: continued, used });
    s.keepResponse.run({ ...row, scopeId, tenant, used, held: row.held ? 1 : 0 });
    if (used % USES_BETWEEN_REMOVALS === 0) s.removeOldestResponses.run({ tenant, most });
  }

  /** See `Store.keepFirstTokenTime`. */
  keepFirstTokenTime(engine: string, time: FirstTokenTime, most: number): void {
    this.#statements.keepTime.run({ engine, ...time });
    this.#statements.dropTimes.run({ engine, most });
  }

  /** Where pieces of erased texts go; asked for by whatever leaves something to erase. */
  #erasing(texts: readonly string[]): ForgottenPieces {
    this.#erased ??= new ForgottenPieces();
    for (const text of texts) this.#erased.add(text);
    return this.#erased;
  }

  /** Gives the stored scope, null where there is none yet. */
  #compare({ scope, version, deletions }: JournalUnit): Applied | null {
    if (deletions !== null && !this.#deletions.areStill(scope, deletions)) throw stale();
    const { tenant, userId, agentId } = keyOf(scope);
    if (version === null) {
      if (this.#statements.scopeId.get({ tenant, userId, agentId }) !== undefined) throw stale();
      return null;
    }
    // By name too: the number of a scope whose first commit was undone is given again.
    const stored = this.#statements.claimed.get(version.scopeId);
    const isNamed = stored?.tenant === tenant && stored.userId === userId && stored.agentId === agentId;
    if (stored === undefined || !isNamed) throw stale();
    const { scopeId } = version;
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
    if (unit.deletion !== undefined)
      this.#deletions.count(unit.scope, unit.deletion.memoryId, unit.deletion.isInSource);
    const { scopeId, n: commits, sum } = scope;
    return { version: hasEnded ? null : { scopeId, commits, sum } };
  }

  #create({ scope, at }: JournalUnit): Applied {
    const scopeId = this.#statements.addScope.get({ ...keyOf(scope), createdAt: at });
    // Another unit of the same call has created it.
    if (scopeId === undefined) throw new Error("two units of one call write to one scope");
    return { scopeId, n: 0, seq: 0, sum: 0, loose: [] };
  }

  #change(unit: JournalUnit, scope: Applied, change: JournalChange): void {
    const s = this.#statements;
    const { scopeId } = scope;
    switch (change.kind) {
      case "append":
        for (const record of change.records) this.#append(scope, record);
        return;
      case "memories":
        this.#keepHashes(scope, hashBytes(change.hashes));
        return;
      case "snapshot": {
        const snapshot = { n: scope.n, data: change.data };
        s.keepSnapshot.run({ ...snapshot, scopeId, sum: sumOfSnapshot(scopeId, snapshot) });
        return;
      }
      case "keep-shared":
        for (const row of change.rows) (change.replace ? s.replaceShared : s.keepShared).run({ ...row, scopeId });
        return;
      case "remove-shared":
        for (const digest of change.digests) s.removeShared.run({ scopeId, digest });
        return;
      case "rewrite":
        this.#rewrite(scope, change.seq, change.to);
        return;
      case "remove":
        this.#remove(scope, change.seqs);
        return;
      case "forget":
        s.forget.run({ tenant: unit.scope.tenant, userId: unit.scope.userId, memoryId: change.memoryId });
        return;
      case "remove-responses":
        this.#removeResponses(scopeId, unit.erased !== undefined);
        return;
      case "end":
        s.removeScope.run(scopeId);
    }
  }

  #append(scope: Applied, record: NewRecord): void {
    const { scopeId } = scope;
    const n = scope.n + 1;
    const sum = sumOfRecord(record, { scopeId, n });
    const { lastInsertRowid } = this.#statements.append.run({
      ...record,
      kind: numberOf(record.kind),
      scopeId,
      n,
      sum,
    });
    scope.n = n;
    scope.sum = sum;
    scope.seq = Number(lastInsertRowid);
  }

  /** With the scope's last record: rows of memories are found, and removed, by their records. */
  #keepHashes({ scopeId, seq }: Applied, hashes: Buffer): void {
    if (hashes.length === 0) return;
    if (seq === 0) throw new Error("memories are kept with a record, and the scope has none");
    this.#statements.keepHashes.run({ seq, scopeId, hashes });
  }

  #rewrite(scope: Applied, seq: number, to: RewrittenRecord): void {
    const { scopeId } = scope;
    const s = this.#statements;
    const row = s.record.get(seq);
    if (row === undefined || row.scopeId !== scopeId) throw new Error("a rewritten record is not there");
    const before = readRecord(row);
    const after = { ...before, ...to };
    const sum = sumOfRecord(after, after);
    s.rewrite.run({ ...after, kind: numberOf(after.kind), sum });
    if (seq === scope.seq) scope.sum = sum;
    if (before.requestId !== null && after.requestId !== before.requestId)
      s.removeResponsesOf.run({ scopeId, requestId: before.requestId });
  }

  #remove({ scopeId, loose }: Applied, seqs: readonly number[]): void {
    const s = this.#statements;
    for (const seq of seqs) {
      const row = s.key.get({ seq, scopeId });
      if (row === undefined) throw new Error("a removed record is not there");
      const known = s.hashes.get(seq);
      if (known !== undefined) loose.push(known);
      s.remove.run(seq);
      if (row.requestId !== null) s.removeResponsesOf.run({ scopeId, requestId: row.requestId });
    }
  }

  /** What an answer says is erased, too: it may have come since the caller looked for texts. */
  #removeResponses(scopeId: number, isErased: boolean): void {
    if (isErased) {
      const pieces = this.#erasing([]);
      for (const output of this.#statements.outputs.all(scopeId)) addText(pieces, output);
    }
    this.#statements.removeResponses.run(scopeId);
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
