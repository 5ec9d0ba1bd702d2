import {
  type AgentId,
  DEFAULT_SCOPE_BOUNDS,
  type Digest,
  groupBy,
  KEEPS_ALL,
  type Label,
  type MemoryId,
  planBatch,
  type RequestId,
  type RetrievedMemory,
  type Scope,
  type TimeLaw,
  type TokenCounter,
  type UserId,
} from "../core/index.js";
import type { NewMemory } from "../memory/memory-source.js";
import { MemorySourceError } from "../memory/memory-source.js";
import type { Observation } from "../store/store.js";
import type { Eviction, Feedback, Forgetting, IndexDescription } from "./answers.js";
import type { Planning } from "./batch-planning.js";
import type { WorkerMemory } from "./batch-routing.js";
import type { ComposeAnswer } from "./compose-answer.js";
import type { ComposeRequest } from "./compose-request.js";
import { type ColdHead, coldHeadIn, composeIn, type FoundCompose } from "./composing.js";
import { EngineLaw } from "./engine-law.js";
import { NotFoundError } from "./errors.js";
import { evictIn } from "./evicting.js";
import { type ExplainedRequest, explainIn } from "./explain.js";
import { reportIn } from "./feedback.js";
import { forgetIn } from "./forgetting.js";
import { lookUpMemories, type MemoryLookup } from "./memory-lookup.js";
import type { MemstemObserver, MemstemParts } from "./memstem-parts.js";
import { UserQueues } from "./user-queues.js";
import { WorkingScopes } from "./working-scopes.js";

/** Tenants come with API keys; until then there is one. */
const TENANT = "default";

/** Live requests listed with an index; older ones are left out. */
const MAX_LISTED_REQUESTS = 10_000;

/**
 * Composes prompts for users: search, plan, commit, answer. What one user asks for is done in the order it came; users do not wait for
 * each other. Everything that was answered is in the store.
 */
export class Memstem {
  readonly #scopes: WorkingScopes;
  readonly #queues = new UserQueues();
  readonly #law: EngineLaw;
  readonly #closing = new AbortController();
  #observer: MemstemObserver | null = null;

  constructor(private readonly parts: MemstemParts) {
    const { store, countTokens, maxWorkingBytes = 256 * 1024 * 1024, scopeBounds = DEFAULT_SCOPE_BOUNDS } = parts;
    this.#law = new EngineLaw(store, parts.defaults.engineFamily, parts.defaults.engine);
    this.#scopes = new WorkingScopes(store, countTokens, maxWorkingBytes, scopeBounds);
  }

  /** From now on tells this observer, and no other. */
  observe(observer: MemstemObserver): void {
    this.#observer = observer;
  }

  /** Name of the configured memory source; null for none. */
  get sourceName(): string | null {
    return this.parts.source?.name ?? null;
  }

  /**
   * Composes a prompt. Rejects only where the store does; a memory source that fails makes a warning. `whileSearching` is called before
   * memories are searched for, where much of what the prompt begins with should be cold; what it returns, when the search has ended,
   * and is waited for.
   */
  compose(
    request: ComposeRequest,
    signal?: AbortSignal,
    whileSearching?: (head: ColdHead) => () => Promise<void>,
  ): Promise<ComposeAnswer> {
    const scope = scopeOf(request.userId, request.agentId);
    return this.#queues.run(request.userId, async () => {
      if (this.#isAnswered(scope, request))
        return this.#composeIn(scope, { request, lookup: { found: [] }, order: null });
      const isSearched = request.memories === null && this.parts.source !== null;
      const head =
        isSearched && whileSearching !== undefined
          ? this.#scopes.use(scope, (working) => coldHeadIn(working, scope, request, this.parts))
          : null;
      const ended = head === null ? undefined : whileSearching?.(head);
      const lookup = await lookUpMemories(this.parts.source, scope, request, this.#signal(signal));
      await ended?.();
      return this.#composeIn(scope, { request, lookup, order: null });
    });
  }

