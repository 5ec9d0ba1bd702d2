/*
 * model/: a store that keeps everything in maps, as the port (`src/store/api/store.ts`) tells it and no faster: what the journal's answers are
 * compared with. It keeps each scope's state as the commit gave it whole, where the journal folds changes; messages with their turns, where
 * the journal shares them; and is durable in nothing.
 */

import {
  type ConversationId,
  type Digest,
  EMPTY_SCOPE,
  type FirstTokenTime,
  type MemoryId,
  type NodeId,
  ownWords,
  QuoteSearch,
  type RequestId,
  type Scope,
  type StoredScope,
  type Turn,
  type TurnId,
  type UserId,
} from "../../../src/core/index.js";
import {
  type AnsweredRequest,
  type CommitBase,
  type ComposeRecord,
  type DeletionCounts,
  type EngineReport,
  type ExpiredTurns,
  type ExpiryRecord,
  type ExportedUser,
  type ForgetRecord,
  type FoundQuotes,
  isSameVersion,
  type LoadedScope,
  type PendingSourceDeletions,
  type PromptHistory,
  type ScannedTurns,
  type ScopeCounts,
  type ScopeDelta,
  type ScopeQuotes,
  type ScopesFound,
  type ServedRequest,
  StaleScopeError,
  type Store,
  type StoredHistory,
  type StoredResponse,
  type StoredVersion,
} from "../../../src/store/api/store.js";
import { exportScope } from "./exported-scope.js";
import { KeptScope, namingOf, servedOf } from "./kept-scope.js";

/** A tenant's oldest responses are removed once in so many uses. */
const USES_BETWEEN_REMOVALS = 64;

/** What is kept of a user besides scopes, and after they are deleted. */
interface KeptUser extends Pick<Scope, "tenant" | "userId"> {
  deletions: DeletionCounts;
  readonly forgotten: Set<MemoryId>;
  /** What the memory source has yet to delete; null: everything. */
  readonly pending: Set<MemoryId | null>;
}

/** An engine's last times, and how many there were. */
interface KeptTimes {
  readonly count: number;
  readonly last: readonly FirstTokenTime[];
}

const NO_TIMES: KeptTimes = { count: 0, last: [] };

/** The model of a store. */
export class MemoryStore implements Store {
  readonly #scopes = new Map<string, KeptScope>();
  readonly #users = new Map<string, KeptUser>();
  readonly #firstTokenTimes = new Map<string, KeptTimes>();
  readonly #uses = new Map<string, number>();
  #lastScopeId = 0;

  async idle(): Promise<void> {}

