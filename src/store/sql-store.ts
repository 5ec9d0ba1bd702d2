import type {
  ConversationId,
  Digest,
  FirstTokenTime,
  MemoryId,
  NodeId,
  RequestId,
  Scope,
  TurnId,
} from "../core/index.js";
import type { Database } from "./database.js";
import { expire } from "./expiry.js";
import { forget } from "./forgetting.js";
import type { PromptTable } from "./prompt-figures.js";
import { SqlPrompts, sampleStatement } from "./prompts.js";
import { findLiveRequests, RequestReading } from "./requests.js";
import { decodedJson } from "./rows.js";
import { begin, HAS_STATE, readScope, ScopeInTransaction, scopeName } from "./scopes.js";
import type { HeldScope, KnownScope, ScopeCounts, Store, User } from "./store.js";
import { findHistory, loadConversation } from "./turns.js";
import {
  deletedFromSource,
  deleteUser,
  exportUser,
  pendingInSource,
  scopeRows,
  users,
  usersPendingInSource,
  usersWithMemory,
  usersWithOldTurns,
} from "./users.js";

/** The store in a database. */
export class SqlStore implements Store {
  readonly prompts: PromptTable;
  readonly #prompts: SqlPrompts;

  constructor(private readonly database: Database) {
    this.#prompts = new SqlPrompts(database);
    this.prompts = this.#prompts;
  }

  begin(scope: Scope, at: number) {
    return begin(this.database, scope, at);
  }

  async userNumber({ tenant, userId }: User): Promise<number> {
    const text = "select id from scopes where tenant = $1 and user_id = $2 and agent_id = ''";
    const [row] = await this.database.read<{ id: number }>(text, [tenant, userId]);
    return row?.id ?? 0;
  }

  async find(scope: Scope): Promise<number | null> {
    const text = `select s.id from scopes s where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3 and ${HAS_STATE}`;
    const [row] = await this.database.read<{ id: number }>(text, scopeName(scope));
    return row?.id ?? null;
  }

  hold<T>(scope: Scope, known: KnownScope | null, work: (held: HeldScope) => Promise<T>): Promise<T> {
    return this.database.hold(scope, async (transaction) => {
      // Nobody else writes: what is in memory is what is stored.
      const isCurrent = known !== null && !this.database.isShared;
      const state = isCurrent
        ? { version: known.version, userNumber: known.userNumber, newer: null }
        : await readScope(transaction.read, scope, known);
      return work(new ScopeInTransaction(transaction, scope, state));
    });
  }

  loadConversation(scopeId: number, id: ConversationId) {
    return loadConversation(this.database, scopeId, id);
  }

  findHistory(scopeId: number, id: ConversationId) {
    return findHistory(this.database, scopeId, id);
  }

  findRequest(scopeId: number, id: RequestId) {
    return this.#requests(scopeId).answered(id);
  }

  findServed(scopeId: number, id: RequestId) {
    return this.#requests(scopeId).served(id);
  }

  async findResponse(scopeId: number, id: string): Promise<RequestId | null> {
    const of = (
      column: string,
    ) => `select r.id from turns t join requests r on r.scope_id = t.scope_id and r.turn_id = t.id
      where t.scope_id = $1 and t.${column} = $2 order by t.id desc limit 1`;
    const [[response], [conversation]] = (await Promise.all(
      ["response_id", "engine_conversation"].map((column) =>
        this.database.read<{ id: RequestId }>(of(column), [scopeId, id]),
      ),
    )) as [{ id: RequestId }[], { id: RequestId }[]];
    return response?.id ?? conversation?.id ?? null;
  }

  keepResponse(scopeId: number, requestId: RequestId, id: string, engineConversation: string | null): Promise<void> {
    const text = `update turns set response_id = $3, engine_conversation = $4 where scope_id = $1
      and id = (select turn_id from requests where id = $2 and scope_id = $1)`;
    return this.database.write([{ text, values: [scopeId, requestId, id, engineConversation] }]);
  }

