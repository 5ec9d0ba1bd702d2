/*
 * sqlite/: the store and the API keys on one open database.
 * In: calls of `Store`. Out: what is stored, or the errors that `Store` names.
 * `SqliteReads` answers from the database as it is; `SqliteStore` adds the commits, which go through one `CommitGroup`.
 * SQL stands in `database/` and `records/`; here is only which of it makes one transaction.
 */

import { and, eq } from "drizzle-orm";
import type {
  Digest,
  FirstTokenTime,
  MemoryId,
  RequestId,
  Scope,
  ScopeChanges,
  TurnId,
  UserId,
} from "../../core/index.js";
import {
  type CommitBase,
  type ComposeRecord,
  type DeletionCounts,
  type EngineReport,
  type ExpiryRecord,
  type ForgetRecord,
  type FoundQuotes,
  type ScopeDelta,
  StaleScopeError,
  type Store,
  type StoredResponse,
  type StoredVersion,
} from "../api/store.js";
import { CommitGroup } from "../database/commit-group.js";
import type { OpenDatabase } from "../database/open-database.js";
import * as tables from "../database/schema.js";
import type { ThreadedCheckpoints } from "../database/threaded-checkpoints.js";
import { collectTexts, eraseFromTurns } from "../erasure/erasure.js";
import { FileErasure } from "../erasure/file-erasure.js";
import { ForgottenPieces } from "../erasure/forgotten-pieces.js";
import { eraseQuotes } from "../erasure/quotes.js";
import { deleteExpired } from "../records/expiry.js";
import { turnRow, writeAnswer } from "../records/rows.js";
import { keyOf, writeChanges } from "../records/stored-scope.js";
import { withdrawTurn } from "../records/withdrawal.js";
import { SqliteReads } from "./sqlite-reads.js";

/** No scope has this version. */
const NEVER_STORED: StoredVersion = { scopeId: -1, commits: 0 };

/** The store in one SQLite file. Concurrent composes and reports share a transaction; every other commit is one of its own. */
export class SqliteStore extends SqliteReads implements Store {
  readonly #group: CommitGroup;
  readonly #erasure: FileErasure;

  constructor(
    database: OpenDatabase,
    /** Checkpoints in a worker thread; null: by SQLite itself, which blocks. */
    private readonly checkpoints: ThreadedCheckpoints | null = null,
  ) {
    super(database);
    this.#group = new CommitGroup(database.sqlite, (commits) => checkpoints?.committed(commits));
    this.#erasure = new FileErasure(database.sqlite, () => this.#group.flush());
  }

  async idle(): Promise<void> {
    // Whoever handed it over sees the fault.
    await this.#group.settled.catch(() => {});
  }

