/*
 * scopes: who may work on a scope's state, and when.
 * Enters: jobs of users, and the store. Leaves: scopes in memory, one job per user at a time, a retry while another process holds the
 * database or has changed a scope, and a watch for deletions by any process. All of the service's locking is here.
 */

import {
  Conversation,
  type ConversationId,
  type Digest,
  digestOf,
  LruMap,
  type RequestId,
  type Scope,
  type ScopeBounds,
  ScopeState,
  scopeName,
  type TokenCounter,
  type UserId,
} from "../../core/index.js";
import {
  type CommitBase,
  type DeletionCounts,
  isSameVersion,
  type LoadedScope,
  retriedWhileStale,
  type ScopeDelta,
  StaleScopeError,
  type Store,
  type StoredVersion,
} from "../../store/api/store.js";
import { inSpan } from "../base/spans.js";

/** Watches one user's deletions, by any process, since some counts: work that began then must not restore what was deleted since. */
export class DeletionWatch {
  /** @param since what is known to have been deleted when the work began, or before */
  constructor(
    private readonly store: Pick<Store, "deletionsOf">,
    private readonly tenant: string,
    private readonly userId: UserId,
    readonly since: DeletionCounts,
  ) {}

  /** Watches from now on. */
  static async begin(store: Pick<Store, "deletionsOf">, tenant: string, userId: UserId): Promise<DeletionWatch> {
    return new DeletionWatch(store, tenant, userId, await store.deletionsOf(tenant, userId));
  }

  /** Whether the user or a memory of theirs was deleted since. */
  async isDeleted(): Promise<boolean> {
    return !this.covers(await this.store.deletionsOf(this.tenant, this.userId));
  }

  /** Whether what was planned then may still be sent: nothing was deleted since, as far as the store says. Never rejects. */
  async isSendable(): Promise<boolean> {
    return this.isDeleted().then(
      (isDeleted) => !isDeleted,
      () => false,
    );
  }

  /** Whether the whole user was deleted since. */
  async isUserDeleted(): Promise<boolean> {
    return this.since.users !== (await this.store.deletionsOf(this.tenant, this.userId)).users;
  }

  /** Whether nothing had been deleted since by the time of these counts. */
  covers(counts: DeletionCounts): boolean {
    return isSameCount(this.since, counts);
  }
}

/** Whether nothing was deleted between two counts. */
function isSameCount(a: DeletionCounts, b: DeletionCounts): boolean {
  return a.users === b.users && a.memories === b.memories;
}

/** The instructions of a prompt, and when it was composed, in milliseconds since the epoch. */
interface EarlierPrompt {
  readonly head: Digest;
  readonly at: number;
}

/** Conversations of a scope whose newest prompt is remembered. */
const MOST_EARLIER = 100;

/**
 * A scope in memory, and what its next commit builds on. It may be older than what is stored: a commit finds out, and whatever leaves
 * without one needs {@link check}.
 */
export class WorkingScope {
  readonly requests: OpenRequests;
  /** The newest prompt of each conversation, of no conversation (null) … */
  readonly earlier = new LruMap<ConversationId | null, EarlierPrompt>(MOST_EARLIER);
  /** … and of all; by this process only. */
  newest: EarlierPrompt | undefined;
  #base: CommitBase;

  constructor(
    readonly scope: Scope,
    readonly state: ScopeState,
    { version, deletions, newestAt }: Pick<LoadedScope, "version" | "deletions" | "newestAt">,
    private readonly store: Store,
  ) {
    this.#base = { version, deletions };
    this.requests = new OpenRequests(store, scope, newestAt);
  }

  /** Another object after each commit. */
  get base(): CommitBase {
    return this.#base;
  }

