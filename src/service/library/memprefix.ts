/* library: all that a tenant's users can request, in one object. Tenants share scopes and queues; closing finishes accepted requests first. */

import { setMaxListeners } from "node:events";
import {
  type AgentId,
  type CacheState,
  type CachingEngine,
  DEFAULT_SCOPE_BOUNDS,
  type EngineReport,
  EngineWork,
  planBatch,
  type RequestId,
  type RetrievedMemory,
  type UserId,
} from "../../core/index.js";
import { ObservedCache } from "../../engines/kv-events/observed-cache.js";
import { type MemorySource, MemorySourceError } from "../../memory/memory-source.js";
import { type ComposeAnswer, type Feedback, publicAnswer } from "../base/call-types.js";
import { NotFoundError } from "../base/errors.js";
import { DegradedParts, type MemprefixObserver, Observers } from "../base/memprefix-observer.js";
import {
  engineFamilyFor,
  engineModelFor,
  type MemprefixParts,
  type PlanBatch,
  type TenantParts,
} from "../base/memprefix-parts.js";
import { DEFAULT_TENANT, type Tenant } from "../base/tenant.js";
import type { BatchComposer } from "../batch/batch.js";
import type { ChatComposer } from "../chat/chat-request.js";
import { WriteCalls } from "../chat/write-calls.js";
import { type ComposeRequest, topKOf } from "../compose/compose-request.js";
import { type ComposerParts, PromptComposer } from "../compose/prompt-composer.js";
import { PromptRouting } from "../compose/prompt-routing.js";
import { hasEndedAt, searchOptionsOf } from "../compose/retrieval.js";
import type { MemoriesQuery } from "../fields/companion-options.js";
import { EngineLaw, TokenRatios } from "../learning/engine-measures.js";
import { EngineReports } from "../learning/engine-reports.js";
import { type Explanation, explainIn, type ShownPrompt, showIn } from "../records/explain.js";
import { MemoryAdditions } from "../records/memory-additions.js";
import { MemoryWriter } from "../records/memory-writer.js";
import { StoredResponses } from "../records/stored-responses.js";
import { UserRecords } from "../records/user-records.js";
import { finishingDeletions, watchedSource } from "../records/wrapped-sources.js";
import { TenantQueues, UserQueues } from "../scopes/user-queues.js";
import { isServed, type WorkingScope, WorkingScopes } from "../scopes/working-scopes.js";
import { TenantUsage } from "../usage/tenant-usage.js";

const MAX_WAITING_PER_USER = 64;