  commitCompose(scope: Scope, base: CommitBase, record: ComposeRecord): Promise<StoredVersion> {
    const { composition, request, at } = record;
    const { turn, head, sections, restated, leaf } = composition;
    const { digests } = this.database;
    return this.#commitInGroup(scope, base, record.delta, at, (scopeId) => {
      const s = this.statements;
      this.messages.keepHead(scopeId, digests.seal(turn.head), head);
      if (turn.conversationId !== null) s.keepConversation.run({ scopeId, id: turn.conversationId, lastTurnAt: at });
      for (const section of sections) s.keepSection.run({ scopeId, digest: digests.seal(section) });
      for (const said of [...restated, composition]) {
        const given = this.messages.keep(scopeId, said.given, said.turn);
        s.addTurn.run({ ...turnRow(said.turn, given, digests), scopeId, createdAt: at });
      }
      s.addRequest.run({
        scopeId,
        requestId: request.id,
        turn: turn.id,
        leaf,
        body: digests.seal(request.body),
        answer: writeAnswer(request.answer),
        createdAt: at,
      });
    });
  }

  keepResponse(
    scope: Scope,
    deletions: DeletionCounts,
    id: Digest,
    response: StoredResponse,
    continued: Digest | null,
    most: number,
  ): Promise<void> {
    return this.#inGroup(() => {
      const { tenant } = keyOf(scope);
      const scopeId = this.statements.scopeId.get(keyOf(scope));
      if (scopeId === undefined || !this.deletions.areStill(scope, deletions)) return;
      this.responses.keep({ scopeId, tenant }, id, response, continued, most);
    });
  }

  async keepFirstTokenTime(engine: string, time: FirstTokenTime, most: number): Promise<void> {
    await this.#inGroup(() => this.times.keep(engine, time, most));
  }

  commitChanges(scope: Scope, base: CommitBase, delta: ScopeDelta): Promise<StoredVersion> {
    return this.#commit(scope, base, delta, 0, () => {});
  }

  commitEviction(
    scope: Scope,
    base: CommitBase,
    delta: ScopeDelta,
    requestIds: readonly RequestId[],
  ): Promise<StoredVersion> {
    return this.#commit(scope, base, delta, 0, (scopeId) => {
      for (const requestId of requestIds) this.statements.markEvicted.run({ scopeId, requestId });
    });
  }

  commitWithdrawal(scope: Scope, base: CommitBase, delta: ScopeDelta, turn: TurnId): Promise<StoredVersion> {
    return this.#commit(scope, base, delta, 0, (scopeId) => {
      withdrawTurn(this.database, scopeId, turn);
    });
  }

  commitReport(
    scope: Scope,
    base: CommitBase,
    delta: ScopeDelta,
    { id, observed }: { readonly id: RequestId; readonly observed: EngineReport },
  ): Promise<StoredVersion> {
    return this.#commitInGroup(scope, base, delta, 0, (scopeId) => {
      this.statements.observe.run({ scopeId, requestId: id, observed: JSON.stringify(observed) });
    });
  }

  async commitForgetting(scope: Scope, base: CommitBase, record: ForgetRecord): Promise<StoredVersion> {
    const pieces = new ForgottenPieces();
    const stored = await this.#commit(scope, base, record.delta, record.at, (scopeId) => {
      eraseFromTurns(this.database, this.statements, scopeId, record, pieces);
      this.#removeResponses(scopeId, pieces);
      this.deletions.count(scope, record.memoryId, record.isInSource);
      this.#erasure.count();
    });
    for (const text of [...record.quotes.texts, ...record.quotes.rendered]) pieces.add(text);
    this.#erasure.begin(pieces);
    return stored;
  }

  async eraseQuotes(quotes: FoundQuotes): Promise<void> {
    const pieces = new ForgottenPieces();
    this.#group.run(() => {
      for (const scopeId of quotes.scopes.keys()) {
        eraseQuotes(this.database.sqlite, scopeId, quotes, pieces);
        this.#removeResponses(scopeId, pieces);
      }
      this.#erasure.count();
    });
    this.#erasure.begin(pieces);
  }

  commitExpiry(scope: Scope, base: CommitBase, record: ExpiryRecord): Promise<StoredVersion> {
    return this.#commit(scope, base, record.delta, 0, (scopeId) => {
      deleteExpired(this.database, scopeId, record);
    });
  }

  async commitEnd(scope: Scope, base: CommitBase): Promise<void> {
    this.#group.run(() => {
      this.#checkDeletions(scope, base);
      const { scopes } = tables;
      const { scopeId, commits } = base.version ?? NEVER_STORED;
      const isOfVersion = and(eq(scopes.scopeId, scopeId), eq(scopes.version, commits));
      const { tenant, userId, agentId } = keyOf(scope);
      const isNamed = and(eq(scopes.tenant, tenant), eq(scopes.userId, userId), eq(scopes.agentId, agentId));
      const { changes } = this.database.orm.delete(scopes).where(and(isOfVersion, isNamed)).run();
      if (changes !== 1) throw new StaleScopeError("the scope was changed by another process");
    });
    this.#group.flush();
  }

  async emptyLog(): Promise<void> {
    this.#group.run(() => this.#erasure.count());
    this.#erasure.begin(new ForgottenPieces());
  }

  async deleteUser(tenant: string, userId: UserId, isInSource: boolean): Promise<number> {
    const { forgottenMemories, scopes } = tables;
    this.#group.flush();
    const pieces = new ForgottenPieces();
    const deleted = this.database.sqlite
      .transaction(() => {
        const { orm } = this.database;
        collectTexts(orm, tenant, userId, pieces);
        this.#erasure.count();
        this.deletions.count({ tenant, userId }, null, isInSource);
        orm
          .delete(forgottenMemories)
          .where(and(eq(forgottenMemories.tenant, tenant), eq(forgottenMemories.userId, userId)))
          .run();
        return orm
          .delete(scopes)
          .where(and(eq(scopes.tenant, tenant), eq(scopes.userId, userId)))
          .run().changes;
      })
      .immediate();
    this.#erasure.begin(pieces);
    return deleted;
  }

  async deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): Promise<void> {
    this.#group.run(() => {
      this.deletions.done({ tenant, userId }, memoryId);
      this.#erasure.count();
    });
    // The deleted row held the user's name.
    this.#erasure.begin(new ForgottenPieces());
  }

  erased(): Promise<void> {
    return this.#erasure.done();
  }

  async close(): Promise<void> {
    this.#group.flush();
    this.#erasure.close();
    this.checkpoints?.close();
    this.database.sqlite.close();
  }

  /** An answer may say in other words what was forgotten, so it is not searched for quotes. */
  #removeResponses(scopeId: number, pieces: ForgottenPieces): void {
    for (const output of this.responses.removeAll(scopeId)) if (!pieces.isFull) pieces.addJson(JSON.parse(output));
  }

  /** A commit of its own, stored at once. */
  async #commit(
    scope: Scope,
    base: CommitBase,
    delta: ScopeDelta,
    at: number,
    more: (scopeId: number) => void,
  ): Promise<StoredVersion> {
    const stored = this.#commitInGroup(scope, base, delta, at, more);
    try {
      this.#group.flush();
    } catch {
      // What it holds rejects.
    }
    return await stored;
  }

  #commitInGroup(
    scope: Scope,
    base: CommitBase,
    { changes }: ScopeDelta,
    at: number,
    more: (scopeId: number) => void,
  ): Promise<StoredVersion> {
    return this.#inGroup((): StoredVersion => {
      this.#checkDeletions(scope, base);
      const stored = this.#claim(scope, base.version, changes, at);
      writeChanges(this.statements, this.database.digests, keyOf(scope), stored.scopeId, changes);
      more(stored.scopeId);
      return stored;
    });
  }

  /** Runs one commit in the group's transaction. Resolves when that is durable. */
  async #inGroup<T>(work: () => T): Promise<T> {
    const result = this.#group.run(work);
    await this.#group.settled;
    return result;
  }

  #checkDeletions(scope: Scope, { deletions }: CommitBase): void {
    if (!this.deletions.areStill(scope, deletions)) throw new StaleScopeError("another process deleted meanwhile");
  }

  /** Moves the scope to its next version. Throws {@link StaleScopeError} where another process did. */
  #claim(scope: Scope, version: StoredVersion | null, changes: ScopeChanges, at: number): StoredVersion {
    const numbers = { ...changes.counters, bankedTokens: changes.bankedTokens };
    if (version === null) {
      const scopeId = this.statements.addScope.get({ ...keyOf(scope), ...numbers, createdAt: at });
      if (scopeId === undefined) throw new StaleScopeError("the scope was created by another process");
      return { scopeId, commits: 1 };
    }
    const claimed = this.statements.moveScope.run({
      ...keyOf(scope),
      ...numbers,
      scopeId: version.scopeId,
      version: version.commits,
    });
    if (claimed.changes !== 1) throw new StaleScopeError("the scope was changed by another process");
    return { scopeId: version.scopeId, commits: version.commits + 1 };
  }
}
