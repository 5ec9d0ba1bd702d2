/*
 * usage: what answered prompts cost and why they missed, as numbers.
 * Enters: a prompt's plan, what was known of the prompt before it, the engine's report. Leaves: one record per prompt with its reuse and
 * the causes of what missed, and sums of them. No text of memories or messages.
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

/** What happened at a time, beside prompts. */
export const USAGE_NOTE_KINDS = ["engine_restart", "policy_change", "service_start", "deploy", "alert"] as const;
export type UsageNoteKind = (typeof USAGE_NOTE_KINDS)[number];

/** How far back a view of the usage goes: 60 minutes, 24 hours or 31 days. */
export const USAGE_WINDOWS = ["hour", "day", "month"] as const;
export type UsageWindow = (typeof USAGE_WINDOWS)[number];
