/*
 * base: what every folder of the service stands on.
 * Enters: nothing of the service. Leaves: the parts that a service is built of, its observer, tenants and API keys, typed errors, the
 * results of calls, and small tools: spans, linked signals, token buckets.
 */

import { pricedModel } from "../../core/cost/prices.js";
import type {
  BatchPlanner,
  BatchRequest,
  CachingEngine,
  EngineModel,
  KeyKnowledge,
  ObservedCache,
  PlannedRequest,
  PolicyName,
  RequestId,
  ResidencyModel,
  RetentionName,
  ScopeBounds,
  TokenCounter,
} from "../../core/index.js";
import type { EngineAdapter, EngineName } from "../../engines/adapters/engine-adapter.js";
import type { MemorySource, SearchOptions } from "../../memory/memory-source.js";
import type { Store } from "../../store/store.js";

/** Defaults for what a request leaves open. */
export interface ComposeDefaults {
  readonly policy: PolicyName;
  readonly retention: RetentionName;
  /** Memories to search for. Default: {@link DEFAULT_TOP_K}. */
  readonly topK?: number | undefined;
  /** Mem0's own options of a search. Default: none. */
  readonly search?: SearchOptions | undefined;
  /** The cost model of the engine that prompts go to; null: by its provider's prices ({@link engineModelFor}). */
  readonly engine: EngineModel | null;
  readonly engineFamily: EngineName;
  /** Host name of its API. Default: not known. */
  readonly engineHost?: string | null;
  /** Most tokens of a prompt, by the engine's count as far as it is reported. Default: no limit. */
  readonly maxPromptTokens?: number | null;
  /** Names of the engines that prompts are routed to. Default: no routing. */
  readonly workers?: readonly string[] | undefined;
}

/** The cost model of the configured engine, for a model by its name; null: no name. Whether it is time or money depends on no name. */
export function engineModelFor(defaults: EngineDefaults, model: string | null): EngineModel {
  const { engine, engineFamily: family, engineHost: host = null } = defaults;
  return engine ?? pricedModel({ host, family }, model);
}

type EngineDefaults = Pick<ComposeDefaults, "engine" | "engineFamily" | "engineHost">;

/** Plans a batch: its requests in execution order. `planBatch`, on whichever thread. */
export type PlanBatch = (
  requests: readonly BatchRequest[],
  planner: BatchPlanner,
  knowledge: readonly KeyKnowledge[],
) => Promise<readonly PlannedRequest[]>;

/** The parts of a service for one tenant. */
export interface TenantParts extends MemprefixParts {
  /** The engine's cache as the tenant's prompts find it. */
  readonly cache?: ObservedCache | undefined;
}

/** The parts of a service; built in one place. */
export interface MemprefixParts {
  readonly store: Store;
  /** Null: each request brings its memories. Has a time-out of its own. */
  readonly source: MemorySource | null;
  readonly defaults: ComposeDefaults;
  /** The adapter of every engine family. */
  readonly engines: Readonly<Record<EngineName, EngineAdapter>>;
  /** What the engine is expected to evict by itself. Default: nothing. */
  readonly residency?: ResidencyModel;
  /** The engine's cache as all users' prompts fill it. Default: none, each user's prompts are planned for as if there were no others. */
  readonly cachingEngine?: CachingEngine | undefined;
  /** Plans batches. Default: synchronously, on this thread. */
  readonly planning?: PlanBatch;
  readonly countTokens: TokenCounter;
  readonly newRequestId: () => RequestId;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Bytes of all scopes in memory, estimated. Default 128 MiB. */
  readonly maxWorkingBytes?: number;
  readonly scopeBounds?: ScopeBounds | undefined;
  /** Most jobs of one user, running or queued. Default 256. */
  readonly maxWaitingPerUser?: number;
}
