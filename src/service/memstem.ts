import { setImmediate as setImmediateAsync, setTimeout as setTimeoutAsync } from "node:timers/promises";
import { SpanStatusCode } from "@opentelemetry/api";
import {
  type AgentId,
  DEFAULT_SCOPE_BOUNDS,
  type Digest,
  groupBy,
  KEEPS_ALL,
  type Label,
  MAX_MEMORY_CHARACTERS,
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
import type { Observation, ScopesFound } from "../store/store.js";
import type { Eviction, Feedback, Forgetting, IndexDescription } from "./answers.js";
import type { Planning } from "./batch-planning.js";
import type { WorkerMemory } from "./batch-routing.js";
import type { ComposeAnswer } from "./compose-answer.js";
import type { ComposeRequest } from "./compose-request.js";
import { type ColdHead, coldHeadIn, composeIn, type FoundCompose } from "./composing.js";
import { EngineLaw } from "./engine-law.js";
import { AbandonedRequestError, BusyUserError, NotFoundError } from "./errors.js";
import { evictIn } from "./evicting.js";
import { expireIn } from "./expiring.js";
import { type ExplainedRequest, explainIn } from "./explain.js";
import { exportUser, type UserExport } from "./exporting.js";
import { reportIn } from "./feedback.js";
import { forgetIn } from "./forgetting.js";
import { linkedSignal } from "./linked-signal.js";
import { type MemoryEvent, updateIn } from "./memory-events.js";
import { type LookupParts, lookUpMemories, type MemoryLookup } from "./memory-lookup.js";
import type { MemstemObserver, MemstemParts } from "./memstem-parts.js";
import { inSpan } from "./spans.js";
import { DEFAULT_TENANT, type Tenant } from "./tenant.js";
import { UserQueues } from "./user-queues.js";
import { whileBusy } from "./while-busy.js";
import { WorkingScopes } from "./working-scopes.js";

/** Live requests listed with an index; older ones are left out. */
const MAX_LISTED_REQUESTS = 10_000;

/** Milliseconds between two users while what nobody used is dropped. */
const PAUSE_BETWEEN_USERS_MS = 2;

/** A job's result, and when what it committed is stored. */
interface Committed<T> {
  readonly result: T;
  readonly settled: Promise<void>;
}

/** Requests of one user that may wait for each other where nothing else is configured. */
const MAX_WAITING_PER_USER = 256;

/** What all tenants of a service have in common. */
interface SharedWork {
  readonly scopes: WorkingScopes;
  readonly queues: UserQueues;
  readonly closing: AbortController;
  /** One for each tenant that was asked for; tenants are the operator's to make, so they are few. */
  readonly tenants: Map<string, Memstem>;
  observer: MemstemObserver | null;
}

/** How much a service has to do with. */
export interface Load {
  /** In memory, and the bytes they take, estimated. */
  readonly scopes: number;
  readonly bytes: number;
  /** Users with something to be done, and how much that is. */
  readonly busyUsers: number;
  readonly jobs: number;
}

/** What can be had without being a tenant. */
export type MemstemOfAll = Pick<
  Memstem,
  "dropUnused" | "forTenant" | "observe" | "sourceName" | "load" | "timeLaw" | "ping" | "close"
>;

/**
 * Composes prompts for the users of one tenant: search, plan, commit, answer. What one user asks for is done in the order it came; users
 * do not wait for each other. Everything that was answered is in the store.
 */
export class Memstem {
  readonly #shared: SharedWork;
  readonly #scopes: WorkingScopes;
  readonly #queues: UserQueues;
  readonly #law: EngineLaw;
  readonly #lookup: LookupParts;

  /** @param shared another tenant's, to be one service with it */
  constructor(
    private readonly parts: MemstemParts,
    private readonly tenant: Tenant = DEFAULT_TENANT,
    shared?: SharedWork,
  ) {
    const { store, countTokens, maxWorkingBytes = 128 * 1024 * 1024, scopeBounds = DEFAULT_SCOPE_BOUNDS } = parts;
    this.#lookup = { source: parts.source, maxMemoryCharacters: parts.maxMemoryCharacters ?? MAX_MEMORY_CHARACTERS };
    this.#shared = shared ?? {
      scopes: new WorkingScopes(store, countTokens, maxWorkingBytes, scopeBounds),
      queues: new UserQueues(),
      closing: new AbortController(),
      tenants: new Map([[tenant.name, this]]),
      observer: null,
    };
    this.#scopes = this.#shared.scopes;
    this.#queues = this.#shared.queues;
    // What one tenant reports of its times must not change how another's prompts are planned.
    const { engine, engineFamily } = parts.defaults;
    const measured = tenant.name === DEFAULT_TENANT.name ? engineFamily : JSON.stringify([tenant.name, engineFamily]);
    this.#law = new EngineLaw(store, measured, engine);
  }

  /** The same service for another tenant: what it does is that tenant's alone. */
  forTenant(tenant: Tenant): Memstem {
    const { tenants } = this.#shared;
    const known = tenants.get(tenant.name);
    if (known?.tenant.cacheSecret === tenant.cacheSecret) return known;
    const memstem = new Memstem(this.parts, tenant, this.#shared);
    tenants.set(tenant.name, memstem);
    return memstem;
  }

  /** From now on tells this observer of what all tenants do, and no other. */
  observe(observer: MemstemObserver): void {
    this.#shared.observer = observer;
  }

  /** Name of the configured memory source; null for none. */
  get sourceName(): string | null {
    return this.parts.source?.name ?? null;
  }

  /**
   * Composes a prompt. Rejects with {@link BusyUserError} where too many of the user's requests wait already, and where the store does; a
   * memory source that fails makes a warning. `signal`: the caller is gone. What it waited for then is not composed (nobody saw it, and it
   * would stand in the conversation): {@link AbandonedRequestError}. `whileSearching` is called before memories are searched for, where
   * much of what the prompt begins with should be cold; what it returns, when the search has ended, and is waited for.
   */
  async compose(
    request: ComposeRequest,
    signal?: AbortSignal,
    whileSearching?: (head: ColdHead) => () => Promise<void>,
  ): Promise<ComposeAnswer> {
    const scope = this.#scopeOf(request.userId, request.agentId);
    const { tenant } = this;
    this.#refuseIfBusy(request.userId);
    const compose = async () => {
      if (signal?.aborted) throw new AbandonedRequestError();
      if (this.#isAnswered(scope, request))
        return this.#composeIn(scope, { request, lookup: { found: [] }, order: null, tenant });
      const isSearched = request.memories === null && this.parts.source !== null;
      const head =
        isSearched && whileSearching !== undefined
          ? this.#scopes.use(scope, (working) => coldHeadIn(working, scope, request, tenant, this.parts))
          : null;
      const ended = head === null ? undefined : whileSearching?.(head);
      const lookup = await this.#lookUp(scope, request, signal);
      await ended?.();
      if (signal?.aborted) throw new AbandonedRequestError();
      return this.#composeIn(scope, { request, lookup, order: null, tenant });
    };
    const attributes = { "memstem.layout": request.conversationId === null ? "single" : "conversation" };
    return inSpan("memstem.compose", attributes, async (span) => {
      const answer = await this.#stored(request.userId, compose);
      const { policy, retention, totalTokens, expectedCachedTokens } = answer.plan;
      span.setAttributes({
        "memstem.policy": policy,
        "memstem.retention": retention,
        "memstem.prompt_tokens": totalTokens,
        "memstem.expected_cached_tokens": expectedCachedTokens,
      });
      return answer;
    });
  }

  /** How much it has to do with now. */
  get load(): Load {
    const { size: scopes, weight: bytes } = this.#scopes;
    return { scopes, bytes, busyUsers: this.#queues.busy, jobs: this.#queues.jobs };
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
      this.#scopes.use(this.#scopeOf(scope.userId, scope.agentId), ({ state }) =>
        [...state.workers.of(worker)].flatMap((label) => state.register.get(label)?.textDigest ?? []),
      ),
    remember: (of, worker, texts) => {
      const scope = this.#scopeOf(of.userId, of.agentId);
      return whileBusy(() =>
        this.#scopes.use(scope, (working) => {
          // A user that was forgotten since is not to come back.
          if (working.version === null) return;
          working.state.rememberWorker(worker, texts);
          working.version = this.parts.store.commitChanges(scope, working.version, working.state.drain());
        }),
      );
    },
  };

  /** The memories for a request of a batch. Never rejects for a source that fails. */
  lookUp(request: ComposeRequest, signal?: AbortSignal): Promise<MemoryLookup> {
    const scope = this.#scopeOf(request.userId, request.agentId);
    if (this.#isAnswered(scope, request)) return Promise.resolve({ found: [] });
    return this.#lookUp(scope, request, signal);
  }

  /** Composes a request of a batch, whose memories are at hand and whose blocks' order is planned. */
  composeFound(
    request: ComposeRequest,
    lookup: MemoryLookup,
    order: readonly Digest[],
    signal?: AbortSignal,
  ): Promise<ComposeAnswer> {
    const scope = this.#scopeOf(request.userId, request.agentId);
    return this.#stored(request.userId, () => {
      if (signal?.aborted) throw new AbandonedRequestError();
      return this.#composeIn(scope, { request, lookup, order, tenant: this.tenant });
    });
  }

  /** Adds memories to the source. Rejects with {@link MemorySourceError}, or {@link BusyUserError} like `compose`. */
  async addMemories(
    userId: UserId,
    agentId: AgentId | null,
    memories: readonly NewMemory[],
    signal?: AbortSignal,
  ): Promise<readonly RetrievedMemory[]> {
    const { source } = this.parts;
    if (source === null) throw new MemorySourceError("none", { kind: "unsupported", operation: "add memories" });
    this.#refuseIfBusy(userId);
    const add = (stop: AbortSignal) => source.add(this.#scopeOf(userId, agentId), memories, stop);
    return this.#run(userId, () => this.#untilClosing(signal, add));
  }

  /**
   * The engine dropped these requests' cache: what only they had is no longer expected to hit. `of`: one user's alone; an engine that names
   * requests knows no users, so by default all the tenant's of that name.
   */
  async evict(ids: readonly RequestId[], of?: UserId): Promise<Eviction> {
    const named = this.parts.store
      .findLiveRequests(this.tenant.name, [...new Set(ids)])
      .filter(({ scope }) => of === undefined || scope.userId === of);
    const evicted = new Set<RequestId>();
    // Side by side: one that waits for its user's search does not hold up the others.
    const ofUsers = [...groupBy(named, ({ scope }) => scope.userId)].map(([userId, ofUser]) =>
      this.#run(userId, async () => {
        for (const [agentId, ofScope] of groupBy(ofUser, ({ scope }) => scope.agentId)) {
          const names = ofScope.map(({ requestId }) => requestId);
          const scope = this.#scopeOf(userId, agentId);
          const gone = await whileBusy(() =>
            this.#scopes.use(scope, (working) => evictIn(working, this.parts.store, scope, names)),
          );
          for (const name of gone) evicted.add(name);
        }
      }),
    );
    await Promise.all(ofUsers);
    return { evicted: [...evicted], unknown: [...new Set(ids)].filter((id) => !evicted.has(id)) };
  }

  /**
   * Keeps what the engine reported of a request, and corrects by it what should be cached: the first time that it says how much was.
   * Rejects with {@link NotFoundError}.
   */
  feedback(userId: UserId, agentId: AgentId | null, id: RequestId, observation: Observation): Promise<Feedback> {
    const scope = this.#scopeOf(userId, agentId);
    const { store, now, residency = KEEPS_ALL } = this.parts;
    return this.#stored(userId, async () => {
      const before = store.findServed(scope, id);
      if (before === null) throw new NotFoundError("request_id", "no such request of this user");
      const feedback = await whileBusy(() =>
        this.#committed(
          this.#scopes.use(scope, (working) => reportIn(working, store, scope, { id, observation }, residency, now())),
        ),
      );
      this.#shared.observer?.reported(feedback.result);
      if (before.observed?.ttftMs === undefined) {
        await whileBusy(() => this.#law.take({ ...before.observed, ...observation }));
      }
      return feedback;
    });
  }

  /** Says why a prompt hit as far as it did. Throws {@link NotFoundError}. */
  explain(userId: UserId, agentId: AgentId | null, id: RequestId): ExplainedRequest {
    const scope = this.#scopeOf(userId, agentId);
    const { store, defaults, residency = KEEPS_ALL, countTokens } = this.parts;
    // A scope that was never stored is not worth loading.
    if (store.findServed(scope, id) === null) throw new NotFoundError("request_id", "no such request of this user");
    return this.#scopes.use(scope, (working) =>
      explainIn(working, store, scope, id, { engine: defaults.engine, residency, countTokens }),
    );
  }

  /** Describes a user's context index; an empty one for a user that was never seen. */
  describeIndex(userId: UserId, agentId: AgentId | null, limit: number): IndexDescription {
    const scope = this.#scopeOf(userId, agentId);
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
  async forgetMemory(userId: UserId, memoryId: MemoryId): Promise<Forgetting> {
    const forgetting = await this.#run(userId, async () => {
      const scopes = this.parts.store.scopesOf(this.tenant.name, userId);
      const own = this.#scopeOf(userId, null);
      const labels = new Set<Label>();
      for (const scope of scopes.some(({ agentId }) => agentId === null) ? scopes : [...scopes, own]) {
        const { store, now } = this.parts;
        const gone = await whileBusy(() =>
          this.#scopes.use(scope, (working) => forgetIn(working, store, scope, memoryId, now())),
        );
        for (const label of gone) labels.add(label);
      }
      // An agent's scope that was looked at but never stored would else go on without knowing.
      this.#scopes.dropUser(this.tenant.name, userId);
      const { source } = this.parts;
      const deletedFromSource = source?.owned ? await source.delete(own, memoryId, this.#shared.closing.signal) : null;
      return { memoryId, labels: [...labels], deletedFromSource };
    });
    await this.parts.store.erased();
    return forgetting;
  }

  /** Forgets a user with everything memstem keeps of them, with every agent. */
  async forgetUser(userId: UserId): Promise<{ readonly userId: UserId; readonly scopes: number }> {
    const forgotten = await this.#run(userId, async () => {
      const scopes = await whileBusy(() => {
        const deleted = this.parts.store.deleteUser(this.tenant.name, userId);
        this.#scopes.dropUser(this.tenant.name, userId);
        return deleted;
      });
      if (this.parts.source?.owned)
        await this.parts.source.deleteUser({ tenant: this.tenant.name, userId }, this.#shared.closing.signal);
      return { userId, scopes };
    });
    await this.parts.store.erased();
    return forgotten;
  }

  /** Everything held on a user, with every agent. Rejects with {@link MemorySourceError} where the source that memstem keeps fails. */
  exportUser(userId: UserId, signal?: AbortSignal): Promise<UserExport> {
    const { store, source } = this.parts;
    this.#refuseIfBusy(userId);
    return this.#run(userId, async () => {
      await store.settled;
      return this.#untilClosing(signal, (stop) => exportUser(store, source, this.tenant.name, userId, stop));
    });
  }

  /**
   * The owner of a memory says what happened to it: a deleted one is forgotten for every user of the tenant that has it, and an updated one
   * has its new text. Looks through all users' memories, while others have their turn. Gives the number of users that it changed something
   * for.
   */
  async takeMemoryEvent(event: MemoryEvent, signal: AbortSignal): Promise<number> {
    const { store, maxMemoryCharacters = MAX_MEMORY_CHARACTERS } = this.parts;
    const changed = new Set<UserId>();
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      const found: ScopesFound = store.scopesWithMemory(this.tenant.name, event.memoryId, after);
      for (const scope of found.scopes) {
        if (event.kind === "updated") {
          const isChanged = await this.#run(scope.userId, () =>
            whileBusy(() =>
              this.#scopes.use(scope, (working) => updateIn(working, store, scope, event, maxMemoryCharacters)),
            ),
          );
          if (isChanged) changed.add(scope.userId);
        } else if (!changed.has(scope.userId)) {
          await this.forgetMemory(scope.userId, event.memoryId);
          changed.add(scope.userId);
        }
      }
      after = found.next;
      await setImmediateAsync();
    }
    return changed.size;
  }

  /**
   * Drops what nobody used since a time (milliseconds since the epoch), of every tenant's users, one after the other, each in its turn.
   * Gives the number of turns that went.
   */
  async dropUnused(before: number, signal: AbortSignal): Promise<number> {
    const { store } = this.parts;
    let dropped = 0;
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      const found: ScopesFound = store.scopesWithOldTurns(before, after);
      for (const scope of found.scopes) {
        if (signal.aborted) break;
        dropped += await this.#queues.run(queueOf(scope), () =>
          whileBusy(() => {
            const gone = this.#scopes.use(scope, (working) => expireIn(working, store, scope, before));
            // The scope itself may have gone.
            if (gone > 0) this.#scopes.drop(scope);
            return gone;
          }),
        );
        // As long as a compose takes or two: others come first.
        await setTimeoutAsync(PAUSE_BETWEEN_USERS_MS);
      }
      after = found.next;
      await setImmediateAsync();
    }
    if (dropped > 0) store.emptyLog();
    await store.erased();
    return dropped;
  }

  /** Throws where the store does not answer. */
  ping(): void {
    this.parts.store.ping();
  }

  /** Finishes what was accepted; what still waits for the source after `graceMs` goes on without it. Then closes source and store. */
  async close(graceMs = 5_000): Promise<void> {
    const cut = setTimeout(() => this.#shared.closing.abort(), graceMs);
    await this.#queues.idle();
    clearTimeout(cut);
    await this.parts.source?.close();
    this.parts.store.close();
  }

  /** Does a user's job in its turn. It is done, and the next one's turn comes, when all that it committed is stored. */
  #stored<T>(userId: UserId, job: () => Committed<T> | Promise<Committed<T>>): Promise<T> {
    return this.#run(userId, async () => {
      const { result, settled } = await job();
      try {
        await inSpan("memstem.commit", {}, () => settled);
      } catch (error) {
        // Memory holds what the database does not.
        this.#scopes.clear();
        throw error;
      }
      return result;
    });
  }

  /** To be called in one go with the commit, so that it is that commit's end which is waited for. */
  #committed<T>(result: T): Committed<T> {
    const { settled } = this.parts.store;
    // Who waits for it is told, be it later or, because something else failed, never.
    settled.catch(() => {});
    return { result, settled };
  }

  #isAnswered(scope: Scope, request: ComposeRequest): boolean {
    return request.requestId !== null && this.parts.store.findRequest(scope, request.requestId) !== null;
  }

  async #composeIn(scope: Scope, asked: FoundCompose): Promise<Committed<ComposeAnswer>> {
    const { result, settled } = await whileBusy(() =>
      this.#committed(
        this.#scopes.use(scope, (working) => composeIn(working, scope, asked, this.parts, this.#law.model)),
      ),
    );
    if (!result.isRepeated) this.#shared.observer?.composed(result.answer);
    return { result: result.answer, settled };
  }

  #lookUp(scope: Scope, request: ComposeRequest, signal?: AbortSignal): Promise<MemoryLookup> {
    const lookUp = () => this.#untilClosing(signal, (stop) => lookUpMemories(this.#lookup, scope, request, stop));
    const { source } = this.#lookup;
    if (source === null || request.memories !== null) return lookUp();
    return inSpan("memstem.search", { "memstem.source": source.name, "memstem.top_k": request.topK }, async (span) => {
      const lookup = await lookUp();
      span.setAttribute("memstem.found", "found" in lookup ? lookup.found.length : 0);
      if ("failed" in lookup) span.setStatus({ code: SpanStatusCode.ERROR, message: lookup.failed.failure.kind });
      return lookup;
    });
  }

  /** Does what a caller's signal ends, or the service's own end. */
  async #untilClosing<T>(signal: AbortSignal | undefined, work: (stop: AbortSignal) => Promise<T>): Promise<T> {
    const closing = this.#shared.closing.signal;
    if (signal === undefined) return await work(closing);
    const either = linkedSignal(closing, signal);
    return await work(either.signal).finally(either.release);
  }

  #scopeOf(userId: UserId, agentId: AgentId | null): Scope {
    return { tenant: this.tenant.name, userId, agentId };
  }

  #run<T>(userId: UserId, job: () => T | Promise<T>): Promise<T> {
    return this.#queues.run(this.#queueOf(userId), job);
  }

  #refuseIfBusy(userId: UserId): void {
    const { maxWaitingPerUser = MAX_WAITING_PER_USER } = this.parts;
    if (this.#queues.waiting(this.#queueOf(userId)) >= maxWaitingPerUser) throw new BusyUserError(maxWaitingPerUser);
  }

  #queueOf(userId: UserId): string {
    return queueOf({ tenant: this.tenant.name, userId });
  }
}

/** What is one user's is done one after the other, whatever the agent. */
function queueOf({ tenant, userId }: Pick<Scope, "tenant" | "userId">): string {
  return JSON.stringify([tenant, userId]);
}
