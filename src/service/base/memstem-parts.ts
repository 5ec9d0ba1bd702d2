import type {
  BatchRequest,
  EngineModel,
  PlannedRequest,
  PolicyName,
  RequestId,
  ResidencyModel,
  RetentionName,
  ScopeBounds,
  TokenCounter,
} from "../../core/index.js";
import type { EngineAdapter, EngineName } from "../../engines/adapters/engine-adapter.js";
import type { MemorySource } from "../../memory/memory-source.js";
import type { Store } from "../../store/api/store.js";

/** What holds where a request does not say. */
export interface ComposeDefaults {
  readonly policy: PolicyName;
  readonly retention: RetentionName;
  /** What prompts cost the engine that they go to. */
  readonly engine: EngineModel;
  readonly engineFamily: EngineName;
}

/** Plans a batch, in the order in which it is to be executed; `planBatch`, wherever it runs. */
export type BatchPlanner = (requests: readonly BatchRequest[]) => Promise<readonly PlannedRequest[]>;

/** What the service is made of; built in one place. */
export interface MemstemParts {
  readonly store: Store;
  /** Null: memories come with each request. Keeps its own deadline. */
  readonly source: MemorySource | null;
  readonly defaults: ComposeDefaults;
  /** How every engine family is spoken to. */
  readonly engines: Readonly<Record<EngineName, EngineAdapter>>;
  /** What the engine is taken to let go of by itself. Default: nothing. */
  readonly residency?: ResidencyModel;
  /** How batches are planned. Default: at once, while everything else waits. */
  readonly planning?: BatchPlanner;
  readonly countTokens: TokenCounter;
  /** Characters (UTF-16 units) of one memory's text in a prompt; a longer one is cut. Default 100,000. */
  readonly maxMemoryCharacters?: number;
  /** Texts that are escaped wherever they stand in a memory, besides what has the shape of a marker. Default: none. */
  readonly markers?: readonly string[];
  readonly newRequestId: () => RequestId;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Bytes that all working scopes together may take, estimated. Default 128 MiB. */
  readonly maxWorkingBytes?: number;
  readonly scopeBounds?: ScopeBounds;
  /** Turns that leave in one transaction where nobody used them for long. Default 20. */
  readonly maxExpiredAtOnce?: number;
  /** Requests of one user that may be under way or wait at once. Default 256. */
  readonly maxWaitingPerUser?: number;
}
