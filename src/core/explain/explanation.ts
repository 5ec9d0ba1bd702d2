import type { FixedRetention } from "../conversation/conversation.js";
import type { EpochReason } from "../conversation/epoch.js";
import type { Digest, Label, RequestId } from "../text/ids.js";
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
  /** All except `reported` are estimates of memprefix's counter. */
  readonly tokens: {
    readonly total: number;
    /** The prefix shared with the nearest earlier prompt: the maximum possible hit. */
    readonly shared: number;
    readonly expected: number;
    /** The engine's report of the prompt alone, in its own tokens; null for none. */
    readonly reported: number | null;
  };
  readonly index: IndexVerdict;
  readonly engine: EngineVerdict;
  /** In the shared prefix, but not cached. */
  readonly lost: Waste;
  /** In both prompts after the first difference: would be cached too if placed before it. */
  readonly behind: Waste;
}

/*
 * Why prompts miss, in one place. When a prompt is composed and reported, its missed tokens are counted under a {@link UsageCause}, by what
 * is known then without reading other prompts. An explanation, made on request from stored prompts, says more: where the prompt differs from
 * the nearest earlier one ({@link MissCause}), why the index expected less of what they share ({@link WhyLeft}), and why the engine had less
 * than expected ({@link WhyLess}). What both know has one name.
 */

/**
 * Why tokens that were sent before are computed again:
 * - `rewritten_history`: the client edited, regenerated or cut messages of the conversation;
 * - `changed_instructions`: the instructions at the prompt's head differ from the prompt's before;
 * - `changed_order`: memories that earlier prompts had stand after others now;
 * - `new_memories`: a memory that no earlier prompt had stands in front of others that they had;
 * - `new_epoch`: a new epoch of a history that was cut began;
 * - `retention`: memories or annotations of an earlier turn were dropped;
 * - `expired`: the prefix was unused for longer than the cache's configured lifetime;
 * - `evicted`: the engine named it as evicted, or its slots held it no longer;
 * - `displaced`: other prompts, of whoever, took its place in the engine's cache;
 * - `below_minimum`: it is shorter than what the provider caches;
 * - `engine_restart`: the engine held nothing any more of several users' prompts;
 * - `in_flight`: the prompt before was sent so shortly before that it was not written yet;
 * - `unknown`: none of these is known to be the reason.
 */
export const USAGE_CAUSES = [
  "rewritten_history",
  "changed_instructions",
  "changed_order",
  "new_memories",
  "new_epoch",
  "retention",
  "expired",
  "evicted",
  "displaced",
  "below_minimum",
  "engine_restart",
  "in_flight",
  "unknown",
] as const;
export type UsageCause = (typeof USAGE_CAUSES)[number];

/** Tokens that missed for one reason. */
export interface CausedMiss {
  readonly cause: UsageCause;
  /** Estimated by the token counter. */
  readonly tokens: number;
}

/** Why a prompt differs from the nearest earlier one. "Here" is the prompt, "there" the earlier one. */
export type MissCause =
  /** The scope has no earlier prompt to compare with. */
  | { readonly kind: "first_prompt" }
  /** It extends the whole earlier prompt: the best case. */
  | { readonly kind: "appended" }
  /** It is a prefix of the earlier prompt, or equal. */
  | { readonly kind: "repeated" }
  /** A new epoch of a window's prompts begins with it. */
  | { readonly kind: "new_epoch"; readonly reason: EpochReason }
  /** The instructions differ, in content or number of messages. */
  | { readonly kind: "changed_instructions" }
  /** Only the question differs. */
  | { readonly kind: "other_question" }
  /** A plain message of the same conversation differs: it was edited, regenerated or truncated. */
  | { readonly kind: "rewritten_history" }
  /** A plain message differs; the nearest earlier prompt belongs to another conversation, or to none. */
  | { readonly kind: "other_history" }
  /** One of the prompts started afresh: it contains nothing of what earlier turns injected. */
  | { readonly kind: "fresh_start"; readonly where: "here" | "there" }
  /** The retention of an earlier turn dropped what it had injected. */
  | {
      readonly kind: "retention";
      readonly retention: FixedRetention;
      readonly what: "annotations" | "memories";
    }
  /** A memory in one of the prompts was forgotten since it was sent; its label is not stored. */
  | { readonly kind: "forgotten_memory" }
  /** A memory's text was updated: the new block is in the place of the old one. */
  | { readonly kind: "updated_text"; readonly was: Label; readonly is: Label }
  /** A block that the earlier prompt does not have here; there `instead` is in its place, which may come later here. */
  | {
      readonly kind: "new_memories";
      readonly label: Label;
      readonly instead: Label | null;
      readonly insteadMoved: boolean;
    }
  /** A block of the earlier prompt was not retrieved this time; `instead` is in its place. */
  | { readonly kind: "missing_memory"; readonly label: Label; readonly instead: Label | null }
  /** Both prompts have both blocks, in another order. */
  | { readonly kind: "changed_order"; readonly here: Label; readonly there: Label }
  /** The same blocks, but an annotation after them differs: the ranking, or the reference to earlier blocks. */
  | { readonly kind: "other_annotations" };

/** Why something was no longer expected to be cached, as far as known. */
export type WhyLeft =
  /** The engine reported the earlier prompt's eviction. */
  | { readonly kind: "evicted" }
  /** A memory of the earlier prompt was forgotten, and everything after it left the index. */
  | { readonly kind: "forgotten" }
  /** It was unused for longer than the configured TTL. */
  | { readonly kind: "expired"; readonly ttlMs: number }
  /** An engine's report of a request in between missed it. */
  | { readonly kind: "reported"; readonly requestId: RequestId }
  /** More tokens than the engine's cache holds were served since, to any user, or may have been. */
  | { readonly kind: "displaced"; readonly tokens: number }
  /** The engine keeps one prompt per slot, and later prompts replaced it. */
  | { readonly kind: "slots"; readonly slots: number }
  /** Not known from stored rows; it may have been evicted by the bound of the index. */
  | { readonly kind: "unknown" };

/** The likeliest reason why the engine had less than expected. */
export type WhyLess =
  /** Shorter shared prefixes are not cached. */
  | { readonly kind: "below_minimum"; readonly minimumTokens: number }
  /** The cache stores whole blocks of so many tokens. */
  | { readonly kind: "block_rounding"; readonly blockTokens: number }
  /** The engine reported the earlier prompt's eviction. */
  | { readonly kind: "evicted" }
  /** The earlier prompt was just sent and perhaps not written yet. */
  | { readonly kind: "in_flight" }
  /** No hit at an engine that bills cache writes: it caches only at breakpoints. */
  | { readonly kind: "no_breakpoint" }
  | { readonly kind: "unknown" };
