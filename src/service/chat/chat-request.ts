import type { AgentId, DepthSettings, RequestId, UserId } from "../../core/index.js";
import type { EngineAdapter, EngineEmission, EngineName, EngineUsage } from "../../engines/adapters/engine-adapter.js";
import type { Upstream, UpstreamAnswer } from "../../engines/upstream/upstream.js";
import type { HeaderPair } from "../../engines/upstream/upstream-headers.js";
import type { NewMemory } from "../../memory/memory-source.js";
import type { EngineReport } from "../../store/api/store.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { ComposeHooks } from "../compose/prompt-composer.js";
import type { DeletionWatch } from "../scopes/deletions-meanwhile.js";
import type { DepthWish } from "./adaptive-depth.js";
import type { NotComposedReason } from "./composing-in-time.js";

/** The engine behind the proxy, and what is done with its answers. */
export interface ChatEngine {
  readonly upstream: Upstream;
  readonly readUsage: EngineAdapter["readUsage"];
  /** Whether exchanges are kept as memories where a request does not say. */
  readonly writeBack: boolean;
  /** Whether what prompts begin with is computed while memories are searched for. Default: no. */
  readonly warmUp?: boolean;
  /** By what it is chosen how many memories a prompt gets. Default: all, where a request does not say. */
  readonly adaptiveDepth?: DepthSettings | null;
  /** Milliseconds that composing may take, waiting included, before a chat goes on as it came. Default 5,000. */
  readonly composeTimeoutMs?: number;
}

export interface ChatParts extends ChatEngine {
  /** Called with what went wrong and is nobody's mistake but ours: the client has its answer all the same. */
  readonly onFault: (error: unknown) => void;
  /** Called with why a chat goes on as it came. */
  readonly onNotComposed?: (reason: NotComposedReason) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

/** What a chat asks of the tenant's state. */
export interface ChatMemory {
  compose(request: ComposeRequest, signal: AbortSignal, hooks: ComposeHooks): Promise<ComposeAnswer>;
  /** Fields for a request whose messages are not composed. */
  fieldsWithoutPrompt(userId: UserId, agentId: AgentId | null, engine: EngineName | null): EngineEmission["fields"];
  feedback(userId: UserId, agentId: AgentId | null, id: RequestId, observation: EngineReport): Promise<unknown>;
  evict(ids: readonly RequestId[], of: UserId): Promise<unknown>;
  withdraw(userId: UserId, agentId: AgentId | null, id: RequestId): Promise<void>;
  keepExchange(userId: UserId, agentId: AgentId | null, exchange: NewMemory, watch: DeletionWatch): Promise<boolean>;
  watchDeletions(userId: UserId): DeletionWatch;
}

/** A chat completion that a client asked for. */
export interface ChatRequest {
  readonly userId: UserId;
  readonly agentId: AgentId | null;
  /** Whose fields go with messages that are not composed; null or absent: the configured one's. */
  readonly engine?: EngineName | null;
  /** Null: the messages are none that can be composed. They go on as they came, for the engine to judge. */
  readonly compose: ComposeRequest | null;
  /** The client's body, less what is meant for memstem. */
  readonly body: Readonly<Record<string, unknown>>;
  /** `?` included, or empty. */
  readonly query: string;
  readonly headers: readonly HeaderPair[];
  /** Null: the configured one. */
  readonly writeBack: boolean | null;
  /** Default: as configured. */
  readonly adaptiveDepth?: DepthWish;
  /** There is too much to do to compose it: it goes on as it came. Default: no. */
  readonly isShed?: boolean;
}

/** The engine's answer on its way to the client. */
export interface ChatAnswer extends UpstreamAnswer {
  /** Null where the messages went on as they came. */
  readonly composed: ComposeAnswer | null;
  /** Why they did; null where they did not. */
  readonly notComposed: NotComposedReason | null;
  /** Null where it is not known before the body is: in a stream, or in an error. */
  readonly usage: EngineUsage | null;
}
