import type { ChatMessage, PlacedMemory, Plan, RequestId, Warning } from "../../core/index.js";
import type { Instructions, MessageLike } from "../base/message-format.js";

/** What to add to the request to the engine. */
export interface EngineHints {
  /** Fields of the engine's request body. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Headers; the request id makes the engine's eviction events name this request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A composed prompt as callers receive it. */
export interface ComposeAnswer {
  readonly requestId: RequestId;
  /** With the engine's cache marks, if it has any; in the format of the request's messages. */
  readonly messages: readonly ChatMessage[];
  /** The request's instructions, where its messages are Anthropic's: their API takes them beside the messages. */
  readonly system?: Instructions;
  /** The prompt as one text, if requested: for completion endpoints without a chat template. */
  readonly prompt?: string;
  /** Every distinct memory of the request: this turn's in prompt order, then those of earlier turns. */
  readonly blocks: readonly PlacedMemory[];
  /** This turn's annotation lines, as printed in the prompt. */
  readonly annotations: readonly string[];
  readonly plan: Plan;
  readonly engine: EngineHints;
  /** The worker to send it to; absent where none were named. Its affinity headers are among the engine's. */
  readonly worker?: string;
  readonly warnings: readonly Warning[];
}

/** What a prompt for a `query` is made of: instructions, where there are any, and the question. */
export type QueryMessage = {
  role: "system" | "user";
  content: string | { type: "text"; text: string }[];
};

/** An answer whose messages have the caller's own message type. */
export type ComposedPrompt<M extends MessageLike = ChatMessage> = Omit<ComposeAnswer, "messages"> & {
  readonly messages: M[];
};
