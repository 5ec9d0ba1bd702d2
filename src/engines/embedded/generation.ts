import type { ChatMessage } from "../../core/index.js";
import { largest, smallest } from "../../core/text/collections.js";

/** Why the embedded engine failed. */
export type EmbeddedEngineErrorCode =
  | "package_missing"
  | "binary_missing"
  | "model_unreadable"
  | "context_too_large"
  | "context_length_exceeded"
  | "queue_full"
  | "engine_closed";

/** The embedded engine cannot start, or rejected a request. `code` is for programs; the message quotes no prompt. */
export class EmbeddedEngineError extends Error {
  override readonly name: string = "EmbeddedEngineError";
  constructor(
    readonly code: EmbeddedEngineErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The prompt and one token of an answer do not fit into a slot. */
export class ContextLengthError extends EmbeddedEngineError {
  override readonly name = "ContextLengthError";
  constructor(
    readonly promptTokens: number,
    readonly contextTokens: number,
  ) {
    super(
      "context_length_exceeded",
      `The prompt has ${promptTokens} tokens, and this engine's context holds ${contextTokens}, the answer included.`,
    );
  }
}

/** The queue is full. No waiting request is dropped for a newer one. */
export class QueueFullError extends EmbeddedEngineError {
  override readonly name = "QueueFullError";
  constructor(
    /** Waiting requests: the caller's own, or all. */
    readonly waiting: number,
    readonly whose: "caller" | "all",
  ) {
    super(
      "queue_full",
      `The queue is full: ${waiting} requests${whose === "caller" ? " of this caller" : ""} are waiting. Try again later.`,
    );
  }
}

/** Converts tokens into text; `before`: the tokens before them. */
export type Detokenize<Token> = (tokens: readonly Token[], before: readonly Token[]) => string;

const INCOMPLETE = "\ufffd";
/** No character takes more tokens; a longer run is not valid UTF-8, and is emitted as it is. */
const LONGEST_CHARACTER = 8;
/** Tokens of context, which some tokenizers need for a leading space. */
const BEFORE = 8;

/** Detokenizes a stream: a character spread over several tokens is emitted whole. */
export class AnswerText<Token> {
  #before: readonly Token[] = [];
  #pending: readonly Token[] = [];

  constructor(readonly detokenize: Detokenize<Token>) {}

  /** The text that a token completes; empty while a character is incomplete. */
  push(token: Token): string {
    this.#pending = [...this.#pending, token];
    const text = this.detokenize(this.#pending, this.#before);
    return text.endsWith(INCOMPLETE) && this.#pending.length < LONGEST_CHARACTER ? "" : this.#handOn(text);
  }

  /** What is left at the end, complete or not. */
  rest(): string {
    return this.#pending.length === 0 ? "" : this.#handOn(this.detokenize(this.#pending, this.#before));
  }

  #handOn(text: string): string {
    this.#before = [...this.#before, ...this.#pending].slice(-BEFORE);
    this.#pending = [];
    return text;
  }
}

/** Text that can be emitted, and whether a stop text was reached. */
export interface Handed {
  readonly text: string;
  readonly stopped: boolean;
}

/**
 * Truncates a growing text at the first stop text. A possible prefix of one is held back until it is decided. Reads each character once,
 * whatever the stop texts are (Knuth, Morris, Pratt).
 */
export class StopText {
  #held = "";
  readonly #stops: readonly Searched[];

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== "").map((stop) => new Searched(stop));
  }

  /** Takes more text; returns what can be emitted. */
  push(text: string): Handed {
    const seen = this.#held + text;
    const starts = this.#stops.map((stop) => stop.push(text)).filter((start) => start !== null);
    if (starts.length > 0) {
      this.#held = "";
      // From the newest text's start; negative: before it.
      return { text: seen.slice(0, seen.length - text.length + smallest(starts)), stopped: true };
    }
    const held = largest(
      this.#stops.map(({ matched }) => matched),
      0,
    );
    this.#held = seen.slice(seen.length - held);
    return { text: seen.slice(0, seen.length - held), stopped: false };
  }

  /** What was held back, at the end. */
  rest(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}

/** One stop text's search. */
class Searched {
  /** Length of the stop text's prefix that the text ends with. */
  matched = 0;
  /** The failure function: for each prefix of the stop text, its longest proper prefix that is also its suffix. */
  readonly #shorter: Int32Array;

  constructor(private readonly stop: string) {
    this.#shorter = new Int32Array(stop.length);
    for (let at = 1, length = 0; at < stop.length; at++) {
      while (length > 0 && stop[at] !== stop[length]) length = this.#shorter[length - 1] ?? 0;
      if (stop[at] === stop[length]) length++;
      this.#shorter[at] = length;
    }
  }

  /** Offset, from this text's start, of the first stop text that it completes; null for none. */
  push(text: string): number | null {
    let found: number | null = null;
    for (let at = 0; at < text.length; at++) {
      while (this.matched > 0 && text[at] !== this.stop[this.matched])
        this.matched = this.#shorter[this.matched - 1] ?? 0;
      if (text[at] === this.stop[this.matched]) this.matched++;
      if (this.matched < this.stop.length) continue;
      found ??= at + 1 - this.stop.length;
      this.matched = this.#shorter[this.matched - 1] ?? 0;
    }
    return found;
  }
}

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
