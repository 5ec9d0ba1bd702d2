import type { ChatMessage } from "../../core/index.js";

/** What to generate. */
export interface GenerationRequest {
  readonly messages: readonly ChatMessage[];
  /** Most tokens of the answer; default: what the context has room for. */
  readonly maxTokens?: number | undefined;
  /** 0 (default) takes the likeliest token each time. */
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  /** Makes an answer with a temperature repeatable. */
  readonly seed?: number | undefined;
  /**
   * Has each token's log probability told, and those of so many of the likeliest in its place, as the model has them: so a temperature is
   * 0 or 1 with it, and tokens are drawn from all. Absent: none.
   */
  readonly topLogprobs?: number | undefined;
  /** Texts that end the answer; they are not part of it. */
  readonly stop?: readonly string[] | undefined;
  /** Requests share cached tokens only with requests of the same salt; absent is a salt of its own. */
  readonly cacheSalt?: string | undefined;
  /** Whose turn it is, where requests wait: callers take turns, however many requests each has. */
  readonly caller?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a request took, measured and not estimated. */
export interface GenerationUsage {
  readonly promptTokens: number;
  /** Tokens of the prompt that were in the slot's KV cache and were not computed again. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Milliseconds before a slot was free. */
  readonly queueMs: number;
  /** Milliseconds from the request to the first token, waiting included; null where no token came. */
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
  /** The likeliest tokens in its place, likeliest first. */
  readonly top: readonly LikelyToken[];
}

/** One step of an answer: some of its text, or that it has ended. */
export type GenerationEvent =
  /** `tokens`: those since the last event, where their log probabilities were asked for. */
  | { readonly kind: "text"; readonly text: string; readonly tokens?: readonly AnswerToken[] }
  | { readonly kind: "end"; readonly finishReason: "stop" | "length"; readonly usage: GenerationUsage };

/** Something that answers chats. */
export interface ChatModel {
  /** Name of the model, as `/v1/models` gives it. */
  readonly model: string;
  /** Tokens of one prompt and its answer. */
  readonly contextTokens: number;
  /**
   * Answers a chat. The end comes once and last. Throws `ContextLengthError`, `QueueFullError`, or the signal's reason; whoever stops
   * reading ends the generation.
   */
  generate(request: GenerationRequest): AsyncGenerator<GenerationEvent, void, undefined>;
}
