/*
 * library: one object for everything that a tenant's users can ask of the service; routes, the command line and the library call it.
 * Enters: a store, a memory source, engine adapters and settings; then requests of users, by tenant. Leaves: answers of the folders
 * below: composed prompts, forgotten and exported records, corrections by engines' reports, explanations. Tenants share working scopes and
 * queues; closing finishes accepted requests first.
 */

import {
  type AgentId,
  type CacheState,
  DEFAULT_SCOPE_BOUNDS,
  type EngineCache,
  type EngineReport,
  EngineWork,
  groupBy,
  isWithinTtl,
  KEEPS_ALL,
  planBatch,
  type RequestId,
  SharedCache,
  sharedResidency,
  type UserId,
} from "../../core/index.js";
import type { ComposeAnswer, Feedback, IndexDescription } from "../base/call-types.js";
import { NotFoundError } from "../base/errors.js";
import { DegradedParts, type MemprefixObserver, Observers } from "../base/memprefix-observer.js";
import { engineModelFor, type MemprefixParts, type PlanBatch, type TenantParts } from "../base/memprefix-parts.js";
import { DEFAULT_TENANT, type Tenant } from "../base/tenant.js";
import type { BatchComposer } from "../batch/batch.js";
import type { ChatComposer } from "../chat/chat-request.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import { PromptComposer } from "../compose/prompt-composer.js";
import { PromptRouting } from "../compose/prompt-routing.js";
import { EngineLaw, TokenRatios } from "../learning/engine-measures.js";
import { EngineReports } from "../learning/engine-reports.js";
import { type Explanation, explainIn, type ShownPrompt, showIn } from "../records/explain.js";
import { MemoryAdditions } from "../records/memory-additions.js";
import { StoredResponses } from "../records/stored-responses.js";
import { UserRecords } from "../records/user-records.js";
import { finishingDeletions, watchedSource } from "../records/wrapped-sources.js";
import { TenantQueues, UserQueues } from "../scopes/user-queues.js";
import { type WorkingScope, WorkingScopes } from "../scopes/working-scopes.js";
import { EngineLosses } from "../usage/losses.js";
import { TenantUsage } from "../usage/tenant-usage.js";

/** Maximum live requests in an index description; older ones are left out. */
const MAX_LISTED_REQUESTS = 10_000;

/** Default maximum of one user's concurrent and queued requests. */
const MAX_WAITING_PER_USER = 64;

/** State that all tenants of a service share. */
interface SharedWork {
  readonly scopes: WorkingScopes;
  readonly queues: UserQueues;
  readonly closing: AbortController;
  /** One per tenant that was used; bounded, because only the operator creates tenants. */
  readonly tenants: Map<string, Memprefix>;
  readonly observers: Observers;
  readonly degraded: DegradedParts;
  /** What the engine works on. */
  readonly work: EngineWork;
  /** Why engines lost what was expected of them. */
  readonly losses: EngineLosses;
}

/** The current load of a service. */
export interface Load {
  /** Scopes in memory, and their estimated bytes. */
  readonly scopes: number;
  readonly bytes: number;
  /** Nodes of their context indexes. */
  readonly nodes: number;
  /** Users with concurrent or queued requests, and the number of those. */
  readonly busyUsers: number;
  readonly jobs: number;
}

/** The operations that do not belong to a tenant. */
export type MemprefixOfAll = Pick<
  Memprefix,
  | "dropUnused"
  | "dropFigures"
  | "finishDeletions"
  | "forTenant"
  | "observe"
  | "sourceName"
  | "degraded"
  | "load"
  | "timeLaw"
  | "perHeldTokenMs"
  | "engineCache"
  | "cacheState"
  | "ping"
  | "close"
>;

/** Milliseconds since the epoch by the system's clock, which is asked for at every call: tests set another one. */
export const systemClock = (): number => Date.now();

/**
 * The service for one tenant's users. One user's requests run in the order of arrival; users do not wait for each other. Every answer is in
 * the store.
 */
export class Memprefix {
  readonly #shared: SharedWork;
  readonly #scopes: WorkingScopes;
  readonly #queues: UserQueues;
  readonly #jobs: TenantQueues;
  readonly #records: UserRecords;
  readonly #law: EngineLaw;
  readonly #composer: PromptComposer;
  readonly #additions: MemoryAdditions;
  readonly #reports: EngineReports;
  /** Composes batches. */
  readonly batches: BatchComposer;
  /** Composes the proxy's chats. */
  readonly chats: ChatComposer;

  private readonly parts: TenantParts;