  /** How much it has to do with now. */
  get load(): { readonly scopes: number; readonly bytes: number; readonly busyUsers: number } {
    return { scopes: this.#scopes.size, bytes: this.#scopes.weight, busyUsers: this.#queues.busy };
  }

  /** The engine's time law as it was measured; null until enough was reported, or where prompts cost money. */
  get timeLaw(): TimeLaw | null {
    return this.#law.law;
  }

  get countTokens(): TokenCounter {
    return this.parts.countTokens;
  }

  get planning(): Planning {
    return this.parts.planning ?? (async (requests) => planBatch(requests));
  }

  /** Which workers of batches processed what, by scope. */
  readonly workers: WorkerMemory = {
    processedBy: (scope, worker) =>
      this.#scopes.use(scopeOf(scope.userId, scope.agentId), ({ state }) =>
        [...state.workers.of(worker)].flatMap((label) => state.register.get(label)?.textDigest ?? []),
      ),
    remember: (of, worker, texts) => {
      const scope = scopeOf(of.userId, of.agentId);
      this.#scopes.use(scope, (working) => {
        working.state.rememberWorker(worker, texts);
        working.version = this.parts.store.commitChanges(scope, working.version, working.state.drain());
      });
    },
  };

  /** The memories for a request of a batch. Never rejects for a source that fails. */
  lookUp(request: ComposeRequest, signal?: AbortSignal): Promise<MemoryLookup> {
    const scope = scopeOf(request.userId, request.agentId);
    if (this.#isAnswered(scope, request)) return Promise.resolve({ found: [] });
    return lookUpMemories(this.parts.source, scope, request, this.#signal(signal));
  }

  /** Composes a request of a batch, whose memories are at hand and whose blocks' order is planned. */
  composeFound(request: ComposeRequest, lookup: MemoryLookup, order: readonly Digest[]): Promise<ComposeAnswer> {
    const scope = scopeOf(request.userId, request.agentId);
    return this.#queues.run(request.userId, () => this.#composeIn(scope, { request, lookup, order }));
  }

  /** Adds memories to the source. Rejects with {@link MemorySourceError}. */
  addMemories(
    userId: UserId,
    agentId: AgentId | null,
    memories: readonly NewMemory[],
    signal?: AbortSignal,
  ): Promise<readonly RetrievedMemory[]> {
    const { source } = this.parts;
    if (source === null) {
      return Promise.reject(new MemorySourceError("none", { kind: "unsupported", operation: "add memories" }));
    }
    return this.#queues.run(userId, () => source.add(scopeOf(userId, agentId), memories, this.#signal(signal)));
  }

  /**
   * The engine dropped these requests' cache: what only they had is no longer expected to hit. `of`: one user's alone; an engine that names
   * requests knows no users, so by default everybody's of that name.
   */
  async evict(ids: readonly RequestId[], of?: UserId): Promise<Eviction> {
    const named = this.parts.store
      .findLiveRequests(TENANT, [...new Set(ids)])
      .filter(({ scope }) => of === undefined || scope.userId === of);
    const evicted = new Set<RequestId>();
    for (const [userId, ofUser] of groupBy(named, ({ scope }) => scope.userId)) {
      await this.#queues.run(userId, () => {
        for (const [agentId, ofScope] of groupBy(ofUser, ({ scope }) => scope.agentId)) {
          const names = ofScope.map(({ requestId }) => requestId);
          const scope = scopeOf(userId, agentId);
          const gone = this.#scopes.use(scope, (working) => evictIn(working, this.parts.store, scope, names));
          for (const name of gone) evicted.add(name);
        }
      });
    }
    return { evicted: [...evicted], unknown: [...new Set(ids)].filter((id) => !evicted.has(id)) };
  }

  /**
   * Keeps what the engine reported of a request, and corrects by it what should be cached: the first time that it says how much was.
   * Rejects with {@link NotFoundError}.
   */
  feedback(userId: UserId, agentId: AgentId | null, id: RequestId, observation: Observation): Promise<Feedback> {
    const scope = scopeOf(userId, agentId);
    const { store, now, residency = KEEPS_ALL } = this.parts;
    return this.#queues.run(userId, () => {
      const before = store.findServed(scope, id);
      if (before === null) throw new NotFoundError("request_id", "no such request of this user");
      const feedback = this.#scopes.use(scope, (working) =>
        reportIn(working, store, scope, { id, observation }, residency, now()),
      );
      this.#observer?.reported(feedback);
      if (before.observed?.ttftMs === undefined) this.#law.take({ ...before.observed, ...observation });
      return feedback;
    });
  }

  /** Says why a prompt hit as far as it did. Throws {@link NotFoundError}. */
  explain(userId: UserId, agentId: AgentId | null, id: RequestId): ExplainedRequest {
    const scope = scopeOf(userId, agentId);
    const { store, defaults, residency = KEEPS_ALL, countTokens } = this.parts;
    // A scope that was never stored is not worth loading.
    if (store.findServed(scope, id) === null) throw new NotFoundError("request_id", "no such request of this user");
    return this.#scopes.use(scope, (working) =>
      explainIn(working, store, scope, id, { engine: defaults.engine, residency, countTokens }),
    );
  }

  /** Describes a user's context index; an empty one for a user that was never seen. */
  describeIndex(userId: UserId, agentId: AgentId | null, limit: number): IndexDescription {
    const scope = scopeOf(userId, agentId);
    return this.#scopes.use(scope, ({ state }) => {
      const live = groupBy(this.parts.store.liveRequests(scope, MAX_LISTED_REQUESTS), ({ leaf }) => leaf);
      const nodes = state.index.entries(limit).map((entry) => ({
        ...entry,
        requestIds: (live.get(entry.id) ?? []).map(({ requestId }) => requestId),
      }));
      const counts = { ...this.parts.store.counts(scope), blocks: state.register.size, nodes: state.index.size };
      return { userId, agentId, counts, nodes };
    });
  }

  /**
   * Forgets a memory of a user for good, with every agent: its text is gone from everything memstem keeps, replay included, and its id is
   * never sent again. Rejects with {@link MemorySourceError} where the source that memstem keeps fails; what it has done by then stays.
   */
  forgetMemory(userId: UserId, memoryId: MemoryId): Promise<Forgetting> {
    return this.#queues.run(userId, async () => {
      const scopes = this.parts.store.scopesOf(TENANT, userId);
      const own = scopeOf(userId, null);
      const labels = new Set<Label>();
      for (const scope of scopes.some(({ agentId }) => agentId === null) ? scopes : [...scopes, own]) {
        const { store, now } = this.parts;
        const gone = this.#scopes.use(scope, (working) => forgetIn(working, store, scope, memoryId, now()));
        for (const label of gone) labels.add(label);
      }
      // An agent's scope that was looked at but never stored would else go on without knowing.
      this.#scopes.dropUser(TENANT, userId);
      const { source } = this.parts;
      const deletedFromSource = source?.owned ? await source.delete(own, memoryId, this.#signal()) : null;
      return { memoryId, labels: [...labels], deletedFromSource };
    });
  }

  /** Forgets a user with everything memstem keeps of them, with every agent. */
  forgetUser(userId: UserId): Promise<{ readonly userId: UserId; readonly scopes: number }> {
    return this.#queues.run(userId, async () => {
      this.#scopes.dropUser(TENANT, userId);
      const scopes = this.parts.store.deleteUser(TENANT, userId);
      if (this.parts.source?.owned) await this.parts.source.deleteUser({ tenant: TENANT, userId }, this.#signal());
      return { userId, scopes };
    });
  }

  /** Throws where the store does not answer. */
  ping(): void {
    this.parts.store.ping();
  }

  /** Finishes what was accepted; what still waits for the source after `graceMs` goes on without it. Then closes source and store. */
  async close(graceMs = 5_000): Promise<void> {
    const cut = setTimeout(() => this.#closing.abort(), graceMs);
    await this.#queues.idle();
    clearTimeout(cut);
    await this.parts.source?.close();
    this.parts.store.close();
  }

  #isAnswered(scope: Scope, request: ComposeRequest): boolean {
    return request.requestId !== null && this.parts.store.findRequest(scope, request.requestId) !== null;
  }

  #composeIn(scope: Scope, asked: FoundCompose): ComposeAnswer {
    const outcome = this.#scopes.use(scope, (working) => composeIn(working, scope, asked, this.parts, this.#law.model));
    if (!outcome.isRepeated) this.#observer?.composed(outcome.answer);
    return outcome.answer;
  }

  #signal(signal?: AbortSignal): AbortSignal {
    return signal === undefined ? this.#closing.signal : AbortSignal.any([this.#closing.signal, signal]);
  }
}

function scopeOf(userId: UserId, agentId: AgentId | null): Scope {
  return { tenant: TENANT, userId, agentId };
}
