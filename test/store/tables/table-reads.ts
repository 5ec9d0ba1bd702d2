import { and, eq, sql } from "drizzle-orm";
import type {
  ConversationId,
  Digest,
  FirstTokenTime,
  MemoryId,
  NodeId,
  RequestId,
  Scope,
  Turn,
  TurnId,
  UserId,
} from "../../../src/core/index.js";
import type {
  AnsweredRequest,
  DeletionCounts,
  ExpiredTurns,
  ExportedUser,
  FoundQuotes,
  LoadedScope,
  PendingSourceDeletions,
  PromptHistory,
  ScannedTurns,
  ScopeCounts,
  ScopesFound,
  ServedRequest,
  StoredHistory,
  StoredResponse,
  StoredVersion,
} from "../../../src/store/api/store.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import { scopes } from "../../../src/store/database/schema.js";
import { keyOf, readScope } from "../../../src/store/database/scope-key.js";
import { Deletions } from "../../../src/store/sqlite/deletions.js";
import { FirstTokenTimes } from "../../../src/store/sqlite/first-token-times.js";
import { readTurn } from "../../../src/store/upgrade/table-rows.js";
import * as tables from "../../../src/store/upgrade/table-schema.js";
import { readTableState } from "../../../src/store/upgrade/table-state.js";
import { readConversationHistory } from "./conversation-history.js";
import { readExpired, readScopesWithOldTurns, scanTurns } from "./expiry.js";
import { readScopesWithMemory } from "./memory-holders.js";
import { findQuotes } from "./quotes.js";
import { RequestRecords } from "./request-records.js";
import { ResponseRecords } from "./response-records.js";
import { prepareStatements, type Statements } from "./statements.js";
import { StoredMessages } from "./stored-messages.js";
import { readUserExport } from "./user-export.js";

/** The last turns of a conversation that are loaded, and those of its newest epoch: a client may return to a branch that it left. */
const MOST_TURNS_LOADED = 1_000;

/** The reading half of `TableStore`: changes nothing. */
export class TableReads {
  protected readonly statements: Statements;
  protected readonly times: FirstTokenTimes;
  protected readonly deletions: Deletions;
  protected readonly messages: StoredMessages;
  protected readonly requests: RequestRecords;
  protected readonly responses: ResponseRecords;

  constructor(protected readonly database: OpenDatabase) {
    this.statements = prepareStatements(database.sqlite);
    this.times = new FirstTokenTimes(database.sqlite);
    this.deletions = new Deletions(database);
    this.messages = new StoredMessages(database);
    this.requests = new RequestRecords(database, this.statements, this.messages);
    this.responses = new ResponseRecords(database);
  }

  async versionOf(scope: Scope): Promise<StoredVersion | null> {
    return this.statements.version.get(keyOf(scope)) ?? null;
  }

  async deletionsOf(tenant: string, userId: UserId): Promise<DeletionCounts> {
    return this.deletions.countsOf({ tenant, userId });
  }

  async loadScope(scope: Scope): Promise<LoadedScope> {
    return this.database.sqlite.transaction(() => ({
      ...readTableState(this.statements, this.database.digests, scope),
      deletions: this.deletions.countsOf(scope),
      // Whoever wants either asks for it.
      newestAt: Number.POSITIVE_INFINITY,
      conversation: null,
    }))();
  }

  async loadConversation(scope: Scope, id: ConversationId): Promise<Turn[]> {
    const scopeId = this.#idOf(scope);
    if (scopeId === null) return [];
    const of = { scopeId, conversationId: id };
    const from = Math.min(
      this.statements.newestTurn.get(of)?.epoch ?? 0,
      this.statements.lastTurnBut.get({ ...of, skipped: MOST_TURNS_LOADED - 1 }) ?? 0,
    );
    return this.statements.conversationTurns
      .all({ ...of, from })
      .map((row) => readTurn(row, this.messages.saidIn(row.given), this.database.digests));
  }

  async knownHistory(): Promise<null> {
    return null;
  }

  async findHistory(scope: Scope, id: ConversationId): Promise<StoredHistory | null> {
    const scopeId = this.#idOf(scope);
    const parts = { statements: this.statements, messages: this.messages, digests: this.database.digests };
    return scopeId === null ? null : readConversationHistory(parts, scopeId, id);
  }

  async findResponse(scope: Scope, id: Digest): Promise<StoredResponse | null> {
    const scopeId = this.#idOf(scope);
    return scopeId === null ? null : this.responses.find(scopeId, id);
  }

