/*
 * scopes: who may work on a scope's state, and when.
 * Enters: jobs of users, and the store. Leaves: scopes in memory, one job per user at a time, a retry while another process holds the
 * database or has changed a scope, and a watch for deletions by any process. All of the service's locking is here.
 */

import {
  Conversation,
  type ConversationId,
  LruMap,
  type Scope,
  type ScopeBounds,
  ScopeState,
  type TokenCounter,
  type UserId,
} from "../../core/index.js";
import { type CommitBase, StaleScopeError, type Store, StoreUnavailableError } from "../../store/api/store.js";
import { WorkingScope } from "./working-scope.js";

interface Entry {
  readonly working: WorkingScope;
  weight: number;
}

/** Attempts at work on a scope that other processes change meanwhile, before that counts as a lock of theirs. */
export const MAX_ATTEMPTS = 5;

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
    const key = keyOf(scope);
    for (let attempt = 1; ; attempt++) {
      const working = this.#inMemory(key) ?? (await this.#load(scope, key, conversationId));
      try {
        const result = await work(working);
        this.#settle(key, working);
        return result;
      } catch (error) {
        this.#remove(key);
        if (!(error instanceof StaleScopeError)) throw error;
        if (attempt === MAX_ATTEMPTS) throw new StoreUnavailableError("busy", { cause: error });
      }
    }
  }

  /**
   * Runs `work`, which changes nothing, on a scope as it is stored, from anywhere. A job of the user's queue may be changing it: then it may
   * have what that job is about to store. Repeated like that of {@link use}.
   */
  async read<T>(scope: Scope, work: (working: WorkingScope) => T | Promise<T>): Promise<T> {
    const key = keyOf(scope);
    for (let attempt = 1; ; attempt++) {
      const known = attempt === 1 ? this.#inMemory(key) : undefined;
      try {
        await known?.check();
        const working = known ?? (await this.#loaded(scope));
        // One that is stale is left to the job that may be using it.
        if (!this.#entries.has(key)) this.#entries.set(key, { working, weight: 0 });
        const result = await work(working);
        this.#settle(key, working);
        return result;
      } catch (error) {
        if (!(error instanceof StaleScopeError)) throw error;
        if (attempt === MAX_ATTEMPTS) throw new StoreUnavailableError("busy", { cause: error });
      }
    }
  }

  /** What the next commit of a scope builds on: as it was when the scope was loaded, which is now where it is not in memory. */
  async baseOf(scope: Scope, conversationId: ConversationId | null = null): Promise<CommitBase> {
    const key = keyOf(scope);
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
    this.#remove(keyOf(scope));
  }

  dropUser(tenant: string, userId: UserId): void {
    for (const { working } of [...this.#entries.values()]) {
      const { scope } = working;
      if (scope.tenant === tenant && scope.userId === userId) this.#remove(keyOf(scope));
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

function keyOf(scope: Scope): string {
  return JSON.stringify([scope.tenant, scope.userId, scope.agentId]);
}
