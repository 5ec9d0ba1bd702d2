import type { ChatMessage } from "../../core/index.js";

/** What to generate. */
export interface GenerationRequest {
  readonly messages: readonly ChatMessage[];
  /** Most tokens of the answer; default: the rest of the context. */
  readonly maxTokens?: number | undefined;
  /** 0 (default): greedy. */
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  /** Makes sampling repeatable. */
  readonly seed?: number | undefined;
  /**
   * Returns each token's log probability and those of so many likeliest alternatives, unscaled: the temperature has to be 0 or 1, and tokens
   * are drawn from the whole vocabulary. Absent: none.
   */
  readonly topLogprobs?: number | undefined;
  /** Stop texts, not part of the answer. */
  readonly stop?: readonly string[] | undefined;
  /** Requests share cached tokens only with requests of the same salt; absent is a salt of its own. */
  readonly cacheSalt?: string | undefined;
  /** Whose request it is: the queue is round-robin over callers. */
  readonly caller?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Measured usage of one request. */
export interface GenerationUsage {
  readonly promptTokens: number;
  /** Prompt tokens reused from the slot's KV cache. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Milliseconds in the queue. */
  readonly queueMs: number;
  /** Milliseconds from the request to the first token, queue included; null without a token. */
  readonly ttftMs: number | null;
  /** Milliseconds from the request to the last token. */
  readonly totalMs: number;
}

/** A token, and the natural logarithm of its probability. */
export interface LikelyToken {
  readonly text: string;
  readonly logprob: number;
}

/** A token of an answer. */
export interface AnswerToken extends LikelyToken {
  /** The likeliest alternatives, likeliest first. */
  readonly top: readonly LikelyToken[];
}

/** A piece of an answer's text, or its end. */
export type GenerationEvent =
  /** `tokens`: those since the last event, where log probabilities were requested. */
  | { readonly kind: "text"; readonly text: string; readonly tokens?: readonly AnswerToken[] }
  | { readonly kind: "end"; readonly finishReason: "stop" | "length"; readonly usage: GenerationUsage };

/** A model that answers chats. */
export interface ChatModel {
  /** Name of the model, as `/v1/models` gives it. */
  readonly model: string;
  /** Tokens of one prompt and its answer. */
  readonly contextTokens: number;
  /**
   * Answers a chat; `end` comes once and last. Throws `ContextLengthError`, `QueueFullError`, or the signal's reason. A reader that stops
   * ends the generation.
   */
  generate(request: GenerationRequest): AsyncGenerator<GenerationEvent, void, undefined>;
}
