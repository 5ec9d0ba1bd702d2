import type {
  AgentId,
  ChatMessage,
  ConversationId,
  DepthSettings,
  TokenCounter,
  ToolMemories,
  UserId,
} from "../../core/index.js";
import type { EngineAdapter, EngineName, EngineUsage } from "../../engines/adapters/engine-adapter.js";
import type { SessionRouter } from "../../engines/adapters/session-routers.js";
import {
  type ChatDialect,
  type MessagesBody,
  toChatCompletion,
  withComposedMessages,
} from "../../engines/anthropic/messages-request.js";
import { chatHeaders } from "../../engines/anthropic/messages-upstream.js";
import { record } from "../../engines/upstream/json-values.js";
import type { HeaderPair, Upstream, UpstreamAnswer } from "../../engines/upstream/upstream.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { ComposeAnswer } from "../compose/composed-prompt.js";
import type { PromptComposer } from "../compose/prompt-composer.js";
import type { KvExpectations } from "../learning/engine-cache.js";
import type { EngineReports } from "../learning/engine-reports.js";
import type { MemoryAdditions } from "../records/memory-additions.js";
import type { StoredResponses } from "../records/stored-responses.js";
import type { DeletionWatch } from "../scopes/working-scope.js";
import { type AnswerReader, ObservedAnswer, ObservedMessage } from "./answer-readers.js";
import type { NotComposedReason, NotWantedReason } from "./compose-with-timeout.js";
import type { IdentitySources } from "./identity-sources.js";

/** Where an engine's own limit on prompts comes from: its list of models, or its configuration. */
export type ContextLimit = "listed" | { readonly contextTokens: number };

/** What a request says of its depth: whether it is chosen, or by what; null: as configured. */
export type RequestedDepth = boolean | Partial<DepthSettings> | null;

/** A body of a client or for the engine. */
export type ProxiedBody = Readonly<Record<string, unknown>>;

/** A client's request, as far as what is sent to its engine depends on it. */
export interface ClientRequest {
  /** The client's body, without memstem's fields. */
  readonly body: ProxiedBody;
  /** `?` included, or empty. */
  readonly query: string;
  readonly headers: readonly HeaderPair[];
  /** Default: chat completions. */
  readonly format?: ChatFormat | undefined;
}

/** A wire format of the proxy: where a prompt is sent, in what body, and how the answer is read. */
export interface ChatFormat {
  /** Relative to the API's base URL: `chat/completions`. */
  readonly path: string;
  /** Whether it is chat completions: only there is usage requested. */
  readonly isChat: boolean;
  /**
   * The body for the engine.
   *
   * @param own the client's, without memstem's fields
   * @param messages the composed prompt; null: the client's own messages
   */
  bodyOf(own: ProxiedBody, messages: readonly ChatMessage[] | null): ProxiedBody;
  /**
   * The body of a request for as few tokens as the format allows, that has the engine compute a prompt's prefix. Null: none is sent.
   *
   * @param own the client's, without memstem's fields
   */
  warmUpOf(own: ProxiedBody, prefix: readonly ChatMessage[]): ProxiedBody | null;
  /** A prompt as a chat completion, as depth probes need: only chats have log probabilities everywhere. Null: no chat says it. */
  probeOf(
    own: ProxiedBody,
    messages: readonly ChatMessage[],
    headers: readonly HeaderPair[],
    dialect: ChatDialect,
  ): ProbeRequest | null;
  /** Reads the usage of its answers. Absent: the engine's adapter does. */
  readonly readUsage?: EngineAdapter["readUsage"];
  /** Reads one answer. */
  answerReader(): AnswerReader;
  /** Called once an answer was read, to its end or to where it broke off. */
  answered?(reader: AnswerReader, composed: Pick<ComposeAnswer, "requestId" | "messages"> | null): void;
}

/** A prompt for a chat completion of one token. */
export interface ProbeRequest {
  readonly body: ProxiedBody;
  readonly headers: readonly HeaderPair[];
}

/** The client's fields for a shorter answer that nobody streams. */
export function forShortAnswer({ stream: _stream, stream_options: _options, n: _n, ...own }: ProxiedBody): ProxiedBody {
  return own;
}

