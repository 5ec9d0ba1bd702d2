/* scopes: scopes in memory, one job per user at a time; the store excludes other processes. */

import {
  type CacheHandle,
  Conversation,
  type ConversationId,
  type Digest,
  digestOf,
  LruMap,
  type PromptRoot,
  type RequestId,
  type Scope,
  type ScopeBounds,
  ScopeState,
  type StoredScope,
  scopeName,
  type TokenCounter,
  type UserId,
} from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import type { HeldScope, ScopeDelta, ScopeVersion, Store } from "../../store/store.js";
import { inSpan } from "../base/spans.js";

interface EarlierPrompt {
  readonly head: Digest;
  readonly root: PromptRoot;
  readonly at: number;
  /** How many in a row, up to this one, came after the one before had left its provider's cache. */
  readonly lateInRow: number;
}

const MOST_EARLIER = 100;

/** A conversation of a scope in memory. */
export interface WorkingConversation {
  readonly turns: Conversation;
  /** Whether its end was removed since its newest prompt, because a memory was forgotten. */
  readonly isCut: boolean;
  /** Whether it was read from the store. */
  readonly isRead: boolean;
}

/** A scope in memory, as it is stored. One job of its user may change it and commit once; changes without a commit are dropped. */
export class WorkingScope {
  /** The newest prompt of each conversation; null: of single prompts. */
  readonly earlier = new LruMap<ConversationId | null, EarlierPrompt>(MOST_EARLIER);
  /** The newest prompt of all, by this process. */
  newest: EarlierPrompt | undefined;
  /** Conversations whose end was removed, until their next prompt. */
  readonly #cut = new Set<ConversationId>();
  #version: ScopeVersion | null;
  #held: HeldScope | null = null;
  #isAsStored = true;

  constructor(
    readonly scope: Scope,
    readonly state: ScopeState,
    version: ScopeVersion | null,
    readonly userNumber: number,
    readonly requests: OpenRequests,
    private readonly store: Store,
  ) {
    this.#version = version;
  }

  get version(): ScopeVersion | null {
    return this.#version;
  }

  /** 0: not stored; finds nothing. */
  get scopeId(): number {
    return this.#version?.scopeId ?? 0;
  }

