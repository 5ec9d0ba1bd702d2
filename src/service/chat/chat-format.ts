import type { ChatMessage } from "../../core/index.js";
import type { EngineAdapter } from "../../engines/adapters/engine-adapter.js";
import { type ChatDialect, toChatCompletion } from "../../engines/anthropic/chat-request.js";
import { type MessagesBody, withComposedMessages } from "../../engines/anthropic/messages-as-chat.js";
import { chatHeaders } from "../../engines/anthropic/messages-upstream.js";
import { record } from "../../engines/upstream/json-values.js";
import type { HeaderPair } from "../../engines/upstream/upstream-headers.js";
import type { ComposeAnswer } from "../compose/composed-prompt.js";
import type { AnswerReader } from "./answer-reader.js";
import { ObservedAnswer } from "./observed-answer.js";
import { ObservedMessage } from "./observed-message.js";

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
