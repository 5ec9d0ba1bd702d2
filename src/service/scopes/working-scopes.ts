/*
 * scopes: who may work on a scope's state, and when.
 * Enters: jobs of users, and the store. Leaves: scopes in memory at their stored version, one job per user at a time, a retry while
 * another process holds the database, and a watch for deletions by any process. All of the service's locking is here.
 */

import { type Scope, type ScopeBounds, ScopeState, type TokenCounter, type UserId } from "../../core/index.js";
import { type DeletionCounts, StaleScopeError, type Store, type StoredVersion } from "../../store/api/store.js";
import { isSameCount } from "./deletion-watch.js";

/** A scope in memory, with its stored version. */
export interface WorkingScope {
  readonly state: ScopeState;
  version: StoredVersion | null;
  /** When its newest request was composed, if by this process; absent: ask the store. Any other's commit loads the scope anew. */
  newestAt?: number;
}

interface Entry extends WorkingScope {
  readonly scope: Scope;
  /** Deletions at load. A scope without a row has no version that a later deletion would change. */
  readonly deletions: DeletionCounts;
  weight: number;
}

const MAX_ATTEMPTS = 5;

/**
 * The scopes in memory: loaded on first use, and dropped in LRU order once together they exceed `maxBytes`. A single scope may exceed it;
 * it has bounds of its own.
 */
export class WorkingScopes {
  readonly #entries = new Map<string, Entry>();
  #weight = 0;

  constructor(
    private readonly store: Store,
    private readonly countTokens: TokenCounter,
    private readonly maxBytes: number,
    private readonly scopeBounds: ScopeBounds,
    private readonly markers: readonly string[] = [],
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
    for (const { state } of this.#entries.values()) sum += state.index.size;
    return sum;
  }

  /**
   * Runs `work`, which may change a scope, commit it and set its new version. Reloads the scope first where another process changed it, so
   * `work` never sees a stale state. If `work` throws, the scope is dropped, since memory may be ahead of the database; if another process
   * committed first ({@link StaleScopeError}), `work` is repeated on the reloaded scope.
   */
  use<T>(scope: Scope, work: (working: WorkingScope) => T): T {
    for (let attempt = 1; ; attempt++) {
      const entry = this.#get(scope);
      try {
        const result = work(entry);
        this.#settle(entry);
        return result;
      } catch (error) {
        this.#dropAfter(error, scope, attempt);
      }
    }
  }

  /** The same for asynchronous work. Call it from the user's queue, so that nothing else uses the scope meanwhile. */
  async useInSteps<T>(scope: Scope, work: (working: WorkingScope) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const entry = this.#get(scope);
      try {
        const result = await work(entry);
        // It may have been dropped meanwhile.
        if (this.#entries.get(keyOf(scope)) === entry) this.#settle(entry);
        return result;
      } catch (error) {
        this.#dropAfter(error, scope, attempt);
      }
    }
  }

  drop(scope: Scope): void {
    this.#remove(keyOf(scope));
  }

  clear(): void {
    this.#entries.clear();
    this.#weight = 0;
  }

  dropUser(tenant: string, userId: UserId): void {
    for (const [key, { scope }] of this.#entries) {
      if (scope.tenant === tenant && scope.userId === userId) this.#remove(key);
    }
  }

  #dropAfter(error: unknown, scope: Scope, attempt: number): void {
    this.drop(scope);
    if (!(error instanceof StaleScopeError) || attempt === MAX_ATTEMPTS) throw error;
  }

  #get(scope: Scope): Entry {
    const key = keyOf(scope);
    const known = this.#entries.get(key);
    // Counted before the scope is read: a deletion in between is noticed on the next use.
    const deletions = this.store.deletionsOf(scope.tenant, scope.userId);
    if (known !== undefined) {
      if (isSameCount(known.deletions, deletions) && isSameVersion(known.version, this.store.versionOf(scope))) {
        this.#entries.delete(key);
        this.#entries.set(key, known);
        return known;
      }
      this.#remove(key);
    }
    const loaded = this.store.loadScope(scope);
    const state = new ScopeState(loaded.scope, this.countTokens, this.scopeBounds, this.markers);
    const entry: Entry = { scope, state, version: loaded.version, deletions, weight: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  #settle(entry: Entry): void {
    const { weight } = entry.state;
    this.#weight += weight - entry.weight;
    entry.weight = weight;
    for (const [key, candidate] of this.#entries) {
      if (this.#weight <= this.maxBytes) return;
      if (candidate !== entry) this.#remove(key);
    }
  }

  #remove(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#weight -= entry.weight;
  }
}

function isSameVersion(a: StoredVersion | null, b: StoredVersion | null): boolean {
  return a?.scopeId === b?.scopeId && a?.commits === b?.commits;
}

function keyOf(scope: Scope): string {
  return JSON.stringify([scope.tenant, scope.userId, scope.agentId]);
}
