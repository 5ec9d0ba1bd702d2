import type { Api } from "../../apis/api/api.js";
import { withItems } from "../../apis/api/edited-json.js";
import type { EngineUsage } from "../../apis/api/usage.js";
import { withEndOf } from "../../apis/responses/sections.js";
import type { AgentId, ChatMessage, ConversationId, DepthSettings, TokenCounter, UserId } from "../../core/index.js";
import { type JsonObject, parsedJson } from "../../core/text/json.js";
import type { EngineAdapter, EngineName } from "../../engines/adapters/engine-adapter.js";
import type { SessionRouter } from "../../engines/adapters/session-routers.js";
import type { HeaderPair, Upstream, UpstreamAnswer } from "../../engines/upstream/upstream.js";
import type { PlannedAnswer } from "../base/call-types.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { PromptComposer } from "../compose/prompt-composer.js";
import type { KvExpectations } from "../learning/cache-readings.js";
import type { EngineReports } from "../learning/engine-reports.js";
import type { MemoryAdditions } from "../records/memory-additions.js";
import type { StoredResponses } from "../records/stored-responses.js";
import type { NotComposedReason, NotWantedReason } from "./compose-with-timeout.js";
import type { WriteCalls } from "./write-calls.js";

export interface ChatEngine {
  readonly upstream: Upstream;
  /** Whether its key is the operator's: then no client can fix a refused key. Default: no. */
  readonly hasOwnKey?: boolean;
  readonly readUsage: EngineAdapter["readUsage"];
  /** Default: `generic`. */
  readonly family?: () => EngineName;
  readonly writeBack: boolean;
  /** Whether the engine computes a prompt's prefix while memories are searched for. Default: no. */
  readonly warmUp?: boolean;
  /** Absent or null: a prompt gets all memories. */
  readonly adaptiveDepth?: DepthSettings | null;
  /** Whether the limit on prompts is read from the engine's list of models. Default: no. */
  readonly readsLimit?: boolean;
  readonly identity?: IdentitySources;
  /** The user of requests that name none, while there are no API keys. Default: none. */
  readonly defaultUser?: UserId | undefined;
  readonly router?: SessionRouter | null;
  /** Cached tokens by the engine's KV events. Absent: unknown. */
  readonly expectations?: Pick<KvExpectations, "of"> | undefined;
  /** Milliseconds to compose, queueing included, before a chat goes to its engine unmodified. Default 5,000. */
  readonly composeTimeoutMs?: number;
}

export interface ChatParts extends ChatEngine {
  /** Called with internal faults; the client gets an answer anyway. */
  readonly onFault: (error: unknown) => void;
  readonly onNotComposed?: (reason: NotComposedReason) => void;
  readonly onAbsentRoute?: (path: string) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

export interface ChatComposer {
  readonly countTokens: TokenCounter;
  readonly composer: Pick<
    PromptComposer,
    "compose" | "engineTokens" | "plainFields" | "salted" | "sessionKey" | "tokenized"
  >;
  readonly reports: Pick<EngineReports, "began" | "feedback" | "interrupted" | "neverServed" | "withdraw">;
  readonly additions: Pick<MemoryAdditions, "keep">;
  readonly responses: Pick<StoredResponses, "find" | "keep">;
  readonly writes: Pick<WriteCalls, "start">;
}

/** The user of a request that names none and is not composed: no user has an empty name. */
export const NOBODY = "" as UserId;

export interface ClientRequest {
  /** The API of the request, in both directions. */
  readonly api: Api;
  /** Without memprefix's field. */
  readonly body: JsonObject;
  /** Serializes a body derived from the client's, keeping the bytes of the shared part. */
  readonly written: (body: JsonObject) => string;
  /** With its `?`, or empty. */
  readonly query: string;
  readonly headers: readonly HeaderPair[];
  /** Null or absent: none. */
  readonly tools?: ClientTools | null;
  /** The new messages of a request that continues the engine's own history; absent: the request has the whole history. */
  readonly added?: readonly ChatMessage[];
}

export interface ClientTools {
  /** Where the body has them. */
  readonly field: string;
  /** One JSON text for each. */
  readonly texts: readonly string[];
}

/** The request with its tools as they are to be sent. @param texts null: as they came */
export function withTools<R extends ClientRequest>(request: R, texts: readonly string[] | null): R {
  const { tools, body, written } = request;
  if (tools == null || texts === null || texts === tools.texts) return request;
  const { field } = tools;
  const own = body[field];
  return {
    ...request,
    body: { ...body, [field]: texts.map(parsedJson) },
    // Spliced: what was parsed may have lost digits, or one of two equal keys.
    written: (sent) => (field in sent ? withItems(written({ ...sent, [field]: own }), field, texts) : written(sent)),
  };
}

/** The body for the engine. @param prompt null: the client's own messages */
export function bodyOf({ api, body, added }: ClientRequest, prompt: readonly ChatMessage[] | null): JsonObject {
  if (prompt === null) return body;
  return added === undefined ? api.withPrompt(body, prompt) : withEndOf(body, prompt, added);
}

export interface ChatRequest extends ClientRequest {
  /** {@link NOBODY} only if nothing is composed. */
  readonly userId: UserId;
  readonly agentId: AgentId | null;
  readonly conversationId?: ConversationId | null;
  /** The engine family whose fields are sent with messages that are not composed; null or absent: the configured one. */
  readonly engine?: EngineName | null;
  /** Null: the messages cannot be composed, and go to the engine unmodified. */
  readonly compose: ComposeRequest | null;
  /** Why the client does not want it composed. Default: it does. */
  readonly notWanted?: NotWantedReason | null;
  /** Whether Mem0 sends it to its own model. Default: no. */
  readonly isWrite?: boolean;
  readonly writeBack: boolean | null;
  readonly adaptiveDepth?: boolean | null;
}

export interface ProxiedAnswer extends UpstreamAnswer {
  /** Null if the messages were sent unmodified. */
  readonly composed: PlannedAnswer | null;
  readonly notComposed: NotComposedReason | null;
  /** Expected cached tokens, in the engine's tokens; null if unknown, or the messages were sent unmodified. */
  readonly expectedTokens: number | null;
  /** Null if only the body has it: in a stream, or in an error. */
  readonly usage: EngineUsage | null;
}

/** A part of a request that identifies its user or conversation. */
export type IdentitySource =
  /** `name` in lower case. */
  | { readonly from: "header"; readonly name: string }
  /** A field's path in the body. */
  | { readonly from: "body"; readonly path: readonly string[] };

/** Identities besides memprefix's own headers and fields, as the operator chose; the first one present counts. */
export interface IdentitySources {
  readonly user: readonly IdentitySource[];
  readonly agent: readonly IdentitySource[];
  readonly conversation: readonly IdentitySource[];
  /** Of calls that a client makes for itself: a title, tags, suggestions. */
  readonly sideCall: readonly IdentitySource[];
}

/** Open WebUI names the task of a side call: https://docs.openwebui.com/reference/env-configuration, custom headers. */
const TASK_OF_OPEN_WEBUI: IdentitySource = { from: "header", name: "x-openwebui-task" };

/** Only side calls are identified by other tools' headers; users and conversations are not. */
export const DEFAULT_IDENTITY_SOURCES: IdentitySources = {
  user: [],
  agent: [],
  conversation: [],
  sideCall: [TASK_OF_OPEN_WEBUI],
};