  /** Detects deletions of the user's data since the state that this builds on. */
  watch(): DeletionWatch {
    return new DeletionWatch(this.store, this.scope.tenant, this.scope.userId, this.#base.deletions);
  }

  /** Waits until a commit is durable, and builds on it. Rejects as the commit does; then the scope in memory is ahead of the stored one. */
  async commit(write: (base: CommitBase) => Promise<StoredVersion>): Promise<void> {
    const { deletions } = this.#base;
    const version = await inSpan("memprefix.commit", {}, () => write(this.#base));
    this.#base = { version, deletions };
  }

  /**
   * Rejects with {@link StaleScopeError} where another process has changed the scope since it was loaded. Otherwise everything that was read
   * of it in the store before belongs to this state.
   */
  async check(): Promise<void> {
    const { version, deletions } = this.#base;
    const { tenant, userId } = this.scope;
    const [stored, deleted] = await Promise.all([
      this.store.versionOf(this.scope),
      this.store.deletionsOf(tenant, userId),
    ]);
    if (!isSameVersion(stored, version) || !isSameCount(deleted, deletions))
      throw new StaleScopeError("the scope was changed by another process");
  }
}

/** What changed in a scope since the last commit, for the next one. */
export function deltaOf(state: ScopeState): ScopeDelta {
  return { changes: state.drain(), whole: () => state.stored() };
}

/** How many of a scope's last requests are looked at; as many as a store looks at. */
const MOST_REQUESTS = 32;

/** One request that was composed since the scope was loaded. */
interface ComposedRequest {
  readonly id: RequestId;
  /** Milliseconds since the epoch. */
  readonly at: number;
  isOpen: boolean;
}

/**
 * The requests of a scope in memory that its engine may still be computing: `Store.underWaySince`, of which the store is asked only for what
 * was composed before the scope was loaded. Valid for as long as the scope's version is the stored one: any other process's commit loads the
 * scope again.
 */
class OpenRequests {
  /** Oldest first. */
  #composed: ComposedRequest[] = [];
  /** When the oldest open request from before the first of those was composed; null: none. Undefined: to be read. */
  #before: number | null | undefined;

  /** @param loadedAt when the newest request was composed that was stored before the scope was loaded; 0: none was */
  constructor(
    private readonly store: Pick<Store, "underWaySince">,
    private readonly scope: Scope,
    private readonly loadedAt: number,
  ) {}

  /** A request was composed and stored. */
  composed(id: RequestId, at: number): void {
    this.#composed.push({ id, at, isOpen: true });
    if (this.#composed.length > MOST_REQUESTS) this.#composed.shift();
  }

  /** Requests were reported, evicted or withdrawn. */
  ended(ids: readonly RequestId[]): void {
    for (const id of ids) {
      const known = this.#composed.find((request) => request.id === id);
      if (known !== undefined) known.isOpen = false;
      // Another one may be the oldest now.
      else this.#before = undefined;
    }
  }

  /** See `Store.underWaySince`. */
  async since(since: number): Promise<number | null> {
    const later = this.#composed.filter(({ at }) => at > since);
    if (later.length >= MOST_REQUESTS) return since;
    const own = later.find(({ isOpen }) => isOpen)?.at ?? null;
    // What is older than the first of them is before `since`, too.
    if (later.length < this.#composed.length) return own;
    if (this.loadedAt <= since) this.#before = null;
    else if (this.#before === undefined || (this.#before !== null && this.#before <= since)) {
      const oldest = await this.store.underWaySince(this.scope, since);
      this.#before = oldest === own ? null : oldest;
    }
    return this.#before ?? own;
  }
}

interface Entry {
  readonly working: WorkingScope;
  weight: number;
}

/**
 * The scopes in memory: loaded on first use, and dropped in LRU order once together they exceed `maxBytes`. A single scope may exceed it;
 * it has bounds of its own. A scope in memory is used without asking the store: the next commit finds out whether it is current.
 */
export class WorkingScopes {
  readonly #entries = new LruMap<string, Entry>();
  #weight = 0;

  constructor(
    private readonly store: Store,
    private readonly countTokens: TokenCounter,
    private readonly maxBytes: number,
    private readonly scopeBounds: ScopeBounds,
  ) {}

  get size(): number {
    return this.#entries.size;
  }

  /** Bytes, estimated. */
  get weight(): number {
    return this.#weight;
  }

  /** Nodes of all their context indexes. */
  get nodes(): number {
    let sum = 0;
    for (const { working } of this.#entries.values()) sum += working.state.index.size;
    return sum;
  }

  /**
   * Runs `work`, which may change a scope and commit it. Call it from the user's queue, so that nothing else changes the scope meanwhile. If
   * `work` rejects, the scope is dropped, since memory may be ahead of the database; if another process was first ({@link StaleScopeError}),
   * `work` is repeated on the scope as it is then; others that are first again and again are reported as a lock of theirs, to be waited for.
   *
   * @param conversationId a conversation that `work` is about, which is read with a scope that is loaded
   */
  async use<T>(
    scope: Scope,
    work: (working: WorkingScope) => T | Promise<T>,
    conversationId: ConversationId | null = null,
  ): Promise<T> {
    const key = scopeName(scope);
    return retriedWhileStale(async () => {
      const working = this.#inMemory(key) ?? (await this.#load(scope, key, conversationId));
      try {
        const result = await work(working);
        this.#settle(key, working);
        return result;
      } catch (error) {
        this.#remove(key);
        throw error;
      }
    });
  }

  /**
   * Runs `work`, which changes nothing, on a scope as it is stored, from anywhere. A job of the user's queue may be changing it: then it may
   * have what that job is about to store. Repeated like that of {@link use}.
   */
  async read<T>(scope: Scope, work: (working: WorkingScope) => T | Promise<T>): Promise<T> {
    const key = scopeName(scope);
    return retriedWhileStale(async (attempt) => {
      const known = attempt === 1 ? this.#inMemory(key) : undefined;
      await known?.check();
      const working = known ?? (await this.#loaded(scope));
      // One that is stale is left to the job that may be using it.
      if (!this.#entries.has(key)) this.#entries.set(key, { working, weight: 0 });
      const result = await work(working);
      this.#settle(key, working);
      return result;
    });
  }

  /** What the next commit of a scope builds on: as it was when the scope was loaded, which is now where it is not in memory. */
  async baseOf(scope: Scope, conversationId: ConversationId | null): Promise<CommitBase> {
    const key = scopeName(scope);
    const known = this.#inMemory(key);
    if (known !== undefined) return known.base;
    const working = await this.#loaded(scope, conversationId);
    // A job may have loaded it meanwhile.
    if (!this.#entries.has(key)) {
      this.#entries.set(key, { working, weight: 0 });
      this.#settle(key, working);
    }
    return working.base;
  }

  drop(scope: Scope): void {
    this.#remove(scopeName(scope));
  }

  dropUser(tenant: string, userId: UserId): void {
    for (const { working } of [...this.#entries.values()]) {
      const { scope } = working;
      if (scope.tenant === tenant && scope.userId === userId) this.#remove(scopeName(scope));
    }
  }

  /** Counts as a use. */
  #inMemory(key: string): WorkingScope | undefined {
    return this.#entries.get(key)?.working;
  }

  async #load(scope: Scope, key: string, conversationId: ConversationId | null): Promise<WorkingScope> {
    const working = await this.#loaded(scope, conversationId);
    this.#remove(key);
    this.#entries.set(key, { working, weight: 0 });
    return working;
  }

  async #loaded(scope: Scope, conversationId: ConversationId | null = null): Promise<WorkingScope> {
    const loaded = await this.store.loadScope(scope, conversationId);
    const state = new ScopeState(loaded.scope, this.countTokens, this.scopeBounds);
    const { conversation } = loaded;
    if (conversationId !== null && conversation !== null)
      state.conversation(conversationId, () => new Conversation(conversation));
    return new WorkingScope(scope, state, loaded, this.store);
  }

  #settle(key: string, working: WorkingScope): void {
    const entry = this.#entries.peek(key);
    // It may have been dropped meanwhile.
    if (entry?.working !== working) return;
    const { weight } = working.state;
    this.#weight += weight - entry.weight;
    entry.weight = weight;
    while (this.#weight > this.maxBytes && this.#entries.size > 1) {
      const { oldest = key } = this.#entries;
      // The one that is settled stays, whatever it takes.
      if (oldest === key) this.#inMemory(key);
      else this.#remove(oldest);
    }
  }

  #remove(key: string): void {
    const entry = this.#entries.peek(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#weight -= entry.weight;
  }
}

/*
 * Names of prompts in a cache that all users share. They name nobody: what a deleted user sent stays in the sums.
 */

/** Whose prompts continue each other: a conversation, or a user's single prompts. */
export function streamOf({ tenant, userId, agentId }: Scope, conversation: ConversationId | null): string {
  return digestOf(JSON.stringify([tenant, userId, agentId, "conversation", conversation]));
}

/** Whose prompts those of all agents are. */
export function userOf({ tenant, userId }: Scope): string {
  return digestOf(JSON.stringify([tenant, userId, "user"]));
}

/** One prompt. */
export function sentAs({ tenant, userId, agentId }: Scope, request: RequestId): string {
  return digestOf(JSON.stringify([tenant, userId, agentId, "request", request]));
}