  get isStored(): boolean {
    return (this.#version?.version ?? 0) > 0;
  }

  /** Whether the state is the committed one: work without a commit may have changed it. */
  get isAsStored(): boolean {
    return this.#isAsStored;
  }

  async during<T>(held: HeldScope, work: () => T | Promise<T>): Promise<T> {
    this.#held = held;
    this.#version = held.version;
    this.#isAsStored = false;
    try {
      return await work();
    } finally {
      this.#held = null;
    }
  }

  /** Resolves when the commit is durable. If it rejects, the scope in memory is ahead of the stored one. */
  async commit(write: (held: HeldScope) => Promise<ScopeVersion>): Promise<void> {
    const held = this.#held;
    if (held === null) throw new Error("a scope is committed while it is held");
    this.#version = await inSpan("memprefix.commit", {}, () => write(held));
    this.#isAsStored = true;
  }

  /** Reads a conversation from memory or the store. It stays in memory only with {@link keep}. */
  async conversation(id: ConversationId): Promise<WorkingConversation> {
    const loaded = this.state.loadedConversation(id);
    if (loaded !== undefined) return { turns: loaded, isCut: this.#cut.has(id), isRead: false };
    if (!this.isStored) return { turns: new Conversation([]), isCut: false, isRead: true };
    const { isCut, ...stored } = await this.store.loadConversation(this.scopeId, id);
    const turns = new Conversation(stored.turns, stored.sentAfter, stored.instructions);
    return { turns, isCut, isRead: true };
  }

  keep(id: ConversationId, { turns, isCut }: WorkingConversation): void {
    this.state.conversation(id, () => turns);
    if (isCut) this.#cut.add(id);
  }

  goesOn(id: ConversationId): void {
    this.#cut.delete(id);
  }
}

export async function isServed(
  store: Pick<Store, "find" | "findServed">,
  scope: Scope,
  id: RequestId,
): Promise<boolean> {
  const scopeId = await store.find(scope);
  return scopeId !== null && (await store.findServed(scopeId, id)) !== null;
}

/** A scope's changes since the last commit. */
export function deltaOf(state: ScopeState): ScopeDelta {
  return { changes: state.drain(), whole: () => state.stored() };
}

/** Most open requests of a scope that are remembered, the newest; and most scopes. */
const MOST_OPEN = 100;
const MOST_OPEN_SCOPES = 10_000;

/** A scope's requests whose prompts the engine may still be computing: those of this process without a report. */
class OpenRequests {
  readonly #composedAt = new LruMap<RequestId, number>(MOST_OPEN);

  composed(id: RequestId, at: number): void {
    this.#composedAt.set(id, at);
  }

  ended(ids: readonly RequestId[]): void {
    for (const id of ids) this.#composedAt.delete(id);
  }

  /** When the oldest one since a time was composed; null: none. */
  since(since: number): number | null {
    for (const at of this.#composedAt.values()) if (at > since) return at;
    return null;
  }
}

interface Entry {
  readonly working: WorkingScope;
  weight: number;
}

/** The scopes in memory: loaded on first use, and dropped in LRU order while their total exceeds `maxBytes`. A single scope may exceed it. */
export class WorkingScopes {
  readonly #entries = new LruMap<string, Entry>();
  /** Kept beside the scopes, so that answers do not depend on which are in memory. */
  readonly #open = new LruMap<string, OpenRequests>(MOST_OPEN_SCOPES);
  #weight = 0;

  constructor(
    private readonly store: Store,
    private readonly countTokens: TokenCounter,
    private readonly maxBytes: number,
    private readonly scopeBounds: ScopeBounds,
    private readonly untrustedOrigins?: ReadonlySet<string>,
  ) {}

  get size(): number {
    return this.#entries.size;
  }

  get weight(): number {
    return this.#weight;
  }

  get nodes(): number {
    let sum = 0;
    for (const { working } of this.#entries.values()) sum += working.state.index.size;
    return sum;
  }

  /** Makes sure that a scope is stored. Gives the number of its user's row, as of when the scope was loaded. */
  async begin(scope: Scope, at: number): Promise<number> {
    const known = this.#entries.peek(scopeName(scope))?.working;
    return known?.version == null ? this.store.begin(scope, at) : known.userNumber;
  }

  /** Runs `work`, which may change a scope and commit once, from the user's queue. If it rejects, the scope is dropped: memory may be ahead. */
  async use<T>(scope: Scope, work: (working: WorkingScope) => T | Promise<T>): Promise<T> {
    const key = scopeName(scope);
    const known = this.#entries.get(key)?.working;
    try {
      return await this.store.hold(scope, knownScope(known), async (held) => {
        const working = held.newer === null && known !== undefined ? known : this.#place(scope, key, held);
        const result = await working.during(held, () => work(working));
        this.#settle(key, working);
        return result;
      });
    } catch (error) {
      this.#remove(key);
      throw error;
    }
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

  #place(scope: Scope, key: string, { newer, version, userNumber }: HeldScope): WorkingScope {
    const state = new ScopeState(newer as StoredScope, this.countTokens, this.scopeBounds, this.untrustedOrigins);
    const requests = keptIn(this.#open, key, () => new OpenRequests());
    const working = new WorkingScope(scope, state, version, userNumber, requests, this.store);
    this.#remove(key);
    this.#entries.set(key, { working, weight: 0 });
    return working;
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
      // The current scope stays, whatever its size.
      if (oldest === key) this.#entries.get(key);
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

/** A scope in memory as the store compares it; null: load it. */
function knownScope(working: WorkingScope | undefined) {
  if (working === undefined) return null;
  const { version, userNumber, state, isAsStored } = working;
  return version === null ? null : { version, userNumber, stored: isAsStored ? () => state.stored() : null };
}

/* Names of prompts in a cache that all users share. They are digests: a deleted user's prompts stay in the sums. */

/** One name for prompts that continue each other: a conversation's, or a user's single prompts. */
export function streamOf({ tenant, userId, agentId }: Scope, conversation: ConversationId | null): string {
  return digestOf(JSON.stringify([tenant, userId, agentId, "conversation", conversation]));
}

/** One name for a user's prompts with all agents. */
export function userOf({ tenant, userId }: Scope): string {
  return digestOf(JSON.stringify([tenant, userId, "user"]));
}

export function sentAs({ tenant, userId, agentId }: Scope, request: RequestId): CacheHandle {
  return digestOf(JSON.stringify([tenant, userId, agentId, "request", request])) as string as CacheHandle;
}
