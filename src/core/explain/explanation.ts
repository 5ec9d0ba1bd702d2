import type { Digest, Label, RequestId } from "../text/ids.js";
import type { MissCause, WhyLeft, WhyLess } from "./causes.js";
import type { Segment } from "./prompt-outline.js";

/** The earlier prompt with the longest shared prefix. */
export interface NearestPrompt {
  /** Null if its id was reassigned to a later request. */
  readonly requestId: RequestId | null;
  /** Its conversation relative to the explained prompt's; none: a single prompt. */
  readonly conversation: "same" | "other" | "none";
  /** Milliseconds between the two composes. */
  readonly ageMs: number;
  readonly evicted: boolean;
  readonly totalTokens: number;
}

/** The content at a place in a prompt, without its text. */
export interface PlaceInPrompt {
  readonly kind: Segment["kind"];
  /** The role of the message; null if it was erased. Sections are in users' messages. */
  readonly role: string | null;
  /** Digest of a plain message; null for a part of a section. */
  readonly digest: Digest | null;
  /** Label of a block; null for anything else. */
  readonly label: Label | null;
}

/** Where two prompts first differ. */
export interface Difference {
  /** Index of the message, from 0. */
  readonly message: number;
  /** Number of tokens before it, which is the index of the first differing token. Estimated. */
  readonly token: number;
  /** Index of the block in its section, from 0; null if there is no block here. */
  readonly block: number | null;
  /** Null: this prompt ends here. */
  readonly here: PlaceInPrompt | null;
  /** Null: the earlier prompt ends here. */
  readonly there: PlaceInPrompt | null;
}

/** Whether the shared prefix was still expected to be cached. */
export type IndexVerdict =
  /** No prefix is shared. */
  | { readonly kind: "nothing_shared" }
  | { readonly kind: "expected" }
  /** The index expected fewer tokens than it once held. */
  | { readonly kind: "left"; readonly tokens: number; readonly because: WhyLeft };

/** Whether the engine had what was expected. */
export type EngineVerdict =
  /** The engine did not report. */
  | { readonly kind: "not_reported" }
  /** Within the tolerance of the engine's steps and of the estimate. */
  | { readonly kind: "as_expected" }
  | { readonly kind: "more"; readonly tokens: number }
  | { readonly kind: "less"; readonly tokens: number; readonly because: WhyLess };

/** Milliseconds or money, by the engine's cost model. */
export interface PromptPrice {
  readonly unit: "ms" | "money";
  readonly amount: number;
}

/** Tokens that were computed and need not have been, with their cost. */
export interface Waste {
  readonly tokens: number;
  readonly price: PromptPrice;
}

/** Why a prompt hit as far as it did. Consists of digests, labels and numbers: no text of memories or messages. */
export interface Explanation {
  readonly requestId: RequestId;
  /** Number of earlier prompts it was compared with. */
  readonly compared: number;
  /** Whether those were all; if not, a nearer one may be missing. */
  readonly comparedAll: boolean;
  readonly nearest: NearestPrompt | null;
  readonly difference: Difference | null;
  readonly cause: MissCause;
  /** All except `reported` are estimates of memstem's counter. */
  readonly tokens: {
    readonly total: number;
    /** The prefix shared with the nearest earlier prompt: the maximum possible hit. */
    readonly shared: number;
    readonly expected: number;
    /** The engine's report, in its own tokens; null for none. */
    readonly reported: number | null;
  };
  readonly index: IndexVerdict;
  readonly engine: EngineVerdict;
  /** In the shared prefix, but not cached. */
  readonly lost: Waste;
  /** In both prompts after the first difference: would be cached too if placed before it. */
  readonly behind: Waste;
}