  async versionOf(scope: Scope): Promise<StoredVersion | null> {
    return versionOf(this.#kept(scope));
  }

  async deletionsOf(tenant: string, userId: UserId): Promise<DeletionCounts> {
    return this.#user({ tenant, userId }).deletions;
  }

  async loadScope(scope: Scope, conversationId: ConversationId | null = null): Promise<LoadedScope> {
    const kept = this.#kept(scope);
    const { deletions, forgotten } = this.#user(scope);
    const state = kept?.state ?? EMPTY_SCOPE;
    return {
      scope: { ...state, register: { ...state.register, forgotten: [...forgotten] } },
      version: versionOf(kept),
      deletions,
      newestAt: kept?.newestRequests()[0]?.at ?? 0,
      conversation: conversationId === null ? null : (kept?.conversation(conversationId) ?? []),
    };
  }

  async loadConversation(scope: Scope, id: ConversationId): Promise<Turn[]> {
    return this.#kept(scope)?.conversation(id) ?? [];
  }

  async knownHistory(): Promise<null> {
    return null;
  }

  async findHistory(scope: Scope, id: ConversationId): Promise<StoredHistory | null> {
    return this.#kept(scope)?.history(id) ?? null;
  }

  commitCompose(scope: Scope, base: CommitBase, { delta, ...record }: ComposeRecord): Promise<StoredVersion> {
    // As far as it is stored; the rest may be of any size.
    const { turn, given, restated, head, sections, leaf } = record.composition;
    const composition = { turn, given, restated, head, sections, leaf };
    const own = structuredClone({ ...record, composition });
    return this.#commit(scope, base, delta, record.at, (kept) => kept.compose(own));
  }

  commitEviction(scope: Scope, base: CommitBase, delta: ScopeDelta, ids: readonly RequestId[]): Promise<StoredVersion> {
    return this.#commit(scope, base, delta, 0, (kept) => {
      for (const id of ids) kept.changeRequest(id, { evicted: true });
    });
  }

  commitWithdrawal(scope: Scope, base: CommitBase, delta: ScopeDelta, turn: TurnId): Promise<StoredVersion> {
    return this.#commit(scope, base, delta, 0, (kept) => kept.withdraw(turn));
  }

  commitChanges(scope: Scope, base: CommitBase, delta: ScopeDelta): Promise<StoredVersion> {
    return this.#commit(scope, base, delta, 0, () => {});
  }

  commitReport(
    scope: Scope,
    base: CommitBase,
    delta: ScopeDelta,
    { id, observed }: { readonly id: RequestId; readonly observed: EngineReport },
  ): Promise<StoredVersion> {
    return this.#commit(scope, base, delta, 0, (kept) => kept.changeRequest(id, { observed: { ...observed } }));
  }

  commitForgetting(scope: Scope, base: CommitBase, record: ForgetRecord): Promise<StoredVersion> {
    const { delta, memoryId, quotes, isInSource, at } = record;
    return this.#commit(scope, base, delta, at, (kept) => {
      kept.forget(record);
      kept.erase(quotes.scopes.get(kept.id)?.search ?? new QuoteSearch(quotes.texts));
      for (const own of this.#scopesOf(scope)) own.responses.clear();
      const user = this.#user(scope);
      user.forgotten.add(memoryId);
      user.deletions = { ...user.deletions, memories: user.deletions.memories + 1 };
      if (isInSource) user.pending.add(memoryId);
    });
  }

  commitExpiry(scope: Scope, base: CommitBase, { delta, turns, sections }: ExpiryRecord): Promise<StoredVersion> {
    return this.#commit(scope, base, delta, 0, (kept) => {
      kept.removeTurns(turns.expired.map(({ id }) => id));
      for (const section of sections) kept.sections.delete(section);
    });
  }

  async commitEnd(scope: Scope, base: CommitBase): Promise<void> {
    if (this.#checked(scope, base) === null) throw new StaleScopeError("there is no such scope");
    this.#scopes.delete(scopeKey(scope));
  }

  async countFirstTokenTimes(engine: string): Promise<number> {
    return this.#firstTokenTimes.get(engine)?.count ?? 0;
  }

  async firstTokenTimes(engine: string, count: number, most: number): Promise<FirstTokenTime[]> {
    const kept = this.#firstTokenTimes.get(engine) ?? NO_TIMES;
    const last = Math.max(0, kept.last.length - (kept.count - count));
    return kept.last.slice(Math.max(0, last - most), last);
  }

  async keepFirstTokenTime(engine: string, time: FirstTokenTime, most: number): Promise<void> {
    const { count, last } = this.#firstTokenTimes.get(engine) ?? NO_TIMES;
    this.#firstTokenTimes.set(engine, { count: count + 1, last: [...last, { ...time }].slice(-most) });
  }

  async findQuotes(tenant: string, userId: UserId, memoryId: MemoryId, texts: readonly string[]): Promise<FoundQuotes> {
    const all = new Set(texts);
    const rendered = new Set<string>();
    const others = new Map<number, Set<string>>();
    for (const { id, state } of this.#scopesOf({ tenant, userId })) {
      const ofOthers = new Set<string>();
      others.set(id, ofOthers);
      for (const version of state.register.versions) {
        const text = state.register.blocks.find(({ label }) => label === version.label)?.text;
        if (text === undefined) continue;
        const words = ownWords(text, version.rendered);
        (version.memoryId === memoryId ? all : ofOthers).add(words);
        if (version.memoryId === memoryId && words !== text) rendered.add(text);
      }
    }
    const scopes = new Map<number, ScopeQuotes>();
    for (const [id, ofOthers] of others) {
      const search = new QuoteSearch([...all].filter((text) => !ofOthers.has(text)));
      scopes.set(id, { search, looked: new Map(), quoting: new Set() });
    }
    return { texts: [...all], rendered: [...rendered], scopes };
  }

  async eraseQuotes({ scopes }: FoundQuotes): Promise<void> {
    for (const kept of this.#scopes.values()) {
      const quotes = scopes.get(kept.id);
      if (quotes === undefined) continue;
      kept.erase(quotes.search);
      kept.responses.clear();
    }
  }

  async scopesWithMemory(tenant: string, memoryId: MemoryId): Promise<ScopesFound> {
    return this.#found(
      ({ scope, state }) =>
        scope.tenant === tenant && state.register.versions.some((version) => version.memoryId === memoryId),
    );
  }

  async scopesWithOldTurns(before: number): Promise<ScopesFound> {
    return this.#found((kept) => [...kept.turns.values()].some((turn) => kept.isOld(turn, before)));
  }

  async scanTurns(scope: Scope, before: number, after: TurnId | 0, most: number): Promise<ScannedTurns> {
    const kept = this.#kept(scope);
    if (kept === null) return { expired: [], remaining: [], next: null };
    const later = [...kept.turns.values()].filter(({ turn }) => turn.id > after);
    const page = later.slice(0, most);
    return {
      expired: page.filter((turn) => kept.isOld(turn, before)).map(namingOf),
      remaining: page.filter((turn) => !kept.isOld(turn, before)).map(namingOf),
      next: later.length > page.length ? (page.at(-1)?.turn.id ?? null) : null,
    };
  }

  async findExpired(scope: Scope, before: number, among: readonly TurnId[]): Promise<ExpiredTurns> {
    return this.#kept(scope)?.expired(before, among) ?? { expired: [], live: [] };
  }

  async emptyLog(): Promise<void> {}

  async findRequest(scope: Scope, id: RequestId, said: Parameters<Store["findRequest"]>[2] = []) {
    const found: AnsweredRequest | null = this.#kept(scope)?.answered(id, said) ?? null;
    return found;
  }

  async findResponse(scope: Scope, id: Digest): Promise<StoredResponse | null> {
    return this.#kept(scope)?.responses.get(id)?.response ?? null;
  }

  async keepResponse(
    scope: Scope,
    deletions: DeletionCounts,
    id: Digest,
    response: StoredResponse,
    continued: Digest | null,
    most: number,
  ): Promise<void> {
    const kept = this.#kept(scope);
    if (kept === null || !this.#areStill(scope, deletions) || !kept.requests.has(response.requestId)) return;
    const { tenant } = scope;
    const used = (this.#uses.get(tenant) ?? 0) + 1;
    this.#uses.set(tenant, used);
    const before = continued === null ? undefined : kept.responses.get(continued);
    if (continued !== null && before !== undefined) kept.responses.set(continued, { ...before, used });
    kept.responses.set(id, { response: structuredClone(response), used });
    if (used % USES_BETWEEN_REMOVALS !== 0) return;
    const ofTenant = [...this.#scopes.values()]
      .filter((one) => one.scope.tenant === tenant)
      .flatMap(({ responses }) => [...responses].map(([name, one]) => ({ responses, name, used: one.used })))
      .sort((a, b) => b.used - a.used);
    for (const { responses, name } of ofTenant.slice(most)) responses.delete(name);
  }

  async findLiveRequests(tenant: string, ids: readonly RequestId[]) {
    return [...this.#scopes.values()]
      .filter(({ scope }) => scope.tenant === tenant)
      .flatMap(({ scope, requests }) =>
        [...requests.values()]
          .filter(({ id, evicted }) => ids.includes(id) && !evicted)
          .map(({ id, leaf, turn }) => ({ scope, requestId: id, leaf, turn })),
      );
  }

  async countServedSince(scope: Scope, leaf: NodeId, turn: TurnId, most: number): Promise<number> {
    const later = (this.#kept(scope)?.newestRequests() ?? []).filter((request) => request.turn > turn);
    return Math.min(most, later.filter((request) => request.leaf === leaf && !request.evicted).length);
  }

  async findServed(scope: Scope, id: RequestId): Promise<ServedRequest | null> {
    const request = this.#kept(scope)?.requests.get(id);
    return request === undefined ? null : servedOf(request);
  }

  async findWorker(scope: Scope, turn: TurnId): Promise<string | null> {
    return this.#kept(scope)?.requestOf(turn)?.answer.worker ?? null;
  }

  async findReportedBefore(scope: Scope, turn: TurnId): Promise<ServedRequest | null> {
    return this.#kept(scope)?.reportedBefore(turn) ?? null;
  }

  async underWaySince(scope: Scope, since: number): Promise<number | null> {
    return this.#kept(scope)?.underWaySince(since) ?? null;
  }

  async findPromptHistory(scope: Scope, id: RequestId): Promise<PromptHistory | null> {
    return this.#kept(scope)?.promptHistory(id) ?? null;
  }

  async knownSections(scope: Scope, sections: readonly Digest[]): Promise<readonly Digest[]> {
    const known = this.#kept(scope)?.sections;
    return sections.filter((section) => known?.has(section));
  }

  async counts(scope: Scope): Promise<ScopeCounts> {
    const kept = this.#kept(scope);
    if (kept === null) return { conversations: 0, turns: 0, requests: 0 };
    const conversations = new Set([...kept.turns.values()].flatMap(({ turn }) => turn.conversationId ?? []));
    return { conversations: conversations.size, turns: kept.turns.size, requests: kept.requests.size };
  }

  async liveRequests(scope: Scope, limit: number) {
    const live = (this.#kept(scope)?.newestRequests() ?? []).filter(({ evicted }) => !evicted);
    return live.slice(0, limit).map(({ id, leaf }) => ({ requestId: id, leaf }));
  }

  async scopesOf(tenant: string, userId: UserId): Promise<Scope[]> {
    return this.#scopesOf({ tenant, userId }).map(({ scope }) => scope);
  }

  async deleteUser(tenant: string, userId: UserId, isInSource: boolean): Promise<number> {
    const user = this.#user({ tenant, userId });
    user.deletions = { ...user.deletions, users: user.deletions.users + 1 };
    user.forgotten.clear();
    if (isInSource) user.pending.add(null);
    const own = this.#scopesOf({ tenant, userId });
    for (const { scope } of own) this.#scopes.delete(scopeKey(scope));
    return own.length;
  }

  async pendingInSource(tenant: string, userId: UserId): Promise<PendingSourceDeletions | null> {
    const { pending } = this.#user({ tenant, userId });
    if (pending.size === 0) return null;
    return { everything: pending.has(null), memoryIds: [...pending].filter((id) => id !== null).sort() };
  }

  async deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): Promise<void> {
    this.#user({ tenant, userId }).pending.delete(memoryId);
  }

  async usersPendingInSource(): Promise<Pick<Scope, "tenant" | "userId">[]> {
    const pending = [...this.#users.values()].filter((user) => user.pending.size > 0);
    return pending.map(({ tenant, userId }) => ({ tenant, userId }));
  }

  async exportUser(tenant: string, userId: UserId): Promise<ExportedUser> {
    const { forgotten } = this.#user({ tenant, userId });
    return {
      scopes: this.#scopesOf({ tenant, userId }).map(exportScope),
      forgottenMemories: [...forgotten].sort(),
    };
  }

  async erased(): Promise<void> {}

  async ping(): Promise<void> {}

  async close(): Promise<void> {}

  /** One commit: nothing is awaited, so nothing comes between its check and its changes. */
  async #commit(
    scope: Scope,
    base: CommitBase,
    delta: ScopeDelta,
    at: number,
    change: (kept: KeptScope) => void,
  ): Promise<StoredVersion> {
    const kept = this.#checked(scope, base) ?? new KeptScope(++this.#lastScopeId, { ...scope }, at);
    this.#scopes.set(scopeKey(scope), kept);
    kept.state = copyOf(delta.whole());
    kept.commits++;
    for (const memoryId of kept.state.register.forgotten) this.#user(scope).forgotten.add(memoryId);
    change(kept);
    return { scopeId: kept.id, commits: kept.commits };
  }

  /** Throws {@link StaleScopeError} where a commit builds on something else than what is stored. */
  #checked(scope: Scope, { version, deletions }: CommitBase): KeptScope | null {
    if (!this.#areStill(scope, deletions)) throw new StaleScopeError("something was deleted meanwhile");
    const kept = this.#kept(scope);
    if (!isSameVersion(version, versionOf(kept))) throw new StaleScopeError("the scope was changed meanwhile");
    return kept;
  }

  #areStill(user: Pick<Scope, "tenant" | "userId">, { users, memories }: DeletionCounts): boolean {
    const { deletions } = this.#user(user);
    return deletions.users === users && deletions.memories === memories;
  }

  #kept(scope: Scope): KeptScope | null {
    return this.#scopes.get(scopeKey(scope)) ?? null;
  }

  #scopesOf({ tenant, userId }: Pick<Scope, "tenant" | "userId">): readonly KeptScope[] {
    return [...this.#scopes.values()].filter(({ scope }) => scope.tenant === tenant && scope.userId === userId);
  }

  /** All on one page. */
  #found(isWanted: (kept: KeptScope) => boolean): ScopesFound {
    return { scopes: [...this.#scopes.values()].filter(isWanted).map(({ scope }) => scope), next: null };
  }

  #user({ tenant, userId }: Pick<Scope, "tenant" | "userId">): KeptUser {
    const key = JSON.stringify([tenant, userId]);
    const user = this.#users.get(key) ?? {
      ...{ tenant, userId, deletions: { users: 0, memories: 0 } },
      forgotten: new Set<MemoryId>(),
      pending: new Set<MemoryId | null>(),
    };
    this.#users.set(key, user);
    return user;
  }
}

function scopeKey({ tenant, userId, agentId }: Scope): string {
  return JSON.stringify([tenant, userId, agentId]);
}

function versionOf(kept: KeptScope | null): StoredVersion | null {
  return kept === null ? null : { scopeId: kept.id, commits: kept.commits };
}

/** A state that its giver may go on changing. */
function copyOf({ published, ...state }: StoredScope): StoredScope {
  const [clusters, accesses] = structuredClone([published.clusters(), published.accesses()] as const);
  return { ...structuredClone(state), published: { clusters: () => clusters, accesses: () => accesses } };
}
