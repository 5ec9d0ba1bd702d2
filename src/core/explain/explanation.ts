import type { Digest, Label, RequestId } from "../text/ids.js";
import type { MissCause } from "./miss-cause.js";
import type { Segment } from "./prompt-outline.js";

/** The earlier prompt that shares most with the explained one, counted in tokens from the start. */
export interface NearestPrompt {
  /** Null where its name was given to a later request. */
  readonly requestId: RequestId | null;
  /** Which one it belongs to; none: it is a single prompt. */
  readonly conversation: "same" | "other" | "none";
  /** Milliseconds between the two, as they were composed. */
  readonly ageMs: number;
  readonly evicted: boolean;
  readonly totalTokens: number;
}

/** What stands at a place in a prompt: never its text. */
export interface PlaceInPrompt {
  readonly kind: Segment["kind"];
  /** The role of the message; null where it was erased. Sections stand in messages of users. */
  readonly role: string | null;
  /** Of a plain message; null for a part of a section. */
  readonly digest: Digest | null;
  /** Of a block; null for anything else. */
  readonly label: Label | null;
}

/** Where two prompts first differ. */
export interface Difference {
  /** The message, counted from 0. */
  readonly message: number;
  /** Tokens before it: the first of them that differs has this number, counted from 0. Estimated. */
  readonly token: number;
  /** The block, counted from 0 among those of its section; null where no block stands here. */
  readonly block: number | null;
  /** Null: this prompt ends here. */
  readonly here: PlaceInPrompt | null;
  /** Null: the earlier prompt ends here. */
  readonly there: PlaceInPrompt | null;
}

/** What is known of why something was not expected to be cached any more. */
export type WhyLeft =
  /** The engine said that it dropped the earlier prompt. */
  | { readonly kind: "evicted" }
  /** A memory of the earlier prompt was forgotten, and what stood behind it left the index with it. */
  | { readonly kind: "forgotten" }
  /** It was not used for longer than the configured time. */
  | { readonly kind: "ttl"; readonly ttlMs: number }
  /** An engine's report of a request in between showed that less was there. */
  | { readonly kind: "reported"; readonly requestId: RequestId }
  /** More was served since than the configured tokens, or may have been. */
  | { readonly kind: "capacity"; readonly tokens: number }
  /** The engine keeps the last prompts of so many slots, and later ones took their place. */
  | { readonly kind: "slots"; readonly slots: number }
  /** Nothing that is stored says why; the index is bounded, too. */
  | { readonly kind: "unknown" };

/** Whether what the two prompts share was still expected to be cached. */
export type IndexVerdict =
  /** There was nothing to expect. */
  | { readonly kind: "nothing_shared" }
  | { readonly kind: "expected" }
  /** Less was expected than the index knew of once. */
  | { readonly kind: "left"; readonly tokens: number; readonly because: WhyLeft };

/** The likeliest reason why an engine had less than was expected. */
export type WhyLess =
  /** A shared prefix of fewer tokens is not cached. */
  | { readonly kind: "below_minimum"; readonly minimumTokens: number }
  /** The cache holds whole blocks of so many tokens. */
  | { readonly kind: "block_rounding"; readonly blockTokens: number }
  /** It said that it dropped the earlier prompt. */
  | { readonly kind: "evicted" }
  /** The earlier prompt had just been sent and may not have been written yet. */
  | { readonly kind: "in_flight" }
  /** Nothing hit at an engine that bills writes: those cache only where a breakpoint says so. */
  | { readonly kind: "no_breakpoint" }
  | { readonly kind: "unknown" };

/** Whether the engine had what was expected. */
export type EngineVerdict =
  /** It did not say. */
  | { readonly kind: "not_reported" }
  /** Within what its steps and the estimate leave open. */
  | { readonly kind: "as_expected" }
  | { readonly kind: "more"; readonly tokens: number }
  | { readonly kind: "less"; readonly tokens: number; readonly because: WhyLess };

/** Milliseconds or money, as the engine's cost model has it. */
export interface PromptPrice {
  readonly unit: "ms" | "money";
  readonly amount: number;
}

/** So many tokens that were computed and need not have been, and what they cost. */
export interface Waste {
  readonly tokens: number;
  readonly price: PromptPrice;
}

/** Why a prompt hit as far as it did. Digests, labels and numbers: no text of memories or messages. */
export interface Explanation {
  readonly requestId: RequestId;
  /** Earlier prompts that it was compared with. */
  readonly compared: number;
  /** Whether those were all there were; else a nearer one may have been left out. */
  readonly comparedAll: boolean;
  readonly nearest: NearestPrompt | null;
  readonly difference: Difference | null;
  readonly cause: MissCause;
  /** All but `reported` are estimates of memstem's counter. */
  readonly tokens: {
    readonly total: number;
    /** From the start, as in the nearest earlier prompt: what could have hit. */
    readonly shared: number;
    readonly expected: number;
    /** What the engine reported, in its own count; null where it did not. */
    readonly reported: number | null;
  };
  readonly index: IndexVerdict;
  readonly engine: EngineVerdict;
  /** Shared with the earlier prompt and not cached. */
  readonly lost: Waste;
  /** In both prompts, but behind the difference: cached too, had they stood before it. */
  readonly behind: Waste;
}
