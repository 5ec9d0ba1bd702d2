import { and, eq, sql } from "drizzle-orm";
import type {
  ConversationId,
  Digest,
  FirstTokenTime,
  MemoryId,
  NodeId,
  RequestId,
  Scope,
  ScopeChanges,
  Turn,
  TurnId,
  UserId,
} from "../../core/index.js";
import {
  type AnsweredRequest,
  type ComposeRecord,
  type DeletionCounts,
  type ExpiredTurns,
  type ExpiryRecord,
  type ExportedUser,
  type ForgetRecord,
  type FoundQuotes,
  type LoadedScope,
  type Observation,
  type PendingSourceDeletions,
  type PromptHistory,
  type ScannedTurns,
  type ScopeCounts,
  type ScopesFound,
  type ServedRequest,
  StaleScopeError,
  type Store,
  type StoredVersion,
} from "../api/store.js";
import { CommitGroup } from "../database/commit-group.js";
import type { OpenDatabase } from "../database/open-database.js";
import * as tables from "../database/schema.js";
import { prepareStatements, type Statements } from "../database/statements.js";
import type { ThreadedCheckpoints } from "../database/threaded-checkpoints.js";
import { collectTexts, eraseFromTurns } from "../erasure/erasure.js";
import { FileErasure } from "../erasure/file-erasure.js";
import { ForgottenPieces } from "../erasure/forgotten-pieces.js";
import { eraseQuotes, findQuotes } from "../erasure/quotes.js";
import { Deletions } from "../records/deletions.js";
import { deleteExpired, readExpired, readScopesWithOldTurns, scanTurns } from "../records/expiry.js";
import { FirstTokenTimes } from "../records/first-token-times.js";
import { readScopesWithMemory } from "../records/memory-holders.js";
import { readStoredScope } from "../records/read-stored-scope.js";
import { RequestRecords } from "../records/request-records.js";
import { readScope, readTurn, turnRow, writeAnswer } from "../records/rows.js";
import { StoredMessages } from "../records/stored-messages.js";
import { readUserExport } from "../records/user-export.js";
import { withdrawTurn } from "../records/withdrawal.js";
import { keyOf, writeChanges } from "../records/write-changes.js";

/** The store in one SQLite file. Composes and reports that come together share a transaction; every other commit is one of its own. */
export class SqliteStore implements Store {
  readonly #statements: Statements;
  readonly #times: FirstTokenTimes;
  readonly #group: CommitGroup;
  readonly #erasure: FileErasure;
  readonly #deletions: Deletions;
  readonly #requests: RequestRecords;
  readonly #messages: StoredMessages;

  constructor(
    private readonly database: OpenDatabase,
    /** Who keeps the log short; null: SQLite itself, while everything else waits. */
    private readonly checkpoints: ThreadedCheckpoints | null = null,
  ) {
    this.#statements = prepareStatements(database.sqlite);
    this.#times = new FirstTokenTimes(database.sqlite);
    this.#group = new CommitGroup(database.sqlite, (commits) => checkpoints?.committed(commits));
    this.#erasure = new FileErasure(database.sqlite, () => this.#group.flush());
    this.#deletions = new Deletions(database);
    this.#messages = new StoredMessages(database);
    this.#requests = new RequestRecords(database, this.#statements, this.#messages);
  }

  get settled(): Promise<void> {
    return this.#group.settled;
  }

  begin(): void {
    this.#group.begin();
  }

  versionOf(scope: Scope): StoredVersion | null {
    return this.#statements.version.get(keyOf(scope)) ?? null;
  }

  deletionsOf(tenant: string, userId: UserId): DeletionCounts {
    return this.#deletions.countsOf({ tenant, userId });
  }

  loadScope(scope: Scope): LoadedScope {
    return this.database.sqlite.transaction(() => readStoredScope(this.#statements, this.database.digests, scope))();
  }

  loadConversation(scope: Scope, id: ConversationId): Turn[] {
    const scopeId = this.#idOf(scope);
    if (scopeId === null) return [];
    return this.#statements.conversationTurns
      .all({ scopeId, conversationId: id })
      .map((row) => readTurn(row, this.#messages.saidIn(row.given), this.database.digests));
  }

  commitCompose(scope: Scope, version: StoredVersion | null, record: ComposeRecord): StoredVersion {
    const { turn, request, at } = record;
    const { digests } = this.database;
    return this.#commitInGroup(scope, version, record.changes, at, (scopeId) => {
      const s = this.#statements;
      this.#messages.keepHead(scopeId, digests.seal(turn.head), record.head);
      if (turn.conversationId !== null) s.keepConversation.run({ scopeId, id: turn.conversationId, lastTurnAt: at });
      for (const section of record.sections) s.keepSection.run({ scopeId, digest: digests.seal(section) });
      for (const said of [...record.restated, record]) {
        const given = this.#messages.keep(scopeId, said.given, said.turn);
        s.addTurn.run({ ...turnRow(said.turn, given, digests), scopeId, createdAt: at });
      }
      s.addRequest.run({
        scopeId,
        requestId: request.id,
        turn: turn.id,
        leaf: request.leaf,
        body: digests.seal(request.body),
        answer: writeAnswer(request.answer),
        createdAt: at,
      });
    });
  }

  countFirstTokenTimes(engine: string): number {
    return this.#times.count(engine);
  }

  firstTokenTimes(engine: string, count: number, most: number): FirstTokenTime[] {
    return this.#times.upTo(engine, count, most);
  }

  keepFirstTokenTime(engine: string, time: FirstTokenTime, most: number): void {
    this.#times.keep(engine, time, most);
  }

  commitChanges(scope: Scope, version: StoredVersion | null, changes: ScopeChanges): StoredVersion {
    return this.#commit(scope, version, changes, 0, () => {});
  }

  commitEviction(
    scope: Scope,
    version: StoredVersion | null,
    changes: ScopeChanges,
    requestIds: readonly RequestId[],
  ): StoredVersion {
    return this.#commit(scope, version, changes, 0, (scopeId) => {
      for (const requestId of requestIds) this.#statements.markEvicted.run({ scopeId, requestId });
    });
  }