/** Every request in flight listens to its signal; Node warns of more than ten listeners. */
function abortedByMany(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

class SharedWork {
  readonly observers = new Observers();
  readonly queues = new UserQueues();
  readonly closing = abortedByMany();
  /** Bounded, because only the operator creates tenants. */
  readonly tenants = new Map<string, Memprefix>();
  readonly work = new EngineWork();
  readonly degraded: DegradedParts;
  readonly scopes: WorkingScopes;
  readonly source: MemorySource | null;
  /** Null: no source. */
  readonly writer: MemoryWriter | null;
  /** Null: exchanges that wait are not written by themselves. */
  stopWriting: (() => Promise<void>) | null = null;

  constructor(readonly parts: MemprefixParts) {
    const { store, source, countTokens, now } = parts;
    const { maxWorkingBytes = 128 * 1024 * 1024, scopeBounds = DEFAULT_SCOPE_BOUNDS, untrustedOrigins } = parts;
    this.degraded = new DegradedParts(this.observers, now);
    this.scopes = new WorkingScopes(store, countTokens, maxWorkingBytes, scopeBounds, untrustedOrigins);
    this.source = source && finishingDeletions(watchedSource(source, this.degraded), store);
    this.writer = this.source && new MemoryWriter(this.source, store, this.queues, this.closing.signal, now);
  }
}

/** The operations that belong to no tenant. */
export type MemprefixOfAll = Pick<
  Memprefix,
  | "dropUnused"
  | "dropFigures"
  | "finishDeletions"
  | "startWriting"
  | "forTenant"
  | "observe"
  | "sourceName"
  | "degraded"
  | "load"
  | "timeLaw"
  | "perHeldTokenMs"
  | "cachingEngine"
  | "cacheState"
  | "ping"
  | "close"
>;

/** Milliseconds since the epoch. Calls `Date.now` each time, because tests replace it. */
export const systemClock = (): number => Date.now();

/** The service for one tenant's users. One user's requests run in order of arrival; users do not wait for each other. Every answer is stored. */
export class Memprefix {
  readonly #jobs: TenantQueues;
  readonly #records: UserRecords;
  readonly #law: EngineLaw;
  readonly #composer: PromptComposer;
  readonly #additions: MemoryAdditions;
  readonly #reports: EngineReports;
  readonly batches: BatchComposer;
  readonly chats: ChatComposer;

  private readonly parts: TenantParts;
  readonly #shared: SharedWork;

  /** @param shared another tenant's state, to be one service with it */
  constructor(
    given: MemprefixParts,
    private readonly tenant: Tenant = DEFAULT_TENANT,
    shared = new SharedWork(given),
  ) {
    this.#shared = shared;
    shared.tenants.set(tenant.name, this);
    const { source, writer, scopes, queues, closing, observers: observer, work } = shared;
    const parts = { ...given, source, ...ofTenant(given) };
    this.parts = parts;
    const { store, countTokens, now, maxWaitingPerUser = MAX_WAITING_PER_USER, planning = planHere } = parts;
    const { workers = [] } = parts.defaults;
    const engineFamily = engineFamilyFor(parts.defaults, null);
    const jobs = new TenantQueues(tenant.name, queues, scopes, closing.signal, maxWaitingPerUser);
    const records = new UserRecords(parts, jobs, scopes);
    // Times reported by one tenant must not affect another's plans.
    const measured = tenant.name === DEFAULT_TENANT.name ? engineFamily : JSON.stringify([tenant.name, engineFamily]);
    const law = new EngineLaw(store, measured, (model) => engineModelFor(parts.defaults, model), now);
    const additions = new MemoryAdditions(source, writer, store, jobs, now);
    const ratios = new TokenRatios(now);
    const writes = new WriteCalls(parts, tenant, observer);
    const reports = new EngineReports(parts, jobs, scopes, law, ratios, work, observer);
    const routing = new PromptRouting(parts, jobs);
    const forgetGone: UserRecords["forgetGone"] = (...of) => records.forgetGone(...of);
    const onHistory: ComposerParts["onHistory"] = (...of) => writer?.seen(...of);
    const on = { parts, tenant, scopes, jobs, law, ratios, routing, observer, forgetGone, onHistory };
    const composer = new PromptComposer(on);
    this.batches = { composer, reports, routing, workers, countTokens, planning };
    this.chats = { countTokens, composer, reports, additions, responses: new StoredResponses(store, jobs), writes };
    this.#jobs = jobs;
    this.#records = records;
    this.#law = law;
    this.#additions = additions;
    this.#reports = reports;
    this.#composer = composer;
  }

  /** The same service for another tenant. */
  forTenant(tenant: Tenant): Memprefix {
    const { tenants, parts } = this.#shared;
    const known = tenants.get(tenant.name);
    return known?.tenant.cacheSecret === tenant.cacheSecret ? known : new Memprefix(parts, tenant, this.#shared);
  }

  /** The engine's cache, for all tenants; undefined: planned for as unbounded. */
  get cachingEngine(): CachingEngine | undefined {
    return this.parts.cachingEngine;
  }

  /** The engine's cache as this tenant's prompts find it; null: planned for as unbounded. */
  get cacheState(): CacheState | null {
    return this.parts.cache?.state ?? null;
  }

  /** Observes all tenants' events. @returns removes the observer */
  observe(observer: MemprefixObserver): () => void {
    return this.#shared.observers.add(observer);
  }

  get usage(): TenantUsage {
    const { store, now, defaults } = this.parts;
    return new TenantUsage(this.tenant.name, store.prompts, now, engineModelFor(defaults, null).cost.kind === "money");
  }

  /** Shows a prompt beside the one that it continued. Rejects with {@link NotFoundError}. */
  show(userId: UserId, agentId: AgentId | null, id: RequestId, hasText: boolean): Promise<ShownPrompt> {
    const { store, countTokens } = this.parts;
    return this.#ofStored(userId, agentId, id, (working) => showIn(working, store, id, { countTokens, hasText }));
  }

  get degraded(): DegradedParts {
    return this.#shared.degraded;
  }

  get sourceName(): string | null {
    return this.parts.source?.name ?? null;
  }

  async compose(request: ComposeRequest, signal?: AbortSignal): Promise<ComposeAnswer> {
    return publicAnswer(await this.#composer.compose({ request, signal }));
  }

  /** A user's memories at the source: the most relevant to a query, else all. Rejects with {@link MemorySourceError}. */
  async memories(given: MemoriesQuery, signal?: AbortSignal): Promise<readonly Pick<RetrievedMemory, "id" | "text">[]> {
    const { userId, agentId = null, query = null, topK = null } = given;
    const { source, defaults, now } = this.parts;
    const scope = this.#jobs.scopeOf(userId, agentId);
    const unsupported = (operation: string) =>
      new MemorySourceError(source?.name ?? "none", { kind: "unsupported", operation });
    if (source === null) throw unsupported("search memories");
    return this.#jobs.untilClosing(signal, async (stop) => {
      if (query !== null) {
        const options = searchOptionsOf(defaults, { search: null });
        const found = await source.search({ scope, query, topK: topKOf({ topK }, defaults), options }, stop);
        const hasEnded = hasEndedAt(now(), options.showExpired);
        return found.filter((memory) => !hasEnded(memory));
      }
      if (source.list === undefined) throw unsupported("list memories without a query");
      return (await source.list(scope, stop)).filter((kept) => kept.agentId === agentId);
    });
  }

  get load() {
    const { scopes, queues } = this.#shared;
    const { size, weight: bytes, nodes } = scopes;
    return { scopes: size, bytes, nodes, busyUsers: queues.busy, jobs: queues.jobs };
  }

  /** Milliseconds that each token of a prompt adds to its answer; 0 until measured. */
  get perHeldTokenMs(): number {
    return this.#law.modelFor(null).perHeldTokenMs ?? 0;
  }

  readonly addMemories: MemoryAdditions["add"] = (...of) => this.#additions.add(...of);
  readonly addGiven: MemoryAdditions["addGiven"] = (...of) => this.#additions.addGiven(...of);
  readonly evict: EngineReports["evict"] = (...of) => this.#reports.evict(...of);
  /** Null until enough times are reported, or if prompts cost money. */
  readonly timeLaw: EngineLaw["law"] = () => this.#law.law();
  readonly forgetMemory: UserRecords["forgetMemory"] = (...of) => this.#records.forgetMemory(...of);
  readonly forgetUser: UserRecords["forgetUser"] = (...of) => this.#records.forgetUser(...of);
  readonly finishDeletions: UserRecords["finishDeletions"] = (...of) => this.#records.finishDeletions(...of);
  readonly exportUser: UserRecords["exportUser"] = (...of) => this.#records.exportUser(...of);
  readonly takeMemoryEvent: UserRecords["takeMemoryEvent"] = (...of) => this.#records.takeMemoryEvent(...of);
  readonly dropUnused: UserRecords["dropUnused"] = (...of) => this.#records.dropUnused(...of);
  readonly dropFigures: UserRecords["dropFigures"] = (...of) => this.#records.dropFigures(...of);

  feedback(
    userId: UserId,
    agentId: AgentId | null,
    id: RequestId,
    observation: EngineReport,
    model: string | null = null,
  ): Promise<Feedback> {
    return this.#reports.feedback(userId, agentId, id, observation, undefined, model);
  }

  /** Explains a prompt's misses, and which earlier prompt it continued. Rejects with {@link NotFoundError}. */
  explain(userId: UserId, agentId: AgentId | null, id: RequestId): Promise<Explanation> {
    return this.#ofStored(userId, agentId, id, (working) => explainIn(working, this.parts.store, id));
  }

  async #ofStored<T>(
    userId: UserId,
    agentId: AgentId | null,
    id: RequestId,
    read: (working: WorkingScope) => Promise<T>,
  ): Promise<T> {
    // A scope that was never stored is not loaded.
    if (!(await isServed(this.parts.store, this.#jobs.scopeOf(userId, agentId), id)))
      throw new NotFoundError("request_id", "no such request of this user");
    return this.#jobs.inScope({ userId, agentId }, read);
  }

  /** Rejects if the store does not answer. */
  ping(): Promise<void> {
    return this.parts.store.ping();
  }

  /** Gives the source what waits for it, of earlier processes too, until the service is closed. */
  startWriting(onFault: (error: unknown) => void): void {
    this.#shared.stopWriting ??= this.#shared.writer?.start(onFault) ?? null;
  }

  /** Finishes accepted requests and waiting exchanges, then closes source and store. After `graceMs`, requests continue without waiting for the source. */
  async close(graceMs = 5_000): Promise<void> {
    const cut = setTimeout(() => this.#shared.closing.abort(), graceMs);
    await this.#shared.queues.idle();
    await this.#shared.stopWriting?.();
    clearTimeout(cut);
    await this.parts.source?.close();
    await this.parts.store.close();
  }
}

const planHere: PlanBatch = async (...batch) => planBatch(...batch);

/** The engine's cache as one tenant's prompts find it, and what it leaves of a user's. */
function ofTenant({ cachingEngine, residency }: MemprefixParts): Pick<TenantParts, "cache" | "residency"> {
  if (cachingEngine === undefined) return residency === undefined ? {} : { residency };
  const cache = new ObservedCache(cachingEngine, residency);
  return { cache, residency: cache.residency };
}
