/* base: what the service's other folders share: parts, observer, tenants and API keys, typed errors, results of calls, spans, signals. */

import { pricedModel, providerOf } from "../../core/cost/prices.js";
import type {
  BatchPlan,
  BatchPlanner,
  BatchRequest,
  CachingEngine,
  ClusteredKey,
  EngineModel,
  KeyKnowledge,
  PolicyName,
  RequestId,
  ResidencyModel,
  RetentionName,
  ScopeBounds,
  TokenCounter,
} from "../../core/index.js";
import { ENGINE_NAMES, type EngineAdapter, type EngineName } from "../../engines/adapters/engine-adapter.js";
import type { ObservedCache } from "../../engines/kv-events/observed-cache.js";
import type { MemorySource, SearchOptions } from "../../memory/memory-source.js";
import type { Store } from "../../store/store.js";

export interface ComposeDefaults {
  readonly policy: PolicyName;
  readonly retention: RetentionName;
  readonly topK?: number | undefined;
  readonly search?: SearchOptions | undefined;
  /** The cost model of the configured engine; null: by its provider's prices ({@link engineModelFor}). */
  readonly engine: EngineModel | null;
  /** Null: the family of the host's provider ({@link engineFamilyFor}). */
  readonly engineFamily: EngineName | null;
  readonly engineHost?: string | null;
  /** By the engine's count as far as it is reported. Default: unlimited. */
  readonly maxPromptTokens?: number | null;
  /** Whether a conversation's tools are sent in the order and the bytes that it sent first. Default: yes. */
  readonly stableTools?: boolean | undefined;
  /** Whether a conversation keeps its first instructions, and its newest message says what changed. Default: no. */
  readonly stableInstructions?: boolean | undefined;
  /** Engines to route prompts to. Default: no routing. */
  readonly workers?: readonly string[] | undefined;
}

/** The engine family of a model's prompts: the configured one, else that of the host's provider, else `generic`. */
export function engineFamilyFor({ engineFamily, engineHost = null }: EngineDefaults, model: string | null): EngineName {
  if (engineFamily !== null) return engineFamily;
  const provider = providerOf(engineHost, model);
  const family = provider?.family ?? provider?.families[0];
  return ENGINE_NAMES.find((name) => name === family) ?? "generic";
}

/** The cost model for a model's name; null: no name. The name never decides between time and money. */
export function engineModelFor(defaults: EngineDefaults, model: string | null): EngineModel {
  const { engine, engineHost: host = null } = defaults;
  return engine ?? pricedModel({ host, family: engineFamilyFor(defaults, model) }, model);
}

export type EngineDefaults = Pick<ComposeDefaults, "engine" | "engineFamily" | "engineHost">;

/** Plans a batch. `planBatch`, on any thread. */
export type PlanBatch = (
  requests: readonly BatchRequest[],
  planner: BatchPlanner,
  knowledge: readonly KeyKnowledge[],
  trees: readonly ClusteredKey[],
) => Promise<BatchPlan>;

export interface TenantParts extends MemprefixParts {
  /** The engine's cache as the tenant's prompts find it. */
  readonly cache?: ObservedCache | undefined;
}

export interface MemprefixParts {
  readonly store: Store;
  /** Has its own time-out. Null: each request brings its memories. */
  readonly source: MemorySource | null;
  readonly defaults: ComposeDefaults;
  readonly engines: Readonly<Record<EngineName, EngineAdapter>>;
  /** What the engine is expected to evict. Default: nothing. */
  readonly residency?: ResidencyModel;
  /** The engine's cache, filled by all users' prompts. Default: each user is planned for as if alone. */
  readonly cachingEngine?: CachingEngine | undefined;
  /** Plans batches. Default: synchronously, on this thread. */
  readonly planning?: PlanBatch;
  readonly countTokens: TokenCounter;
  readonly newRequestId: () => RequestId;
  readonly now: () => number;
  /** Bytes of all scopes in memory, estimated. Default 128 MiB. */
  readonly maxWorkingBytes?: number;
  readonly scopeBounds?: ScopeBounds | undefined;
  /** Origins of memories that are given at most once in a prompt. In lower case. */
  readonly untrustedOrigins?: ReadonlySet<string> | undefined;
  /** Most running and queued jobs of one user. Default 64. */
  readonly maxWaitingPerUser?: number;
}
