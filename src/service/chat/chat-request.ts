import type { Api } from "../../apis/api/api.js";
import type { EngineUsage } from "../../apis/api/usage.js";
import { withEndOf } from "../../apis/responses/sections.js";
import type { AgentId, ChatMessage, ConversationId, DepthSettings, TokenCounter, UserId } from "../../core/index.js";
import { type JsonObject, listIn, record, text } from "../../core/text/json.js";
import type { EngineAdapter, EngineName } from "../../engines/adapters/engine-adapter.js";
import type { SessionRouter } from "../../engines/adapters/session-routers.js";
import type { HeaderPair, Upstream, UpstreamAnswer } from "../../engines/upstream/upstream.js";
import type { ComposeAnswer } from "../base/call-types.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { PromptComposer } from "../compose/prompt-composer.js";
import type { KvExpectations } from "../learning/cache-readings.js";
import type { EngineReports } from "../learning/engine-reports.js";
import type { MemoryAdditions } from "../records/memory-additions.js";
import type { StoredResponses } from "../records/stored-responses.js";
import type { NotComposedReason, NotWantedReason } from "./compose-with-timeout.js";

/** The proxy's engine, and how it is used. */
export interface ChatEngine {
  readonly upstream: Upstream;
  /** Whether its key is the operator's: where it refuses that, no client can help it. Default: no. */
  readonly hasOwnKey?: boolean;
  readonly readUsage: EngineAdapter["readUsage"];
  /** Default: `generic`. */
  readonly family?: EngineName;
  /** Default of {@link ChatRequest.writeBack}: whether exchanges are added as memories. */
  readonly writeBack: boolean;
  /** Whether the engine computes a prompt's prefix while memories are searched for. Default: no. */
  readonly warmUp?: boolean;
  /** Default of {@link ChatRequest.adaptiveDepth}. Absent or null: a prompt gets all memories. */
  readonly adaptiveDepth?: DepthSettings | null;
  /** Whether the engine's list of models is read for its limit on prompts. Default: no. */
  readonly readsLimit?: boolean;
  /** Default: {@link DEFAULT_IDENTITY_SOURCES}. */
  readonly identity?: IdentitySources;
  /** What chooses among the engine's replicas by a key of the session. Default: nothing that needs one. */
  readonly router?: SessionRouter | null;
  /** What the engine has cached of a prompt, where its events say so. Default: it is not known. */
  readonly expectations?: Pick<KvExpectations, "of"> | undefined;
  /** Milliseconds that composing may take, queueing included, before a chat goes to its engine unmodified. Default 5,000. */
  readonly composeTimeoutMs?: number;
}

