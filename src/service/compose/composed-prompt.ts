import type { ChatMessage } from "../../core/index.js";
import type { MessageLike } from "../base/message-format.js";
import type { ComposeAnswer } from "./compose-answer.js";

/** What a prompt for a `query` is made of: instructions, where there are any, and the question. */
export type QueryMessage = {
  role: "system" | "user";
  content: string | { type: "text"; text: string }[];
};

/** An answer whose messages have the caller's own message type. */
export type ComposedPrompt<M extends MessageLike = ChatMessage> = Omit<ComposeAnswer, "messages"> & {
  readonly messages: M[];
};
