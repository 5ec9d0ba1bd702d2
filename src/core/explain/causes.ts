import type { EpochReason } from "../conversation/epoch.js";
import type { FixedRetention } from "../conversation/turn.js";
import type { Label, RequestId } from "../text/ids.js";

/*
 * Why prompts miss, in one place. When a prompt is composed and reported, its missed tokens are counted under a {@link UsageCause}, by what
 * is known then without reading other prompts. An explanation, made on request from stored prompts, says more: where the prompt differs from
 * the nearest earlier one ({@link MissCause}), why the index expected less of what they share ({@link WhyLeft}), and why the engine had less
 * than expected ({@link WhyLess}). `rewritten_history`, `changed_instructions`, `changed_order`, `new_memories`, `new_epoch` and `retention`
 * are of the first kind, `expired` and `displaced` of the second, `below_minimum`, `engine_restart` and `in_flight` of the third, `evicted` of both.
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
  | { readonly kind: "other_instructions" }
  /** Only the question differs. */
  | { readonly kind: "other_question" }
  /** A plain message of the same conversation differs: it was edited, regenerated or truncated. */
  | { readonly kind: "edited_history" }
  /** A plain message differs; the nearest earlier prompt belongs to another conversation, or to none. */
  | { readonly kind: "other_history" }
  /** One of the prompts started afresh: it contains nothing of what earlier turns injected. */
  | { readonly kind: "fresh_start"; readonly where: "here" | "there" }
  /** The retention of an earlier turn dropped what it had injected. */
  | {
      readonly kind: "not_retained";
      readonly retention: FixedRetention;
      readonly what: "annotations" | "memories";
    }
  /** A memory in one of the prompts was forgotten since it was sent; its label is not stored. */
  | { readonly kind: "forgotten_memory" }
  /** A memory's text was updated: the new block is in the place of the old one. */
  | { readonly kind: "updated_text"; readonly was: Label; readonly is: Label }
  /** A block that the earlier prompt does not have here; there `instead` is in its place, which may come later here. */
  | {
      readonly kind: "new_memory";
      readonly label: Label;
      readonly instead: Label | null;
      readonly insteadMoved: boolean;
    }
  /** A block of the earlier prompt was not retrieved this time; `instead` is in its place. */
  | { readonly kind: "missing_memory"; readonly label: Label; readonly instead: Label | null }
  /** Both prompts have both blocks, in another order. */
  | { readonly kind: "other_order"; readonly here: Label; readonly there: Label }
  /** The same blocks, but an annotation after them differs: the ranking, or the reference to earlier blocks. */
  | { readonly kind: "other_annotations" };

/** Why something was no longer expected to be cached, as far as known. */
export type WhyLeft =
  /** The engine reported the earlier prompt's eviction. */
  | { readonly kind: "evicted" }
  /** A memory of the earlier prompt was forgotten, and everything after it left the index. */
  | { readonly kind: "forgotten" }
  /** It was unused for longer than the configured TTL. */
  | { readonly kind: "ttl"; readonly ttlMs: number }
  /** An engine's report of a request in between missed it. */
  | { readonly kind: "reported"; readonly requestId: RequestId }
  /** More tokens than the engine's cache holds were served since, to any user, or may have been. */
  | { readonly kind: "capacity"; readonly tokens: number }
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
