import type { DedupeName, HistoryName, PolicyName, RetentionName, ToolMemories } from "../../core/index.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";

/*
 * What calls of the library and of the client (`memstem/client`) take: the fields of the HTTP requests, in camelCase. `null` counts as absent.
 * Written without zod, so that the client's types need no package; a test compares them with the schemas that check them.
 */

/**
 * The common part of the message types of OpenAI's client, Anthropic's, the AI SDK and others, and of the Responses API's items; validated
 * at run time.
 */
export type MessageLike =
  | { readonly role: string; readonly content?: unknown }
  | { readonly type: string }
  | { readonly id: string };

/** APIs whose messages a request may bring, and gets back. */
export type MessageFormat = "chat" | "responses" | "anthropic";

/** Most labels that an annotation names: a number, a share of the retrieved blocks below 1, all, or by their number. */
type AnnotationTopN = number | "all" | "auto";

/** A part of instructions, as Anthropic's API has them. */
export interface InstructionPart {
  readonly type: "text";
  readonly text: string;
}

/** Instructions of an answer whose messages are Anthropic's. */
export type Instructions = string | { type: "text"; text: string }[];

/** Which annotations a prompt gets, how many labels each names, and their wording. */
export interface AnnotationOptions {
  /** Ranks the most relevant blocks, where they are not first in the prompt. Default: true. */
  readonly order?: boolean | undefined;
  /** Names blocks that an earlier turn gave in a line of their own. Default: false. */
  readonly location?: boolean | undefined;
  /** Default: `auto`. */
  readonly topN?: AnnotationTopN | undefined;
  /** Templates, each with `{labels}` once. */
  readonly wording?: { readonly order?: string | undefined; readonly location?: string | undefined } | undefined;
}

/** Options of `compose`: the fields of `POST /compose`. `query` or `messages` is required. */
export interface ComposeOptions<M extends MessageLike = MessageLike> {
  /** Whose memories. Always given, never guessed. */
  readonly userId: string;
  /** An agent with its own memories of this user. */
  readonly agentId?: string | null | undefined;
  /** Names the conversation; its prompts extend each other. Absent: a single prompt. */
  readonly conversationId?: string | null | undefined;
  /** Names this request for retries, eviction and feedback. A repeated id returns the stored answer. */
  readonly requestId?: string | null | undefined;
  /** The search query. Default: the last user message. */
  readonly query?: string | null | undefined;
  /** Plain chat history, ending with the question; without injected memories. */
  readonly messages?: readonly M[] | null | undefined;
  /** The API of the messages. Default: by what only one API has (items, tool blocks), else `chat`. */
  readonly format?: MessageFormat | null | undefined;
  /** Which messages the prompt has (docs/windows.md). */
  readonly history?: HistoryName | null | undefined;
  /** Average tokens of an epoch's prompts, as a multiple of what the windows alone would come to. Default: 2. */
  readonly historyRatio?: number | null | undefined;
  /** Mem0's result, unmodified, in any of its shapes; absent: the configured source is searched. */
  readonly memories?: unknown;
  /** System instructions, placed before the messages: a text, or text parts. */
  readonly system?: string | readonly InstructionPart[] | null | undefined;
  /** How many memories to search for. */
  readonly topK?: number | null | undefined;
  /** Search only memories of this run of Mem0's; `*`: of any. Absent: those of no run. */
  readonly runId?: string | null | undefined;
  /** Search only memories of this application of Mem0's. */
  readonly appId?: string | null | undefined;
  /** Further conditions of the search, in Mem0's form. */
  readonly filters?: Readonly<Record<string, unknown>> | null | undefined;
  /** Whether the search gives memories whose expiration date is past. */
  readonly showExpired?: boolean | null | undefined;
  /** Most memory tokens of this turn. */
  readonly memoryBudgetTokens?: number | null | undefined;
  /** The same as an average over the user's prompts, as a multiple of the tokens of the retrieved memories. */
  readonly memoryBudgetRatio?: number | null | undefined;
  /** The ordering policy. */
  readonly policy?: PolicyName | null | undefined;
  /** What later prompts of the conversation keep of this turn's memories. */
  readonly retention?: RetentionName | null | undefined;
  /** Default: true. */
  readonly annotations?: boolean | AnnotationOptions | null | undefined;
  /** The engine family of the prompt. */
  readonly engine?: EngineName | null | undefined;
  /** Where memories go after a tool's result. */
  readonly toolMemories?: ToolMemories | null | undefined;
  /** Most tokens of the prompt, by the engine's count as far as feedback shows it. */
  readonly maxPromptTokens?: number | null | undefined;
  /** What a block gives of its memory, as in `[{date}: ]{memory}` (docs/blocks.md). */
  readonly blockTemplate?: string | null | undefined;
  /** IANA time zone of the times in blocks. */
  readonly timeZone?: string | null | undefined;
  /** Which texts are given once. */
  readonly dedupe?: DedupeName | null | undefined;
  /** Engine replicas with their own prefix cache, by name: the prompt is routed to one. */
  readonly workers?: readonly string[] | null | undefined;
  /** Also return the prompt as one text. */
  readonly prompt?: boolean | null | undefined;
  /** Look only: nothing of the prompt stays, no turn, no expectation, no figures. */
  readonly dryRun?: boolean | null | undefined;
  /** Whether the prompt counts in usage and metrics. Default: yes. */
  readonly recordUsage?: boolean | null | undefined;
}

/** Texts to add to the memory source. */
export interface AddOptions {
  readonly userId: string;
  /** The agent whose memories; absent: the user's own. */
  readonly agentId?: string | null | undefined;
  /** One text each, stored unmodified. */
  readonly memories: readonly string[];
  /** Stored with each memory, where the source can. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** Requests whose cache the engine dropped. */
export interface EvictOptions {
  readonly requestIds: readonly string[];
}

/** What the engine reported of a request. */
export interface FeedbackOptions {
  readonly userId: string;
  /** The agent that it was composed for. */
  readonly agentId?: string | null | undefined;
  readonly requestId: string;
  /** Prompt tokens by the engine's count. */
  readonly promptTokens?: number | null | undefined;
  /** Cached prompt tokens by the engine's count. Absent: unknown, not zero. */
  readonly cachedTokens?: number | null | undefined;
  /** Time to first token, in milliseconds. */
  readonly ttftMs?: number | null | undefined;
  /** The model that answered: the dashboard counts the prompt under it. Absent: under the one it was composed for. */
  readonly model?: string | null | undefined;
}

/** A memory to forget, by its id in its source. */
export interface ForgetMemoryOptions {
  readonly userId: string;
  readonly memoryId: string;
}

/** A user to forget. */
export interface ForgetUserOptions {
  readonly userId: string;
}