export interface ChatParts extends ChatEngine {
  /** Called with internal faults. The client gets its answer all the same. */
  readonly onFault: (error: unknown) => void;
  /** Called with the reason for which a chat goes to its engine unmodified. */
  readonly onNotComposed?: (reason: NotComposedReason) => void;
  /** Called once for each path that the engine does not have. */
  readonly onAbsentRoute?: (path: string) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

/** What a chat needs of its tenant's service. */
export interface ChatComposer {
  readonly countTokens: TokenCounter;
  readonly composer: Pick<PromptComposer, "compose" | "engineTokens" | "plainFields" | "sessionKey" | "tokenized">;
  readonly reports: Pick<EngineReports, "began" | "ended" | "feedback" | "interrupted" | "neverServed" | "withdraw">;
  readonly additions: Pick<MemoryAdditions, "keepExchange">;
  readonly responses: Pick<StoredResponses, "find" | "keep">;
}

/** Stands for the user of a request that is not composed and names none: no user has an empty name. */
export const NOBODY = "" as UserId;

/** A client's request, as far as what is sent to its engine depends on it. */
export interface ClientRequest {
  /** The API that it came through, and goes out through. */
  readonly api: Api;
  /** The client's body, without memprefix's field. */
  readonly body: JsonObject;
  /** The JSON of a body that was made of the client's: what both share has the client's bytes. */
  readonly written: (body: JsonObject) => string;
  /** `?` included, or empty. */
  readonly query: string;
  readonly headers: readonly HeaderPair[];
  /** What it adds to the history that the engine has, where it continues that; absent: it has the whole history. */
  readonly added?: readonly ChatMessage[];
}

/**
 * The body for the engine.
 *
 * @param prompt null: the client's own messages
 */
export function bodyOf({ api, body, added }: ClientRequest, prompt: readonly ChatMessage[] | null): JsonObject {
  if (prompt === null) return body;
  return added === undefined ? api.withPrompt(body, prompt) : withEndOf(body, prompt, added);
}

/** A request whose prompt a client wants composed and answered. */
export interface ChatRequest extends ClientRequest {
  /** {@link NOBODY} only where nothing is composed. */
  readonly userId: UserId;
  readonly agentId: AgentId | null;
  /** Null or absent: none is named. */
  readonly conversationId?: ConversationId | null;
  /** The engine family whose fields go with messages that are not composed; null or absent: the configured one. */
  readonly engine?: EngineName | null;
  /** Null: the messages cannot be composed. They go to the engine unmodified. */
  readonly compose: ComposeRequest | null;
  /** Why it is not to be composed, where it is not: its client says so, or makes it for itself. Default: it is. */
  readonly notWanted?: NotWantedReason | null;
  /** Null: the configured one. */
  readonly writeBack: boolean | null;
  /** Whether its depth is chosen. Null: as configured. */
  readonly adaptiveDepth?: boolean | null;
}

/** The engine's answer on its way to the client. */
export interface ProxiedAnswer extends UpstreamAnswer {
  /** Null where the messages were sent unmodified. */
  readonly composed: ComposeAnswer | null;
  /** Why they were; null where the prompt was composed. */
  readonly notComposed: NotComposedReason | null;
  /** How many tokens of the prompt should be cached, in the engine's own; null where the messages were sent unmodified, and where it is unknown. */
  readonly expectedTokens: number | null;
  /** Null where it is known only with the body: in a stream, or in an error. */
  readonly usage: EngineUsage | null;
}

/** A place of a request in which it says who it is. */
export type IdentitySource =
  /** A header, its name in lower case. */
  | { readonly from: "header"; readonly name: string }
  /** A field of the body, by its path. */
  | { readonly from: "body"; readonly path: readonly string[] };

/** What identifies a call that a client makes for itself. */
export type SideCallSource =
  | IdentitySource
  /** The form of the prompts that a client makes such calls with, where it says so nowhere else. */
  | { readonly from: "prompt"; readonly client: (typeof PROMPTING_CLIENTS)[number] };

/** Clients whose side calls are known by their prompts. */
export const PROMPTING_CLIENTS = ["open-webui"] as const;

/** Where a request may say who it is, besides memprefix's own headers and fields: places of the operator's choice, the first that has a name counts. */
export interface IdentitySources {
  readonly user: readonly IdentitySource[];
  readonly agent: readonly IdentitySource[];
  readonly conversation: readonly IdentitySource[];
  /** Says that the client makes the request for itself. */
  readonly sideCall: readonly SideCallSource[];
}

/** Open WebUI names the task of a call that it makes for itself: https://docs.openwebui.com/reference/env-configuration, custom headers. */
const TASK_OF_OPEN_WEBUI: IdentitySource = { from: "header", name: "x-openwebui-task" };

/** No request names anybody, or its conversation, in a header of another tool's; side calls may be known by theirs. */
export const DEFAULT_IDENTITY_SOURCES: IdentitySources = {
  user: [],
  agent: [],
  conversation: [],
  sideCall: [TASK_OF_OPEN_WEBUI],
};

/**
 * Whether a body is a side call by its prompt. Open WebUI's own templates: one message of the user's that begins with `### Task:`, unstreamed.
 * Source: https://docs.openwebui.com/reference/env-configuration, `TITLE_GENERATION_PROMPT_TEMPLATE` and the like
 */
export function isPromptOfSideCall(body: unknown): boolean {
  const { messages, stream } = record(body);
  const [message, ...others] = listIn(messages);
  const { role, content } = record(message);
  return others.length === 0 && role === "user" && text(content).startsWith("### Task:") && stream !== true;
}