  /** @param shared another tenant's shared state, to be one service with it */
  constructor(
    private readonly given: MemprefixParts,
    private readonly tenant: Tenant = DEFAULT_TENANT,
    shared?: SharedWork,
  ) {
    const observers = shared?.observers ?? new Observers();
    const degraded = shared?.degraded ?? new DegradedParts(observers, given.now);
    // Another tenant's source is wrapped already.
    const source =
      given.source === null || shared !== undefined
        ? given.source
        : finishingDeletions(watchedSource(given.source, degraded), given.store);
    const parts = { ...given, source, ...ofTenant(given) };
    this.parts = parts;
    const { store, countTokens, maxWorkingBytes = 128 * 1024 * 1024, scopeBounds = DEFAULT_SCOPE_BOUNDS } = parts;
    this.#shared = shared ?? {
      scopes: new WorkingScopes(store, countTokens, maxWorkingBytes, scopeBounds),
      queues: new UserQueues(),
      closing: new AbortController(),
      tenants: new Map([[tenant.name, this]]),
      observers,
      degraded,
      work: new EngineWork(),
      losses: new EngineLosses(),
    };
    this.#scopes = this.#shared.scopes;
    this.#queues = this.#shared.queues;
    const { maxWaitingPerUser = MAX_WAITING_PER_USER } = parts;
    this.#jobs = new TenantQueues(tenant.name, this.#queues, this.#shared.closing.signal, maxWaitingPerUser);
    this.#records = new UserRecords(parts, this.#jobs, this.#scopes);
    // Times reported by one tenant must not affect another's plans.
    const { engineFamily } = parts.defaults;
    const measured = tenant.name === DEFAULT_TENANT.name ? engineFamily : JSON.stringify([tenant.name, engineFamily]);
    this.#law = new EngineLaw(store, measured, (model) => engineModelFor(parts.defaults, model), parts.now);
    const observer = this.#shared.observers;
    this.#additions = new MemoryAdditions(source, store, this.#jobs, parts.now);
    const ratios = new TokenRatios(parts.now);
    const { work, losses } = this.#shared;
    this.#reports = new EngineReports(parts, this.#jobs, this.#scopes, this.#law, ratios, work, observer, losses);
    const { planning = planHere } = parts;
    const routing = new PromptRouting(parts, this.#scopes, this.#jobs);
    this.#composer = new PromptComposer({
      parts,
      tenant,
      scopes: this.#scopes,
      jobs: this.#jobs,
      law: this.#law,
      ratios,
      routing,
      observer,
      losses,
      forgetGone: (userId, memoryIds) => this.#records.forgetGone(userId, memoryIds),
    });
    const workers = parts.defaults.workers ?? [];
    this.batches = { composer: this.#composer, routing, workers, countTokens, planning };
    this.chats = {
      countTokens,
      composer: this.#composer,
      reports: this.#reports,
      additions: this.#additions,
      responses: new StoredResponses(store, this.#jobs),
    };
  }

  /** The same service for another tenant, isolated from this one. */
  forTenant(tenant: Tenant): Memprefix {
    const { tenants } = this.#shared;
    const known = tenants.get(tenant.name);
    if (known?.tenant.cacheSecret === tenant.cacheSecret) return known;
    const memprefix = new Memprefix({ ...this.given, source: this.parts.source }, tenant, this.#shared);
    tenants.set(tenant.name, memprefix);
    return memprefix;
  }

  /** The engine's cache, for all tenants; undefined where it is planned for as if it had no end. */
  get engineCache(): EngineCache | undefined {
    return this.parts.engineCache;
  }

  /** The same as this tenant's prompts are planned for; null where it is planned for as if it had no end. */
  get cacheState(): CacheState | null {
    return this.parts.sharedCache?.state ?? null;
  }

  /** Adds an observer of all tenants' events. The function returned removes it. */
  observe(observer: MemprefixObserver): () => void {
    return this.#shared.observers.add(observer);
  }

  /** Figures of the tenant's prompts. */
  get usage(): TenantUsage {
    const { store, now, defaults } = this.parts;
    return new TenantUsage(this.tenant.name, store.prompts, now, engineModelFor(defaults, null).cost.kind === "money");
  }

  /** Shows a prompt beside the one that it continued. Rejects with {@link NotFoundError}. `hasText`: with the messages' texts. */
  show(userId: UserId, agentId: AgentId | null, id: RequestId, hasText: boolean): Promise<ShownPrompt> {
    const { store, countTokens } = this.parts;
    return this.#ofStored(userId, agentId, id, (working) => showIn(working, store, id, { countTokens, hasText }));
  }

  /** What memprefix needs of others, and which of it fails. */
  get degraded(): DegradedParts {
    return this.#shared.degraded;
  }

  /** Name of the configured memory source; null for none. */
  get sourceName(): string | null {
    return this.parts.source?.name ?? null;
  }

  /** See {@link PromptComposer.compose}. */
  async compose(request: ComposeRequest, signal?: AbortSignal): Promise<ComposeAnswer> {
    return this.#composer.compose({ request, signal });
  }

  /** The current load. */
  get load(): Load {
    const { size: scopes, weight: bytes, nodes } = this.#scopes;
    return { scopes, bytes, nodes, busyUsers: this.#queues.busy, jobs: this.#queues.jobs };
  }

  /** Milliseconds that each token of a prompt adds to its answer, as measured; 0 until it is. */
  get perHeldTokenMs(): number {
    return this.#law.modelFor(null).perHeldTokenMs ?? 0;
  }

  readonly addMemories: MemoryAdditions["add"] = (...of) => this.#additions.add(...of);
  readonly evict: EngineReports["evict"] = (...of) => this.#reports.evict(...of);
  /** The engine's measured time law; null until enough times are reported, or if prompts cost money. */
  readonly timeLaw: EngineLaw["law"] = () => this.#law.law();
  readonly forgetMemory: UserRecords["forgetMemory"] = (...of) => this.#records.forgetMemory(...of);
  readonly forgetUser: UserRecords["forgetUser"] = (...of) => this.#records.forgetUser(...of);
  readonly finishDeletions: UserRecords["finishDeletions"] = (...of) => this.#records.finishDeletions(...of);
  readonly exportUser: UserRecords["exportUser"] = (...of) => this.#records.exportUser(...of);
  readonly takeMemoryEvent: UserRecords["takeMemoryEvent"] = (...of) => this.#records.takeMemoryEvent(...of);
  readonly dropUnused: UserRecords["dropUnused"] = (...of) => this.#records.dropUnused(...of);
  readonly dropFigures: UserRecords["dropFigures"] = (...of) => this.#records.dropFigures(...of);

  /** See {@link EngineReports.feedback}. */
  feedback(
    userId: UserId,
    agentId: AgentId | null,
    id: RequestId,
    observation: EngineReport,
    model: string | null = null,
  ): Promise<Feedback> {
    return this.#reports.feedback(userId, agentId, id, observation, undefined, model);
  }

  /** Says what a prompt missed, and which earlier prompt it continued. Rejects with {@link NotFoundError}. */
  explain(userId: UserId, agentId: AgentId | null, id: RequestId): Promise<Explanation> {
    return this.#ofStored(userId, agentId, id, (working) => explainIn(working, this.parts.store, id));
  }

  async #ofStored<T>(
    userId: UserId,
    agentId: AgentId | null,
    id: RequestId,
    read: (working: WorkingScope) => Promise<T>,
  ): Promise<T> {
    const scope = this.#jobs.scopeOf(userId, agentId);
    const { store } = this.parts;
    const scopeId = await store.find(scope);
    // A scope that was never stored is not loaded.
    if (scopeId === null || (await store.findServed(scopeId, id)) === null)
      throw new NotFoundError("request_id", "no such request of this user");
    return this.#jobs.run(userId, () => this.#scopes.use(scope, read));
  }

  /** Describes a user's context index; empty for an unknown user. */
  describeIndex(userId: UserId, agentId: AgentId | null, limit: number): Promise<IndexDescription> {
    const { store } = this.parts;
    const scope = this.#jobs.scopeOf(userId, agentId);
    const describe = async ({ state, scopeId }: WorkingScope) => {
      const live = groupBy(await store.liveRequests(scopeId, MAX_LISTED_REQUESTS), ({ leaf }) => leaf);
      const counted = await store.counts(scopeId);
      const { residency = KEEPS_ALL, now } = this.parts;
      const at = now();
      const nodes = state.index.entries(limit).map((entry) => ({
        ...entry,
        isExpected: isWithinTtl(residency, entry.usedAt, at),
        requestIds: (live.get(entry.id) ?? []).map(({ requestId }) => requestId),
      }));
      const counts = { ...counted, blocks: state.register.size, nodes: state.index.size };
      return { userId, agentId, counts, nodes };
    };
    return this.#jobs.run(userId, () => this.#scopes.use(scope, describe));
  }

  /** Rejects if the store does not answer. */
  ping(): Promise<void> {
    return this.parts.store.ping();
  }

  /**
   * Finishes accepted requests, then closes source and store. After `graceMs` requests that still wait for the source continue without it.
   */
  async close(graceMs = 5_000): Promise<void> {
    const cut = setTimeout(() => this.#shared.closing.abort(), graceMs);
    await this.#queues.idle();
    clearTimeout(cut);
    await this.parts.source?.close();
    await this.parts.store.close();
  }
}

/** Plans batches on this thread. */
const planHere: PlanBatch = async (...batch) => planBatch(...batch);

/** The engine's cache as one tenant's prompts find it, and what it leaves of a user's. */
function ofTenant({ engineCache, residency }: MemprefixParts): Pick<TenantParts, "sharedCache" | "residency"> {
  if (engineCache === undefined) return residency === undefined ? {} : { residency };
  const sharedCache = new SharedCache(engineCache);
  return { sharedCache, residency: sharedResidency(sharedCache, residency) };
}
