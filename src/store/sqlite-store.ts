import type Database from "better-sqlite3";
import { and, desc, eq, inArray, sql } from "drizzle-orm";
import type {
  ConversationId,
  Digest,
  FirstTokenTime,
  Label,
  MemoryId,
  NodeId,
  RequestId,
  Scope,
  ScopeChanges,
  StoredScope,
  Turn,
  TurnId,
  UserId,
} from "../core/index.js";
import { EMPTY_SCOPE } from "../core/index.js";
import { CommitGroup } from "./commit-group.js";
import { collectTexts, eraseFromTurns } from "./erasure.js";
import { deleteExpired, readExpired, readScopesWithOldTurns, scanTurns } from "./expiry.js";
import { FileErasure } from "./file-erasure.js";
import { FirstTokenTimes } from "./first-token-times.js";
import { ForgottenPieces } from "./forgotten-pieces.js";
import { readScopesWithMemory } from "./memory-holders.js";
import type { OpenDatabase } from "./open-database.js";
import { readPromptHistory } from "./prompt-history.js";
import {
  readAnswer,
  readBlock,
  readMessages,
  readNode,
  readOrderingRows,
  readScope,
  readServed,
  readTurn,
  writeAnswer,
  writeInjection,
} from "./rows.js";
import * as tables from "./schema.js";
import { prepareStatements, type Statements } from "./statements.js";
import {
  type AnsweredRequest,
  type ComposeRecord,
  type ExpiredTurns,
  type ExpiryRecord,
  type ExportedUser,
  type ForgetRecord,
  type LoadedScope,
  type Observation,
  type PromptHistory,
  type ScannedTurns,
  type ScopeCounts,
  type ScopesFound,
  type ServedRequest,
  StaleScopeError,
  type Store,
  type StoredVersion,
} from "./store.js";
import type { ThreadedCheckpoints } from "./threaded-checkpoints.js";
import { readUserExport } from "./user-export.js";
import { keyOf, type ScopeKey, writeChanges } from "./write-changes.js";

/** SQLite allows 32,766 parameters in one statement; well below it. */
const IDS_PER_STATEMENT = 500;

/** Of a scope's last requests, those that are looked through for what was reported and what is under way. */
const REQUESTS_LOOKED_AT = 32;

const SCOPE_ID = "select scope_id from users where tenant = @tenant and user_id = @userId and agent_id = @agentId";
const LAST_REQUESTS =
  "select created_at as createdAt, observed is null and not evicted as isOpen from requests where scope_id = ? order by turn desc";
/** The newest first: what is asked about was served a short while ago, if it is held at all. */
const SERVED_SINCE = `select count(*) from (select 1 from requests where scope_id = (${SCOPE_ID})
  and turn > @turn and leaf = @leaf and not evicted order by turn desc limit @most)`;

interface ServedSince {
  readonly leaf: NodeId;
  readonly turn: TurnId;
  readonly most: number;
}

/** The store in one SQLite file. Composes and reports that come together share a transaction; every other commit is one of its own. */
export class SqliteStore implements Store {
  readonly #statements: Statements;
  readonly #times: FirstTokenTimes;
  readonly #group: CommitGroup;
  readonly #erasure: FileErasure;
  /** Several times with every compose. */
  readonly #scopeId: Database.Statement<[ScopeKey], number>;
  /** With every compose, and only as far as it is looked at: past the query builder. */
  readonly #lastRequests: Database.Statement<[number], { readonly createdAt: number; readonly isOpen: 0 | 1 }>;
  readonly #servedSince: Database.Statement<[ScopeKey & ServedSince], number>;