  async countFirstTokenTimes(engine: string): Promise<number> {
    return this.times.count(engine);
  }

  async firstTokenTimes(engine: string, count: number, most: number): Promise<FirstTokenTime[]> {
    return this.times.upTo(engine, count, most);
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

  async scopesWithMemory(tenant: string, memoryId: MemoryId, after: number): Promise<ScopesFound> {
    return readScopesWithMemory(this.database.orm, tenant, memoryId, after);
  }

  async scopesWithOldTurns(before: number, after: number): Promise<ScopesFound> {
    return readScopesWithOldTurns(this.database.orm, before, after);
  }

  async scanTurns(scope: Scope, before: number, after: TurnId | 0, most: number): Promise<ScannedTurns> {
    return scanTurns(this.database, this.#idOf(scope) ?? -1, before, after, most);
  }

  async findExpired(scope: Scope, before: number, among: readonly TurnId[]): Promise<ExpiredTurns> {
    return readExpired(this.database, this.#idOf(scope) ?? -1, before, among);
  }

  async findRequest(scope: Scope, id: RequestId): Promise<AnsweredRequest | null> {
    return this.requests.answered(this.#idOf(scope), id);
  }

  async findLiveRequests(tenant: string, ids: readonly RequestId[]) {
    return this.requests.live(tenant, ids);
  }

  async countServedSince(scope: Scope, leaf: NodeId, turn: TurnId, most: number): Promise<number> {
    return this.requests.servedSince(this.#idOf(scope), leaf, turn, most);
  }

  async findServed(scope: Scope, id: RequestId): Promise<ServedRequest | null> {
    return this.requests.served(this.#idOf(scope), id);
  }

  async findWorker(scope: Scope, turn: TurnId): Promise<string | null> {
    return this.requests.workerOf(this.#idOf(scope), turn);
  }

  async findReportedBefore(scope: Scope, turn: TurnId): Promise<ServedRequest | null> {
    return this.requests.reportedBefore(this.#idOf(scope), turn);
  }

  async underWaySince(scope: Scope, since: number): Promise<number | null> {
    return this.requests.underWaySince(this.#idOf(scope), since);
  }

  async findPromptHistory(scope: Scope, id: RequestId): Promise<PromptHistory | null> {
    return this.requests.promptHistory(this.#idOf(scope), id);
  }

  async liveRequests(scope: Scope, limit: number) {
    return this.requests.newestLive(this.#idOf(scope), limit);
  }

  async knownSections(scope: Scope, sections: readonly Digest[]): Promise<readonly Digest[]> {
    const scopeId = this.#idOf(scope);
    if (scopeId === null) return [];
    const { digests } = this.database;
    return sections.filter(
      (section) => this.statements.knowsSection.get({ scopeId, digest: digests.seal(section) }) === 1,
    );
  }

  async counts(scope: Scope): Promise<ScopeCounts> {
    const scopeId = this.#idOf(scope);
    const count = (table: typeof tables.turns | typeof tables.requests | typeof tables.conversations) =>
      this.database.orm
        .select({ rows: sql<number>`count(*)` })
        .from(table)
        .where(eq(table.scopeId, scopeId ?? -1))
        .get()?.rows ?? 0;
    return { conversations: count(tables.conversations), turns: count(tables.turns), requests: count(tables.requests) };
  }

  async scopesOf(tenant: string, userId: UserId): Promise<Scope[]> {
    return this.database.orm
      .select()
      .from(scopes)
      .where(and(eq(scopes.tenant, tenant), eq(scopes.userId, userId)))
      .orderBy(scopes.scopeId)
      .all()
      .map(readScope);
  }

  async pendingInSource(tenant: string, userId: UserId): Promise<PendingSourceDeletions | null> {
    return this.deletions.pendingOf({ tenant, userId });
  }

  async usersPendingInSource(): Promise<Pick<Scope, "tenant" | "userId">[]> {
    return this.deletions.usersPending();
  }

  exportUser(tenant: string, userId: UserId, pause: () => Promise<void>): Promise<ExportedUser> {
    return readUserExport(this.database, tenant, userId, pause);
  }

  async ping(): Promise<void> {
    this.database.sqlite.prepare("select 1").get();
  }

  #idOf(scope: Scope): number | null {
    return this.statements.scopeId.get(keyOf(scope)) ?? null;
  }
}
