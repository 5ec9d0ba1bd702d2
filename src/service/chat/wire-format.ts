import type { ChatMessage } from "../../core/index.js";
import { type MessagesBody, withComposedMessages } from "../../engines/anthropic/messages-as-chat.js";
import type { AnswerObserver } from "./answer-observer.js";
import { ObservedAnswer } from "./observed-answer.js";
import { ObservedMessage } from "./observed-message.js";

export { chatOfMessages } from "../../engines/anthropic/messages-as-chat.js";

/** A client's API: how a body holds messages, and how answers are read. Everything else of a chat is the same in all. */
export interface WireFormat {
  /** The path of its calls, relative to the engine's base URL. */
  readonly path: string;
  /** Whether it is OpenAI's chat completions: warm-up, adaptive depth and the usage of streams are asked for in their fields only. */
  readonly isChatCompletions: boolean;
  /** The body with composed messages in place of the client's. */
  withMessages(
    body: Readonly<Record<string, unknown>>,
    messages: readonly ChatMessage[],
  ): Readonly<Record<string, unknown>>;
  observe(): AnswerObserver;
}

/** OpenAI's chat completions. */
export const CHAT_COMPLETIONS: WireFormat = {
  path: "chat/completions",
  isChatCompletions: true,
  withMessages: (body, messages) => ({ ...body, messages }),
  observe: () => new ObservedAnswer(),
};

/** Anthropic's Messages API. */
export const MESSAGES: WireFormat = {
  path: "messages",
  isChatCompletions: false,
  withMessages: (body: MessagesBody, messages) => withComposedMessages(body, messages),
  observe: () => new ObservedMessage(),
};
