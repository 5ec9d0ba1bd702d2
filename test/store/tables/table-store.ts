/*
 * tables/: the store of earlier versions, which kept scopes in a table for each kind of thing. A frozen copy: it makes files as those
 * versions did, and is a second opinion on what a store answers. It shares its schema and the reading of rows with the upgrade
 * (`src/store/upgrade/`). Of a file it erases nothing: rows are all that is compared.
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
} from "../../../src/core/index.js";
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
} from "../../../src/store/api/store.js";
import { forgottenMemories, scopes } from "../../../src/store/database/schema.js";
import { keyOf } from "../../../src/store/database/scope-key.js";
import { deleteExpired } from "./expiry.js";
import { eraseFromTurns } from "./forgetting.js";
import { eraseQuotes } from "./quotes.js";
import { turnRow, writeAnswer } from "./rows.js";
import { writeChanges } from "./scope-changes.js";
import { TableReads } from "./table-reads.js";
import { withdrawTurn } from "./withdrawal.js";

/** No scope has this version. */
const NEVER_STORED: StoredVersion = { scopeId: -1, commits: 0 };

/** The store of earlier versions on one SQLite connection. Every commit is a transaction of its own. */
export class TableStore extends TableReads implements Store {
  async idle(): Promise<void> {}

  commitCompose(scope: Scope, base: CommitBase, record: ComposeRecord): Promise<StoredVersion> {
    const { composition, request, at } = record;
    const { turn, head, sections, restated, leaf } = composition;
    const { digests } = this.database;
    return this.#commit(scope, base, record.delta, at, (scopeId) => {
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

  async keepResponse(
    scope: Scope,
    deletions: DeletionCounts,
    id: Digest,
    response: StoredResponse,
    continued: Digest | null,
    most: number,
  ): Promise<void> {
    this.#inTransaction(() => {
      const { tenant } = keyOf(scope);
      const scopeId = this.statements.scopeId.get(keyOf(scope));
      if (scopeId === undefined || !this.deletions.areStill(scope, deletions)) return;
      this.responses.keep({ scopeId, tenant }, id, response, continued, most);
    });
  }

  async keepFirstTokenTime(engine: string, time: FirstTokenTime, most: number): Promise<void> {
    this.times.keep(engine, time, most);
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
    return this.#commit(scope, base, delta, 0, (scopeId) => {
      this.statements.observe.run({ scopeId, requestId: id, observed: JSON.stringify(observed) });
    });
  }

  commitForgetting(scope: Scope, base: CommitBase, record: ForgetRecord): Promise<StoredVersion> {
    return this.#commit(scope, base, record.delta, record.at, (scopeId) => {
      eraseFromTurns(this.database, this.statements, scopeId, record);
      this.responses.removeAll(scopeId);
      this.deletions.count(scope, record.memoryId, record.isInSource);
    });
  }

  async eraseQuotes(quotes: FoundQuotes): Promise<void> {
    this.#inTransaction(() => {
      for (const scopeId of quotes.scopes.keys()) {
        eraseQuotes(this.database.sqlite, scopeId, quotes);
        this.responses.removeAll(scopeId);
      }
    });
  }

  commitExpiry(scope: Scope, base: CommitBase, record: ExpiryRecord): Promise<StoredVersion> {
    return this.#commit(scope, base, record.delta, 0, (scopeId) => {
      deleteExpired(this.database, scopeId, record);
    });
  }

  async commitEnd(scope: Scope, base: CommitBase): Promise<void> {
    this.#inTransaction(() => {
      this.#checkDeletions(scope, base);
      const { scopeId, commits } = base.version ?? NEVER_STORED;
      const isOfVersion = and(eq(scopes.scopeId, scopeId), eq(scopes.version, commits));
      const { tenant, userId, agentId } = keyOf(scope);
      const isNamed = and(eq(scopes.tenant, tenant), eq(scopes.userId, userId), eq(scopes.agentId, agentId));
      const { changes } = this.database.orm.delete(scopes).where(and(isOfVersion, isNamed)).run();
      if (changes !== 1) throw new StaleScopeError("the scope was changed by another process");
    });
  }

  async emptyLog(): Promise<void> {}

  async deleteUser(tenant: string, userId: UserId, isInSource: boolean): Promise<number> {
    const { orm } = this.database;
    return this.#inTransaction(() => {
      this.deletions.count({ tenant, userId }, null, isInSource);
      orm
        .delete(forgottenMemories)
        .where(and(eq(forgottenMemories.tenant, tenant), eq(forgottenMemories.userId, userId)))
        .run();
      return orm
        .delete(scopes)
        .where(and(eq(scopes.tenant, tenant), eq(scopes.userId, userId)))
        .run().changes;
    });
  }

  async deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): Promise<void> {
    this.deletions.done({ tenant, userId }, memoryId);
  }

  async erased(): Promise<void> {}

  async close(): Promise<void> {
    this.database.sqlite.close();
  }

  async #commit(
    scope: Scope,
    base: CommitBase,
    { changes }: ScopeDelta,
    at: number,
    more: (scopeId: number) => void,
  ): Promise<StoredVersion> {
    return this.#inTransaction((): StoredVersion => {
      this.#checkDeletions(scope, base);
      const stored = this.#claim(scope, base.version, changes, at);
      writeChanges(this.statements, this.database.digests, keyOf(scope), stored.scopeId, changes);
      more(stored.scopeId);
      return stored;
    });
  }

  #inTransaction<T>(work: () => T): T {
    return this.database.sqlite.transaction(work).immediate();
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
