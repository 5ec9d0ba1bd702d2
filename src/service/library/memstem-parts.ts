import type {
  EngineModel,
  PolicyName,
  RequestId,
  ResidencyModel,
  RetentionName,
  ScopeBounds,
  TokenCounter,
} from "../../core/index.js";
import type { EngineAdapter, EngineName } from "../../engines/adapters/engine-adapter.js";
import type { UpstreamFailure } from "../../engines/upstream/upstream.js";
import type { MemorySource, MemorySourceFailure } from "../../memory/memory-source.js";
import type { Store } from "../../store/api/store.js";
import type { Planning } from "../batch/batch-planning.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import type { Feedback } from "../records/answers.js";

/** What holds where a request does not say. */
export interface ComposeDefaults {
  readonly policy: PolicyName;
  readonly retention: RetentionName;
  /** What prompts cost the engine that they go to. */
  readonly engine: EngineModel;
  readonly engineFamily: EngineName;
}

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
  readonly planning?: Planning;
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

/** One search of the memory source, by how it ended. */
export interface MemorySearch {
  readonly outcome: "ok" | MemorySourceFailure["kind"];
  /** Milliseconds. */
  readonly ms: number;
}

/** One call of the engine, by how its answer began: a status below 400 is `ok`. */
export interface EngineCall {
  readonly outcome: "ok" | "client_error" | "server_error" | UpstreamFailure["kind"];
  /** Milliseconds to the answer's first byte, or to where the call failed. */
  readonly ms: number;
}

/** Is told what a service did, whoever asked for it. */
export interface MemstemObserver {
  /** A prompt was composed and stored; a repeated answer is not told again. */
  composed(answer: ComposeAnswer): void;
  /** An engine's report was taken in. `ttftMs`: the time to the first token, where this report is the first of its request to say it. */
  reported(feedback: Feedback, ttftMs: number | null): void;
  /** Memories were searched for. */
  searched(search: MemorySearch): void;
}
