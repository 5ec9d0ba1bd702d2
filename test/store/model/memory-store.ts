/*
 * model/: a store that keeps everything in maps, as the port (`src/store/api/store.ts`) tells it and no faster: what the journal's answers are
 * compared with. It keeps each scope's state as the commit gave it whole, where the journal folds changes; messages with their turns, where
 * the journal shares them; and is durable in nothing.
 */

import {
  EMPTY_SCOPE,
  type FirstTokenTime,
  type MemoryId,
  ownWords,
  QuoteSearch,
  type Scope,
  type StoredScope,
} from "../../../src/core/index.js";
import {
  type CommitBase,
  type DeletionCounts,
  isSameVersion,
  type ScopeDelta,
  type ScopesFound,
  StaleScopeError,
  type Store,
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

  readonly idle: Store["idle"] = async () => {};

  readonly versionOf: Store["versionOf"] = async (scope) => versionOf(this.#kept(scope));

  readonly deletionsOf: Store["deletionsOf"] = async (tenant, userId) => this.#user({ tenant, userId }).deletions;

  readonly loadScope: Store["loadScope"] = async (scope, conversationId = null) => {
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
  };

  readonly loadConversation: Store["loadConversation"] = async (scope, id) => this.#kept(scope)?.conversation(id) ?? [];

  readonly knownHistory: Store["knownHistory"] = async () => null;

  readonly findHistory: Store["findHistory"] = async (scope, id) => this.#kept(scope)?.history(id) ?? null;

  readonly commitCompose: Store["commitCompose"] = (scope, base, { delta, ...record }) => {
    // As far as it is stored; the rest may be of any size.
    const { turn, given, restated, head, sections, leaf } = record.composition;
    const composition = { turn, given, restated, head, sections, leaf };
    const own = structuredClone({ ...record, composition });
    return this.#commit(scope, base, delta, record.at, (kept) => kept.compose(own));
  };

  readonly commitEviction: Store["commitEviction"] = (scope, base, delta, ids) =>
    this.#commit(scope, base, delta, 0, (kept) => {
      for (const id of ids) kept.changeRequest(id, { evicted: true });
    });

  readonly commitWithdrawal: Store["commitWithdrawal"] = (scope, base, delta, turn) =>
    this.#commit(scope, base, delta, 0, (kept) => kept.withdraw(turn));

  readonly commitChanges: Store["commitChanges"] = (scope, base, delta) =>
    this.#commit(scope, base, delta, 0, () => {});

  readonly commitReport: Store["commitReport"] = (scope, base, delta, { id, observed }) =>
    this.#commit(scope, base, delta, 0, (kept) => kept.changeRequest(id, { observed: { ...observed } }));

  readonly commitForgetting: Store["commitForgetting"] = (scope, base, record) => {
    const { delta, memoryId, quotes, isInSource, at } = record;
    return this.#commit(scope, base, delta, at, (kept) => {
      kept.forget(record);
      kept.erase(quotes.scopes.get(kept.id)?.search ?? new QuoteSearch(quotes.texts));
      const user = this.#user(scope);
      user.forgotten.add(memoryId);
      user.deletions = { ...user.deletions, memories: user.deletions.memories + 1 };
      if (isInSource) user.pending.add(memoryId);
    });
  };

  readonly commitExpiry: Store["commitExpiry"] = (scope, base, { delta, turns }) =>
    this.#commit(scope, base, delta, 0, (kept) => kept.expire(turns.expired.map(({ id }) => id)));

  readonly commitEnd: Store["commitEnd"] = async (scope, base) => {
    if (this.#checked(scope, base) === null) throw new StaleScopeError("there is no such scope");
    this.#scopes.delete(scopeKey(scope));
  };

  readonly countFirstTokenTimes: Store["countFirstTokenTimes"] = async (engine) =>
    this.#firstTokenTimes.get(engine)?.count ?? 0;

  readonly firstTokenTimes: Store["firstTokenTimes"] = async (engine, count, most) => {
    const kept = this.#firstTokenTimes.get(engine) ?? NO_TIMES;
    const last = Math.max(0, kept.last.length - (kept.count - count));
    return kept.last.slice(Math.max(0, last - most), last);
  };

  readonly keepFirstTokenTime: Store["keepFirstTokenTime"] = async (engine, time, most) => {
    const { count, last } = this.#firstTokenTimes.get(engine) ?? NO_TIMES;
    this.#firstTokenTimes.set(engine, { count: count + 1, last: [...last, { ...time }].slice(-most) });
  };

  readonly findQuotes: Store["findQuotes"] = async (tenant, userId, memoryId, texts) => {
    const all = new Set(texts);
    const rendered = new Set<string>();
    const others = new Map<number, Set<string>>();
    for (const { id, state } of this.#scopesOf({ tenant, userId })) {
      const ofOthers = new Set<string>();
      others.set(id, ofOthers);
      for (const version of state.register.versions) {
        const text = state.register.blocks.find(({ label }) => label === version.label)?.text;
        if (text === undefined) continue;
        const words = ownWords(text, version.dated === true);
        (version.memoryId === memoryId ? all : ofOthers).add(words);
        if (version.memoryId === memoryId && words !== text) rendered.add(text);
      }
    }
    const scopes = new Map<number, { search: QuoteSearch }>();
    for (const [id, ofOthers] of others) {
      const search = new QuoteSearch([...all].filter((text) => !ofOthers.has(text)));
      scopes.set(id, { search });
    }
    return { texts: [...all], rendered: [...rendered], scopes };
  };

  readonly eraseQuotes: Store["eraseQuotes"] = async ({ scopes }) => {
    for (const kept of this.#scopes.values()) {
      const quotes = scopes.get(kept.id);
      if (quotes !== undefined) kept.erase(quotes.search);
    }
  };

  readonly scopesWithMemory: Store["scopesWithMemory"] = async (tenant, memoryId) =>
    this.#found(
      ({ scope, state }) =>
        scope.tenant === tenant && state.register.versions.some((version) => version.memoryId === memoryId),
    );

  readonly scopesWithOldTurns: Store["scopesWithOldTurns"] = async (before) =>
    this.#found((kept) => [...kept.turns.values()].some((turn) => kept.isOld(turn, before)));

  readonly scanTurns: Store["scanTurns"] = async (scope, before, after, most) => {
    const kept = this.#kept(scope);
    if (kept === null) return { expired: [], remaining: [], next: null };
    const later = [...kept.turns.values()].filter(({ turn }) => turn.id > after);
    const page = later.slice(0, most);
    return {
      expired: page.filter((turn) => kept.isOld(turn, before)).map(namingOf),
      remaining: page.filter((turn) => !kept.isOld(turn, before)).map(namingOf),
      next: later.length > page.length ? (page.at(-1)?.turn.id ?? null) : null,
    };
  };

  readonly findExpired: Store["findExpired"] = async (scope, before, among) =>
    this.#kept(scope)?.expired(before, among) ?? { expired: [], live: [] };

  readonly emptyLog: Store["emptyLog"] = async () => {};

  readonly findRequest: Store["findRequest"] = async (scope, id, said = []) =>
    this.#kept(scope)?.answered(id, said) ?? null;

  readonly findResponse: Store["findResponse"] = async (scope, id) =>
    this.#kept(scope)?.responses.get(id)?.requestId ?? null;

  readonly responsesGiven: Store["responsesGiven"] = async (scope, labels) =>
    this.#kept(scope)?.responsesGiven(labels) ?? { given: [], others: [] };

  readonly keepResponse: Store["keepResponse"] = async (scope, deletions, id, requestId, continued, most) => {
    const kept = this.#kept(scope);
    if (kept === null || !this.#areStill(scope, deletions) || !kept.requests.has(requestId)) return;
    const { tenant } = scope;
    const used = (this.#uses.get(tenant) ?? 0) + 1;
    this.#uses.set(tenant, used);
    const before = continued === null ? undefined : kept.responses.get(continued);
    if (continued !== null && before !== undefined) kept.responses.set(continued, { ...before, used });
    kept.responses.set(id, { requestId, used });
    if (used % USES_BETWEEN_REMOVALS !== 0) return;
    const ofTenant = [...this.#scopes.values()]
      .filter((one) => one.scope.tenant === tenant)
      .flatMap(({ responses }) => [...responses].map(([name, one]) => ({ responses, name, used: one.used })))
      .sort((a, b) => b.used - a.used);
    for (const { responses, name } of ofTenant.slice(most)) responses.delete(name);
  };

  readonly findLiveRequests: Store["findLiveRequests"] = async (tenant, ids) =>
    [...this.#scopes.values()]
      .filter(({ scope }) => scope.tenant === tenant)
      .flatMap(({ scope, requests }) =>
        [...requests.values()]
          .filter(({ id, evicted }) => ids.includes(id) && !evicted)
          .map(({ id, leaf, turn }) => ({ scope, requestId: id, leaf, turn })),
      );

  readonly countServedSince: Store["countServedSince"] = async (scope, leaf, turn, most) => {
    const later = (this.#kept(scope)?.newestRequests() ?? []).filter((request) => request.turn > turn);
    return Math.min(most, later.filter((request) => request.leaf === leaf && !request.evicted).length);
  };

  readonly findServed: Store["findServed"] = async (scope, id) => {
    const request = this.#kept(scope)?.requests.get(id);
    return request === undefined ? null : servedOf(request);
  };

  readonly findWorker: Store["findWorker"] = async (scope, turn) =>
    this.#kept(scope)?.requestOf(turn)?.answer.worker ?? null;

  readonly findReportedBefore: Store["findReportedBefore"] = async (scope, turn) =>
    this.#kept(scope)?.reportedBefore(turn) ?? null;

  readonly underWaySince: Store["underWaySince"] = async (scope, since) =>
    this.#kept(scope)?.underWaySince(since) ?? null;

  readonly findContinued: Store["findContinued"] = async (scope, id) => this.#kept(scope)?.continuedBy(id) ?? null;

  readonly knownSections: Store["knownSections"] = async (scope, sections) => {
    const known = this.#kept(scope)?.sections;
    return sections.filter((section) => known?.has(section));
  };

  readonly counts: Store["counts"] = async (scope) => {
    const kept = this.#kept(scope);
    if (kept === null) return { conversations: 0, turns: 0, requests: 0 };
    const conversations = new Set([...kept.turns.values()].flatMap(({ turn }) => turn.conversationId ?? []));
    return { conversations: conversations.size, turns: kept.turns.size, requests: kept.requests.size };
  };

  readonly liveRequests: Store["liveRequests"] = async (scope, limit) => {
    const live = (this.#kept(scope)?.newestRequests() ?? []).filter(({ evicted }) => !evicted);
    return live.slice(0, limit).map(({ id, leaf }) => ({ requestId: id, leaf }));
  };

  readonly usersAfter: Store["usersAfter"] = async (tenant, userId) => {
    const users = [...this.#scopes.values()].map(({ scope }) => ({ tenant: scope.tenant, userId: scope.userId }));
    const keyOf = (user: { tenant: string; userId: string }) => JSON.stringify([user.tenant, user.userId]);
    const later = new Map(users.map((user) => [keyOf(user), user]));
    return [...later]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([key, user]) => (key > keyOf({ tenant, userId }) ? user : []));
  };
  readonly scopesOf: Store["scopesOf"] = async (tenant, userId) =>
    this.#scopesOf({ tenant, userId }).map(({ scope }) => scope);

  readonly deleteUser: Store["deleteUser"] = async (tenant, userId, isInSource) => {
    const user = this.#user({ tenant, userId });
    user.deletions = { ...user.deletions, users: user.deletions.users + 1 };
    user.forgotten.clear();
    if (isInSource) user.pending.add(null);
    const own = this.#scopesOf({ tenant, userId });
    for (const { scope } of own) this.#scopes.delete(scopeKey(scope));
    return own.length;
  };

  readonly pendingInSource: Store["pendingInSource"] = async (tenant, userId) => {
    const { pending } = this.#user({ tenant, userId });
    if (pending.size === 0) return null;
    return { everything: pending.has(null), memoryIds: [...pending].filter((id) => id !== null).sort() };
  };

  readonly deletedFromSource: Store["deletedFromSource"] = async (tenant, userId, memoryId) => {
    this.#user({ tenant, userId }).pending.delete(memoryId);
  };

  readonly usersPendingInSource: Store["usersPendingInSource"] = async () => {
    const pending = [...this.#users.values()].filter((user) => user.pending.size > 0);
    return pending.map(({ tenant, userId }) => ({ tenant, userId }));
  };

  readonly exportUser: Store["exportUser"] = async (tenant, userId) => {
    const { forgotten } = this.#user({ tenant, userId });
    return {
      scopes: this.#scopesOf({ tenant, userId }).map(exportScope),
      forgottenMemories: [...forgotten].sort(),
    };
  };

  readonly erased: Store["erased"] = async () => {};

  readonly ping: Store["ping"] = async () => {};

  readonly close: Store["close"] = async () => {};

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
  const [clusters, accesses] = structuredClone([published.clusters, published.accesses] as const);
  return { ...structuredClone(state), published: { clusters, accesses } };
}