  findLiveRequests(tenant: string, ids: readonly RequestId[]) {
    return findLiveRequests(this.database, tenant, ids);
  }

  countServedSince(scopeId: number, leaf: NodeId, turn: TurnId, most: number) {
    return this.#requests(scopeId).servedSince(leaf, turn, most);
  }

  findWorker(scopeId: number, turn: TurnId) {
    return this.#requests(scopeId).workerOf(turn);
  }

  findReportedBefore(scopeId: number, turn: TurnId) {
    return this.#requests(scopeId).reportedBefore(turn);
  }

  underWaySince(scopeId: number, since: number) {
    return this.#requests(scopeId).underWaySince(since);
  }

  findContinued(scopeId: number, id: RequestId) {
    return this.#requests(scopeId).continuedBy(id);
  }

  async knownSections(scopeId: number, sections: readonly Digest[]): Promise<readonly Digest[]> {
    if (sections.length === 0) return [];
    // All lists, once: an index would cost every turn more than this costs the few clients that send sections back.
    const text = "select sections from turns where scope_id = $1 and sections is not null";
    const rows = await this.database.read<{ sections: string }>(text, [scopeId]);
    const known = new Set(rows.flatMap((row) => decodedJson<readonly Digest[]>("sections", row.sections)));
    return sections.filter((digest) => known.has(digest));
  }

  async counts(scopeId: number): Promise<ScopeCounts> {
    const of = (table: string) => `(select count(*) from ${table} where scope_id = $1) as ${table}`;
    const [row] = await this.database.read<ScopeCounts>(
      `select ${["conversations", "turns", "requests"].map(of).join()}`,
      [scopeId],
    );
    return row ?? { conversations: 0, turns: 0, requests: 0 };
  }

  liveRequests(scopeId: number, limit: number) {
    return this.#requests(scopeId).live(limit);
  }

  countFirstTokenTimes(engine: string) {
    return this.#prompts.countFirstTokenTimes(engine);
  }

  firstTokenTimes(engine: string, count: number, most: number) {
    return this.#prompts.firstTokenTimes(engine, count, most);
  }

  keepFirstTokenTime(engine: string, scopeId: number, turn: TurnId, time: FirstTokenTime): Promise<void> {
    return this.database.write([sampleStatement(engine, scopeId, turn, time)]);
  }

  forget(user: User, memoryId: MemoryId, of: Parameters<Store["forget"]>[2]) {
    return forget(this.database, user, memoryId, of);
  }

  expire(user: User, before: number) {
    return expire(this.database, user, before);
  }

  deleteUser(user: User, isInSource: boolean, at: number) {
    return deleteUser(this.database, user, isInSource, at);
  }

  exportUser(user: User) {
    return exportUser(this.database, user);
  }

  pendingInSource(user: User) {
    return pendingInSource(this.database.read, user);
  }

  deletedFromSource(user: User, memoryId: MemoryId | null) {
    return deletedFromSource(this.database, user, memoryId);
  }

  async scopesOf(user: User): Promise<Scope[]> {
    const rows = await scopeRows(this.database.read, user);
    return rows.filter(({ hasState }) => hasState).map(({ scope }) => scope);
  }

  users(after: number) {
    return users(this.database.read, after);
  }

  usersWithMemory(tenant: string, memoryId: MemoryId, after: number) {
    return usersWithMemory(this.database.read, tenant, memoryId, after);
  }

  usersWithOldTurns(before: number, after: number) {
    return usersWithOldTurns(this.database.read, before, after);
  }

  usersPendingInSource(after: number) {
    return usersPendingInSource(this.database.read, after);
  }

  idle() {
    return this.database.idle();
  }

  ping() {
    return this.database.ping();
  }

  close() {
    return this.database.close();
  }

  #requests(scopeId: number): RequestReading {
    return new RequestReading(this.database, scopeId);
  }
}