  commitWithdrawal(scope: Scope, version: StoredVersion | null, changes: ScopeChanges, turn: TurnId): StoredVersion {
    return this.#commit(scope, version, changes, 0, (scopeId) => {
      withdrawTurn(this.database, scopeId, turn, changes);
    });
  }

  commitReport(
    scope: Scope,
    version: StoredVersion | null,
    changes: ScopeChanges,
    { id, observed }: { readonly id: RequestId; readonly observed: Observation },
  ): StoredVersion {
    return this.#commitInGroup(scope, version, changes, 0, (scopeId) => {
      this.#statements.observe.run({ scopeId, requestId: id, observed: JSON.stringify(observed) });
    });
  }

  commitForgetting(scope: Scope, version: StoredVersion | null, record: ForgetRecord): StoredVersion {
    const pieces = new ForgottenPieces();
    const stored = this.#commit(scope, version, record.changes, record.at, (scopeId) => {
      eraseFromTurns(this.database, this.#statements, scopeId, record, pieces);
      this.#deletions.count(scope, record.memoryId, record.isInSource);
      this.#erasure.count();
    });
    for (const text of record.quotes.texts) pieces.add(text);
    this.#erasure.begin(pieces);
    return stored;
  }

  findQuotes(
    tenant: string,
    userId: UserId,
    memoryId: MemoryId,
    texts: readonly string[],
    pause: () => Promise<void>,
  ): Promise<FoundQuotes> {
    return findQuotes(this.database, tenant, userId, memoryId, texts, pause);
  }

  eraseQuotes(quotes: FoundQuotes): void {
    const pieces = new ForgottenPieces();
    this.#group.run(() => {
      for (const scopeId of quotes.scopes.keys()) eraseQuotes(this.database.sqlite, scopeId, quotes, pieces);
      this.#erasure.count();
    });
    this.#erasure.begin(pieces);
  }

  scopesWithMemory(tenant: string, memoryId: MemoryId, after: number): ScopesFound {
    return readScopesWithMemory(this.database.orm, tenant, memoryId, after);
  }

  scopesWithOldTurns(before: number, after: number): ScopesFound {
    return readScopesWithOldTurns(this.database.orm, before, after);
  }

  scanTurns(scope: Scope, before: number, after: TurnId | 0, most: number): ScannedTurns {
    return scanTurns(this.database, this.#idOf(scope) ?? -1, before, after, most);
  }

  findExpired(scope: Scope, before: number, among: readonly TurnId[]): ExpiredTurns {
    return readExpired(this.database, this.#idOf(scope) ?? -1, before, among);
  }

  commitExpiry(scope: Scope, version: StoredVersion | null, record: ExpiryRecord): StoredVersion {
    return this.#commit(scope, version, record.changes, 0, (scopeId) => {
      deleteExpired(this.database, scopeId, record);
    });
  }

  commitEnd(scope: Scope, version: StoredVersion): void {
    this.#group.run(() => {
      const { scopes } = tables;
      const isOfVersion = and(eq(scopes.scopeId, version.scopeId), eq(scopes.version, version.commits));
      const { tenant, userId, agentId } = keyOf(scope);
      const isNamed = and(eq(scopes.tenant, tenant), eq(scopes.userId, userId), eq(scopes.agentId, agentId));
      const { changes } = this.database.orm.delete(scopes).where(and(isOfVersion, isNamed)).run();
      if (changes !== 1) throw new StaleScopeError("the scope was changed by another process");
    });
    this.#group.flush();
  }

  emptyLog(): void {
    this.#group.run(() => this.#erasure.count());
    this.#erasure.begin(new ForgottenPieces());
  }

  findRequest(scope: Scope, id: RequestId): AnsweredRequest | null {
    return this.#requests.answered(this.#idOf(scope), id);
  }

  findLiveRequests(tenant: string, ids: readonly RequestId[]) {
    return this.#requests.live(tenant, ids);
  }

  countServedSince(scope: Scope, leaf: NodeId, turn: TurnId, most: number): number {
    return this.#requests.servedSince(this.#idOf(scope), leaf, turn, most);
  }

  findServed(scope: Scope, id: RequestId): ServedRequest | null {
    return this.#requests.served(this.#idOf(scope), id);
  }

  findReportedBefore(scope: Scope, turn: TurnId): ServedRequest | null {
    return this.#requests.reportedBefore(this.#idOf(scope), turn);
  }

  underWaySince(scope: Scope, since: number): number | null {
    return this.#requests.underWaySince(this.#idOf(scope), since);
  }

  findPromptHistory(scope: Scope, id: RequestId): PromptHistory | null {
    return this.#requests.promptHistory(this.#idOf(scope), id);
  }

  liveRequests(scope: Scope, limit: number) {
    return this.#requests.newestLive(this.#idOf(scope), limit);
  }

  knowsSection(scope: Scope, section: Digest): boolean {
    const scopeId = this.#idOf(scope);
    if (scopeId === null) return false;
    return this.#statements.knowsSection.get({ scopeId, digest: this.database.digests.seal(section) }) === 1;
  }

  counts(scope: Scope): ScopeCounts {
    const scopeId = this.#idOf(scope);
    const count = (table: typeof tables.turns | typeof tables.requests | typeof tables.conversations) =>
      this.database.orm
        .select({ rows: sql<number>`count(*)` })
        .from(table)
        .where(eq(table.scopeId, scopeId ?? -1))
        .get()?.rows ?? 0;
    return { conversations: count(tables.conversations), turns: count(tables.turns), requests: count(tables.requests) };
  }

  scopesOf(tenant: string, userId: UserId): Scope[] {
    const { scopes } = tables;
    return this.database.orm
      .select()
      .from(scopes)
      .where(and(eq(scopes.tenant, tenant), eq(scopes.userId, userId)))
      .orderBy(scopes.scopeId)
      .all()
      .map(readScope);
  }

  deleteUser(tenant: string, userId: UserId, isInSource: boolean): number {
    const { forgottenMemories, scopes } = tables;
    this.#group.flush();
    const pieces = new ForgottenPieces();
    const deleted = this.database.sqlite
      .transaction(() => {
        const { orm } = this.database;
        collectTexts(orm, tenant, userId, pieces);
        this.#erasure.count();
        this.#deletions.count({ tenant, userId }, null, isInSource);
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

  pendingInSource(tenant: string, userId: UserId): PendingSourceDeletions | null {
    return this.#deletions.pendingOf({ tenant, userId });
  }

  deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): void {
    this.#group.run(() => {
      this.#deletions.done({ tenant, userId }, memoryId);
      this.#erasure.count();
    });
    // The user's name was in what is gone now.
    this.#erasure.begin(new ForgottenPieces());
  }

  usersPendingInSource(): Pick<Scope, "tenant" | "userId">[] {
    return this.#deletions.usersPending();
  }

  erased(): Promise<void> {
    return this.#erasure.done();
  }

  exportUser(tenant: string, userId: UserId, pause: () => Promise<void>): Promise<ExportedUser> {
    return readUserExport(this.database, tenant, userId, pause);
  }

  ping(): void {
    this.database.sqlite.prepare("select 1").get();
  }

  close(): void {
    this.#group.flush();
    this.#erasure.close();
    this.checkpoints?.close();
    this.database.sqlite.close();
  }

  #idOf(scope: Scope): number | null {
    return this.#statements.scopeId.get(keyOf(scope)) ?? null;
  }

  /** A commit by itself: stored when this returns. */
  #commit(
    scope: Scope,
    version: StoredVersion | null,
    changes: ScopeChanges,
    at: number,
    more: (scopeId: number) => void,
  ): StoredVersion {
    const stored = this.#commitInGroup(scope, version, changes, at, more);
    this.#group.flush();
    return stored;
  }

  #commitInGroup(
    scope: Scope,
    version: StoredVersion | null,
    changes: ScopeChanges,
    at: number,
    more: (scopeId: number) => void,
  ): StoredVersion {
    return this.#group.run((): StoredVersion => {
      const stored = this.#claim(scope, version, changes, at);
      writeChanges(this.#statements, this.database.digests, keyOf(scope), stored.scopeId, changes);
      more(stored.scopeId);
      return stored;
    });
  }

  /** Moves the scope to its next version, or finds that another process did. */
  #claim(scope: Scope, version: StoredVersion | null, changes: ScopeChanges, at: number): StoredVersion {
    const numbers = { ...changes.counters, bankedTokens: changes.bankedTokens };
    if (version === null) {
      const scopeId = this.#statements.addScope.get({ ...keyOf(scope), ...numbers, createdAt: at });
      if (scopeId === undefined) throw new StaleScopeError("the scope was created by another process");
      return { scopeId, commits: 1 };
    }
    const claimed = this.#statements.moveScope.run({
      ...keyOf(scope),
      ...numbers,
      scopeId: version.scopeId,
      version: version.commits,
    });
    if (claimed.changes !== 1) throw new StaleScopeError("the scope was changed by another process");
    return { scopeId: version.scopeId, commits: version.commits + 1 };
  }
}
