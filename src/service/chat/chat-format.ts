import type { ChatMessage } from "../../core/index.js";
import type { EngineAdapter } from "../../engines/adapters/engine-adapter.js";
import { type MessagesBody, withComposedMessages } from "../../engines/anthropic/messages-as-chat.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import type { AnswerReader } from "./answer-reader.js";
import { ObservedAnswer } from "./observed-answer.js";
import { ObservedMessage } from "./observed-message.js";

/** A body of a client or for the engine. */
export type ProxiedBody = Readonly<Record<string, unknown>>;

/** A wire format of the proxy: where a prompt is sent, in what body, and how the answer is read. */
export interface ChatFormat {
  /** Relative to the API's base URL: `chat/completions`. */
  readonly path: string;
  /** Whether it is chat completions: only there are usage requested, prefixes warmed up and depths probed. */
  readonly isChat: boolean;
  /**
   * The body for the engine.
   *
   * @param own the client's, without memstem's fields
   * @param messages the composed prompt; null: the client's own messages
   */
  bodyOf(own: ProxiedBody, messages: readonly ChatMessage[] | null): ProxiedBody;
  /** Reads the usage of its answers. Absent: the engine's adapter does. */
  readonly readUsage?: EngineAdapter["readUsage"];
  /** Reads one answer. */
  answerReader(): AnswerReader;
  /** Called once an answer was read as far as it came. */
  answered?(reader: AnswerReader, composed: Pick<ComposeAnswer, "requestId" | "messages"> | null): void;
}

/** OpenAI's chat completions. */
export const CHAT_COMPLETIONS: ChatFormat = {
  path: "chat/completions",
  isChat: true,
  bodyOf: (own, messages) => (messages === null ? own : { ...own, messages }),
  answerReader: () => new ObservedAnswer(),
};

/** The format of a request, chat completions by default. */
export function formatOf({ format }: { readonly format?: ChatFormat | undefined }): ChatFormat {
  return format ?? CHAT_COMPLETIONS;
}

/** Anthropic's Messages API. */
export const MESSAGES: ChatFormat = {
  path: "messages",
  isChat: false,
  bodyOf: (own: MessagesBody, messages) => (messages === null ? own : withComposedMessages(own, messages)),
  answerReader: () => new ObservedMessage(),
};