/** OpenAI's chat completions. */
const CHAT_COMPLETIONS: ChatFormat = {
  path: "chat/completions",
  isChat: true,
  bodyOf: (own, messages) => (messages === null ? own : { ...own, messages }),
  warmUpOf: (own, messages) => {
    const { max_tokens: _most, ...same } = forShortAnswer(own);
    const most = "max_completion_tokens" in own ? "max_completion_tokens" : "max_tokens";
    return { ...same, messages, [most]: 1 };
  },
  probeOf: (own, messages, headers) => ({ body: { ...own, messages }, headers }),
  answerReader: () => new ObservedAnswer(),
};

/** The format of a request, chat completions by default. */
export function formatOf({ format }: Pick<ClientRequest, "format">): ChatFormat {
  return format ?? CHAT_COMPLETIONS;
}

/** Anthropic's Messages API. */
export const MESSAGES: ChatFormat = {
  path: "messages",
  isChat: false,
  bodyOf: (own: MessagesBody, messages) => (messages === null ? own : withComposedMessages(own, messages)),
  // A budget of thinking has to be below the answer's tokens; without thinking the prompt would be another.
  warmUpOf: (own, messages) =>
    record(own["thinking"])["budget_tokens"] === undefined
      ? { ...withComposedMessages(forShortAnswer(own), messages), max_tokens: 1 }
      : null,
  probeOf: (own, messages, headers, dialect) => {
    const body = toChatCompletion(withComposedMessages(forShortAnswer(own), messages), dialect);
    return body && { body, headers: chatHeaders(headers) };
  },
  answerReader: () => new ObservedMessage(),
};

/** The proxy's engine, and how it is used. */
export interface ChatEngine {
  readonly upstream: Upstream;
  readonly readUsage: EngineAdapter["readUsage"];
  /** Default: `generic`. */
  readonly family?: EngineName;
  /** What it takes of requests that are converted to chat completions. Default: nothing besides them. */
  readonly dialect?: ChatDialect;
  /** Default of {@link ChatRequest.writeBack}: whether exchanges are added as memories. */
  readonly writeBack: boolean;
  /** Whether the engine computes a prompt's prefix while memories are searched for. Default: no. */
  readonly warmUp?: boolean;
  /** Default of {@link ChatRequest.adaptiveDepth}. Absent or null: a prompt gets all memories. */
  readonly adaptiveDepth?: DepthSettings | null;
  /** Where the engine's own limit on prompts comes from, for requests that name none. Default: it is not asked for. */
  readonly contextLimit?: ContextLimit | null;
  /** Where memories stand after tools' results. Default: where the engine and its model take them. */
  readonly toolMemories?: ToolMemories | undefined;
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
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

/** What a chat needs of its tenant's service. */
export interface ChatComposer {
  readonly countTokens: TokenCounter;
  readonly composer: Pick<PromptComposer, "compose" | "engineTokens" | "plainFields" | "sessionKey" | "tokenized">;
  readonly reports: Pick<EngineReports, "evict" | "feedback" | "withdraw">;
  readonly additions: Pick<MemoryAdditions, "keepExchange" | "watch">;
  readonly responses: Pick<StoredResponses, "find" | "keep">;
}

/** Stands for the user of a request that is not composed and names none: no user has an empty name. */
export const NOBODY = "" as UserId;

/** A chat completion that a client asked for. */
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
  /**
   * What was known of the user's deletions when memstem read messages of the request itself: they are not sent where something was deleted
   * since. Null or absent: they are all the client's.
   */
  readonly readSince?: DeletionWatch | null;
  /** Null: the configured one. */
  readonly writeBack: boolean | null;
  /** Default: as configured. */
  readonly adaptiveDepth?: RequestedDepth;
  /** Whether overload keeps it from being composed: it goes to the engine unmodified. Default: no. */
  readonly isShed?: boolean;
}

/** The engine's answer on its way to the client. */
export interface ProxiedAnswer extends UpstreamAnswer {
  /** Null where the messages were sent unmodified. */
  readonly composed: ComposeAnswer | null;
  /** Why they were; null where the prompt was composed. */
  readonly notComposed: NotComposedReason | null;
  /** How many tokens of the prompt should be cached, in the engine's own; null where the messages were sent unmodified. */
  readonly expectedTokens: number | null;
  /** Null where it is known only with the body: in a stream, or in an error. */
  readonly usage: EngineUsage | null;
}