  constructor(
    private readonly database: OpenDatabase,
    /** Who keeps the log short; null: SQLite itself, while everything else waits. */
    private readonly checkpoints: ThreadedCheckpoints | null = null,
  ) {
    this.#statements = prepareStatements(database);
    this.#times = new FirstTokenTimes(database);
    this.#group = new CommitGroup(database.sqlite, () => checkpoints?.committed());
    this.#erasure = new FileErasure(database.sqlite, () => this.#group.flush());
    this.#scopeId = database.sqlite.prepare<[ScopeKey], number>(SCOPE_ID).pluck();
    this.#lastRequests = database.sqlite.prepare(LAST_REQUESTS);
    this.#servedSince = database.sqlite.prepare<[ScopeKey & ServedSince], number>(SERVED_SINCE).pluck();
  }

  get settled(): Promise<void> {
    return this.#group.settled;
  }

  loadScope(scope: Scope): LoadedScope {
    return this.database.sqlite.transaction((): LoadedScope => {
      const user = this.#statements.user.get(keyOf(scope));
      const forgotten = this.#statements.forgotten.all(keyOf(scope)).map((row) => row.memoryId as MemoryId);
      if (user === undefined) {
        return { scope: { ...EMPTY_SCOPE, register: { ...EMPTY_SCOPE.register, forgotten } }, version: null };
      }
      const of = { scopeId: user.scopeId };
      const stored: StoredScope = {
        counters: {
          nextLabel: user.nextLabel,
          nextNode: user.nextNode,
          nextTurn: user.nextTurn,
          requests: user.requests,
        },
        register: {
          blocks: this.#statements.blocks.all(of).map(readBlock),
          versions: this.#statements.versions.all(of).map((row) => ({
            memoryId: row.memoryId as MemoryId,
            label: row.label as Label,
            current: row.current,
          })),
          forgotten,
        },
        nodes: this.#statements.nodes.all(of).map(readNode),
        ...readOrderingRows(this.#statements.orderingRows.all(of)),
      };
      return { scope: stored, version: { scopeId: user.scopeId, commits: user.version } };
    })();
  }

  loadConversation(scope: Scope, id: ConversationId): Turn[] {
    const scopeId = this.#idOf(scope);
    return scopeId === null ? [] : this.#statements.conversationTurns.all({ scopeId, id }).map(readTurn);
  }

  commitCompose(scope: Scope, version: StoredVersion | null, record: ComposeRecord): StoredVersion {
    const { turn, request, at } = record;
    return this.#commitInGroup(scope, version, record.changes, at, (scopeId) => {
      const s = this.#statements;
      s.keepHead.run({ scopeId, digest: turn.head, messages: JSON.stringify(record.head) });
      if (turn.conversationId !== null) s.keepConversation.run({ scopeId, id: turn.conversationId, at });
      for (const digest of record.sections) s.keepSection.run({ scopeId, digest });
      s.addTurn.run({
        scopeId,
        id: turn.id,
        conversationId: turn.conversationId,
        parent: turn.parent,
        givenDigests: JSON.stringify(turn.given),
        given: JSON.stringify(record.given),
        placement: turn.placement,
        injection: writeInjection(turn.injection),
        retention: turn.retention,
        freshStart: turn.freshStart,
        requested: JSON.stringify(turn.requested),
        head: turn.head,
        prompt: turn.prompt,
        anchor: turn.anchor,
        promptTokens: turn.promptTokens,
        at,
      });
      s.addRequest.run({
        scopeId,
        requestId: request.id,
        turn: turn.id,
        leaf: request.leaf,
        body: request.body,
        answer: writeAnswer(request.answer),
        at,
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
    const stored = this.#commit(scope, version, record.changes, record.at, (scopeId) => {
      eraseFromTurns(this.database.orm, this.#statements, scopeId, record);
      this.#erasure.count();
    });
    const pieces = new ForgottenPieces();
    for (const text of record.texts) pieces.add(text);
    this.#erasure.begin(pieces);
    return stored;
  }

  scopesWithMemory(tenant: string, memoryId: MemoryId, after: number): ScopesFound {
    return readScopesWithMemory(this.database.orm, tenant, memoryId, after);
  }

  scopesWithOldTurns(before: number, after: number): ScopesFound {
    return readScopesWithOldTurns(this.database.orm, before, after);
  }

  scanTurns(scope: Scope, before: number, after: TurnId | 0, most: number): ScannedTurns {
    return scanTurns(this.database.orm, this.#idOf(scope) ?? -1, before, after, most);
  }

  findExpired(scope: Scope, before: number, among: readonly TurnId[]): ExpiredTurns {
    return readExpired(this.database.orm, this.#idOf(scope) ?? -1, before, among);
  }

  commitExpiry(scope: Scope, version: StoredVersion | null, record: ExpiryRecord): StoredVersion {
    return this.#commit(scope, version, record.changes, 0, (scopeId) => {
      deleteExpired(this.database.orm, scopeId, record);
    });
  }

  commitEnd(scope: Scope, version: StoredVersion): void {
    this.#group.run(() => {
      const { users } = tables;
      const isOfVersion = and(eq(users.scopeId, version.scopeId), eq(users.version, version.commits));
      const { tenant, userId, agentId } = keyOf(scope);
      const isNamed = and(eq(users.tenant, tenant), eq(users.userId, userId), eq(users.agentId, agentId));
      const { changes } = this.database.orm.delete(users).where(and(isOfVersion, isNamed)).run();
      if (changes !== 1) throw new StaleScopeError("the scope was changed by another process");
    });
    this.#group.flush();
  }

  emptyLog(): void {
    this.#group.run(() => this.#erasure.count());
    this.#erasure.begin(new ForgottenPieces());
  }

  findRequest(scope: Scope, id: RequestId): AnsweredRequest | null {
    const scopeId = this.#idOf(scope);
    const row = scopeId === null ? undefined : this.#statements.request.get({ scopeId, requestId: id });
    if (scopeId === null || row === undefined) return null;
    const turns: { turn: Turn; given: ReturnType<typeof readMessages> }[] = [];
    let head: Digest | undefined;
    for (let next: number | null = row.turn; next !== null; ) {
      const stored = this.#statements.turn.get({ scopeId, id: next });
      if (stored === undefined || stored.given === null) return null;
      turns.push({ turn: readTurn(stored), given: readMessages(stored.given) });
      head ??= stored.head as Digest;
      next = stored.parent;
    }
    const instructions = this.#statements.head.get({ scopeId, digest: head })?.messages ?? null;
    if (instructions === null) return null;
    return {
      body: row.body as Digest,
      answer: readAnswer(row.answer),
      head: readMessages(instructions),
      turns: turns.reverse(),
    };
  }

  findLiveRequests(tenant: string, ids: readonly RequestId[]) {
    const found: { scope: Scope; requestId: RequestId; leaf: NodeId; turn: TurnId }[] = [];
    const { requests, users } = tables;
    for (let at = 0; at < ids.length; at += IDS_PER_STATEMENT) {
      const rows = this.database.orm
        .select()
        .from(requests)
        .innerJoin(users, eq(requests.scopeId, users.scopeId))
        .where(
          and(
            inArray(requests.requestId, ids.slice(at, at + IDS_PER_STATEMENT)),
            eq(requests.evicted, false),
            eq(users.tenant, tenant),
          ),
        )
        .all();
      for (const row of rows) {
        found.push({
          scope: readScope(row.users),
          requestId: row.requests.requestId as RequestId,
          leaf: row.requests.leaf as NodeId,
          turn: row.requests.turn as TurnId,
        });
      }
    }
    return found;
  }

  countServedSince(scope: Scope, leaf: NodeId, turn: TurnId, most: number): number {
    return this.#servedSince.get({ ...keyOf(scope), leaf, turn, most }) ?? 0;
  }

  findServed(scope: Scope, id: RequestId): ServedRequest | null {
    const scopeId = this.#idOf(scope);
    const row = scopeId === null ? undefined : this.#statements.request.get({ scopeId, requestId: id });
    return row === undefined ? null : readServed(row);
  }

  findReportedBefore(scope: Scope, turn: TurnId): ServedRequest | null {
    const scopeId = this.#idOf(scope);
    if (scopeId === null) return null;
    const rows = this.#statements.requestsBefore.all({ scopeId, turn, limit: REQUESTS_LOOKED_AT });
    for (const row of rows) {
      if (row.observed === null) continue;
      const served = readServed(row);
      if (served.observed?.cachedTokens !== undefined) return served;
    }
    return null;
  }

  underWaySince(scope: Scope, since: number): number | null {
    const scopeId = this.#idOf(scope);
    if (scopeId === null) return null;
    let earliest: number | null = null;
    let looked = 0;
    for (const { createdAt, isOpen } of this.#lastRequests.iterate(scopeId)) {
      if (createdAt <= since) break;
      if (++looked === REQUESTS_LOOKED_AT) return since;
      if (isOpen === 1) earliest = createdAt;
    }
    return earliest;
  }

  findPromptHistory(scope: Scope, id: RequestId): PromptHistory | null {
    const scopeId = this.#idOf(scope);
    return scopeId === null ? null : readPromptHistory(this.database, this.#statements, scopeId, id);
  }

  knowsSection(scope: Scope, section: Digest): boolean {
    const scopeId = this.#idOf(scope);
    return scopeId !== null && this.#statements.section.get({ scopeId, digest: section }) !== undefined;
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

  liveRequests(scope: Scope, limit: number) {
    const scopeId = this.#idOf(scope);
    if (scopeId === null) return [];
    const { requests } = tables;
    return this.database.orm
      .select({ requestId: requests.requestId, leaf: requests.leaf })
      .from(requests)
      .where(and(eq(requests.scopeId, scopeId), eq(requests.evicted, false)))
      .orderBy(desc(sql`rowid`))
      .limit(limit)
      .all()
      .map((row) => ({ requestId: row.requestId as RequestId, leaf: row.leaf as NodeId }));
  }

  scopesOf(tenant: string, userId: UserId): Scope[] {
    const { users } = tables;
    return this.database.orm
      .select()
      .from(users)
      .where(and(eq(users.tenant, tenant), eq(users.userId, userId)))
      .orderBy(users.scopeId)
      .all()
      .map(readScope);
  }

  deleteUser(tenant: string, userId: UserId): number {
    const { forgottenMemories, users } = tables;
    this.#group.flush();
    const pieces = new ForgottenPieces();
    const scopes = this.database.sqlite.transaction(() => {
      const { orm } = this.database;
      collectTexts(orm, tenant, userId, pieces);
      this.#erasure.count();
      orm
        .delete(forgottenMemories)
        .where(and(eq(forgottenMemories.tenant, tenant), eq(forgottenMemories.userId, userId)))
        .run();
      return orm
        .delete(users)
        .where(and(eq(users.tenant, tenant), eq(users.userId, userId)))
        .run().changes;
    })();
    this.#erasure.begin(pieces);
    return scopes;
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
    return this.#scopeId.get(keyOf(scope)) ?? null;
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
      writeChanges(this.#statements, keyOf(scope), stored.scopeId, changes);
      more(stored.scopeId);
      return stored;
    });
  }

  /** Moves the scope to its next version, or finds that another process did. */
  #claim(scope: Scope, version: StoredVersion | null, changes: ScopeChanges, at: number): StoredVersion {
    if (version === null) {
      const row = this.#statements.addUser.get({ ...keyOf(scope), ...changes.counters, at });
      if (row === undefined) throw new StaleScopeError("the scope was created by another process");
      return { scopeId: row.scopeId, commits: 1 };
    }
    const claimed = this.#statements.moveUser.run({ ...keyOf(scope), ...version, ...changes.counters });
    if (claimed.changes !== 1) throw new StaleScopeError("the scope was changed by another process");
    return { scopeId: version.scopeId, commits: version.commits + 1 };
  }
}
