/*
 * usage: what answered prompts cost and why they missed, as numbers.
 * Enters: a prompt's plan, what was known of the prompt before it, the engine's report. Leaves: one record per prompt with its reuse and
 * the causes of what missed, and sums of them. No text of memories or messages.
 */

import { type CacheReport, cachedOf, ownReport, reachOf } from "../context-index/cache-report.js";
import { cacheable, type EngineModel } from "../cost/engine-model.js";
import type { CausedMiss, UsageCause } from "../explain/explanation.js";

/** What happened at a time, beside prompts. */
export const USAGE_NOTE_KINDS = ["engine_restart", "policy_change", "service_start", "deploy"] as const;
export type UsageNoteKind = (typeof USAGE_NOTE_KINDS)[number];

/** How far back a view of the usage goes: 60 minutes, 24 hours or 31 days. */
export const USAGE_WINDOWS = ["hour", "day", "month"] as const;
export type UsageWindow = (typeof USAGE_WINDOWS)[number];

/** What a prompt should have continued, and what keeps it from that. */
export interface ReuseFacts {
  /** The newest earlier prompt of its conversation, or, of a single prompt, of its scope; null: none is known. */
  readonly before: {
    /** Tokens that the prompt could have had in common with it, at most; estimated. */
    readonly reusableTokens: number;
    /** Milliseconds between the two; null: not known. */
    readonly ageMs: number | null;
    /** Whether the engine named it as evicted. */
    readonly isEvicted: boolean;
  } | null;
  readonly hasOtherInstructions: boolean;
  readonly beganEpoch: boolean;
  /** The client's messages do not continue those of the prompt before. */
  readonly isRewritten: boolean;
  /** Memories or annotations of earlier turns were dropped. */
  readonly isDropped: boolean;
  /** Of a single prompt: tokens of blocks that earlier prompts had, and that are not expected to hit now … */
  readonly movedTokens: number;
  /** … and whether one that none had stands before them. */
  readonly hasNewInFront: boolean;
}

/** What the engine's cache is assumed to keep, as far as causes depend on it. */
export interface AssumedLimits {
  readonly minimumPrefixTokens: number;
  readonly ttlMs: number | null;
  /** What bounds it: tokens, of all prompts together, or slots; null: nothing that is known. */
  readonly bound: "tokens" | "slots" | null;
}

/** A prompt's tokens, and what became of them. All but the reported ones are estimates. */
export interface PromptUsage {
  readonly promptTokens: number;
  readonly expectedTokens: number;
  /** Of memories that were not retrieved. */
  readonly carriedTokens: number;
  /** Sent before, and not expected to hit when it was composed; null: nothing. */
  readonly planned: CausedMiss | null;
  /** Expected to hit, and not cached by the engine's report; null: nothing. */
  readonly unserved: CausedMiss | null;
  /** The engine's, of the prompt alone; null: it did not report. */
  readonly report: CacheReport | null;
  readonly firstTokenMs: number | null;
}

/** The usage of a prompt before its engine reported. */
export function composedUsage(
  tokens: Pick<PromptUsage, "promptTokens" | "expectedTokens" | "carriedTokens">,
  facts: ReuseFacts,
  limits: AssumedLimits,
): PromptUsage {
  const { promptTokens, expectedTokens } = tokens;
  // Whatever else differs: of so short a prompt nothing is cached.
  const cause = promptTokens < limits.minimumPrefixTokens ? "below_minimum" : plannedCause(facts, limits);
  const reusable = Math.min(facts.before?.reusableTokens ?? 0, promptTokens);
  const missed = Math.min(promptTokens - expectedTokens, Math.max(reusable - expectedTokens, facts.movedTokens));
  // What a continued prompt's estimate is off by is no miss.
  const isNoise = cause === "unknown" && missed <= promptTokens * PLAN_TOLERANCE;
  const planned = missed > 0 && !isNoise ? { cause, tokens: missed } : null;
  const { carriedTokens } = tokens;
  return { promptTokens, expectedTokens, carriedTokens, planned, unserved: null, report: null, firstTokenMs: null };
}

const PLAN_TOLERANCE = 0.02;

function plannedCause(facts: ReuseFacts, { ttlMs, bound }: Omit<AssumedLimits, "minimumPrefixTokens">): UsageCause {
  const { before } = facts;
  if (facts.hasOtherInstructions) return "changed_instructions";
  if (facts.beganEpoch) return "new_epoch";
  if (facts.isRewritten) return "rewritten_history";
  if (facts.isDropped) return "retention";
  if (before?.isEvicted === true) return "evicted";
  if (ttlMs !== null && before?.ageMs != null && before.ageMs >= ttlMs) return "expired";
  if (facts.movedTokens > 0) return facts.hasNewInFront ? "new_memories" : "changed_order";
  if (bound === null) return "unknown";
  return bound === "tokens" ? "displaced" : "evicted";
}

/** What is known of a report beside its numbers. */
export interface ReportFacts {
  readonly report: CacheReport | null;
  readonly firstTokenMs: number | null;
  /** What the engine caches at least, by the configured model: less what it counts besides the prompt. */
  readonly minimumPrefixTokens: number;
  /** Known reason for which the engine had less than expected; null: none. */
  readonly because: "evicted" | "in_flight" | "engine_restart" | null;
}

/** The usage with the engine's report. One with other numbers replaces an earlier one; a repeated one changes no tokens. */
export function reportedUsage(usage: PromptUsage, facts: ReportFacts): PromptUsage {
  const { report, because } = facts;
  const firstTokenMs = facts.firstTokenMs ?? usage.firstTokenMs;
  if (report === null) return { ...usage, firstTokenMs };
  const own = ownReport(report, usage.promptTokens);
  if (isSameReport(own, usage.report)) {
    // Its reason may show later: a restart does by the reports of others.
    const isKnown = usage.unserved !== null && because !== null;
    const unserved = isKnown ? { ...usage.unserved, cause: reportedCause(usage, report, facts) } : usage.unserved;
    return { ...usage, unserved, firstTokenMs };
  }
  const tokens = shortfall(usage, report);
  const unserved = tokens === 0 ? null : { cause: reportedCause(usage, report, facts), tokens };
  return { ...usage, planned: stillMissed(usage, report), unserved, report: own, firstTokenMs };
}

/** Whether an engine says nothing new. */
export function isSameReport(report: CacheReport, before: CacheReport | null): boolean {
  return before?.cachedTokens === report.cachedTokens && before.promptTokens === report.promptTokens;
}

/** What the plan took for missed, without what the engine had after all. */
function stillMissed(usage: PromptUsage, report: CacheReport): CausedMiss | null {
  const { promptTokens, planned } = usage;
  if (planned === null) return null;
  // With what an earlier report took off; where that left nothing, it is not known any more.
  const known = planned.tokens + hadOf(usage, usage.report);
  const plan = { expectedCachedTokens: known, totalTokens: promptTokens };
  if (reachOf({ plan }, report) >= known) return null;
  return { ...planned, tokens: known - hadOf(usage, report) };
}

/** Tokens that no miss of the plan is of: expected, or cached. */
function hadOf({ expectedTokens, promptTokens }: PromptUsage, report: CacheReport | null): number {
  return report === null ? expectedTokens : Math.max(expectedTokens, cachedOf(report, promptTokens));
}

/** Expected tokens that the engine had not, in the plan's tokens; 0 within the tolerance of its steps and of the estimate. */
function shortfall(usage: PromptUsage, report: CacheReport): number {
  const { promptTokens, expectedTokens } = usage;
  const plan = { expectedCachedTokens: expectedTokens, totalTokens: promptTokens };
  if (reachOf({ plan }, report) >= expectedTokens) return 0;
  return Math.max(0, expectedTokens - cachedOf(report, usage.promptTokens));
}

function reportedCause({ expectedTokens }: PromptUsage, { cachedTokens }: CacheReport, facts: ReportFacts): UsageCause {
  if (cachedTokens === 0 && expectedTokens < facts.minimumPrefixTokens) return "below_minimum";
  return facts.because ?? "unknown";
}

/** What missed, by cause: each once, most tokens first. */
export function causesOf({ planned, unserved }: Pick<PromptUsage, "planned" | "unserved">): readonly CausedMiss[] {
  if (planned === null) return unserved === null ? [] : [unserved];
  if (unserved === null) return [planned];
  if (planned.cause === unserved.cause) return [{ cause: planned.cause, tokens: planned.tokens + unserved.tokens }];
  return planned.tokens >= unserved.tokens ? [planned, unserved] : [unserved, planned];
}

/** Tokens that were sent before and computed again. */
export function missedTokens({ planned, unserved }: Pick<PromptUsage, "planned" | "unserved">): number {
  return (planned?.tokens ?? 0) + (unserved?.tokens ?? 0);
}

/** Tokens that no cache could have: neither sent before, nor cached after all. */
export function newTokens(usage: PromptUsage): number {
  return Math.max(0, usage.promptTokens - hadOf(usage, usage.report) - (usage.planned?.tokens ?? 0));
}

/** Tokens that the engine computed, of the prompt's: all but those that it reported as cached, or as expected where it did not. */
export function uncachedTokens({ promptTokens, expectedTokens, report }: PromptUsage): number {
  if (report === null) return promptTokens - expectedTokens;
  return Math.max(0, promptTokens - cachedOf(report, promptTokens));
}

/** Whether a prompt says nothing of how well prompts are built: it is too short to be cached, or its prefix expired. */
export function setApart(usage: PromptUsage, minimumPrefixTokens: number): "below_minimum" | "expired" | null {
  if (usage.promptTokens < minimumPrefixTokens) return "below_minimum";
  const [first] = causesOf(usage);
  return first?.cause === "expired" || first?.cause === "below_minimum" ? first.cause : null;
}

/** Money, by an engine's prices. */
export interface UsageMoney {
  /** Against computing every token: what cache reads save, less what cache writes cost more. May be negative. */
  readonly saved: number;
  /** What missed tokens cost more than cached ones. */
  readonly missed: number;
}

/** What a prompt's cache hits saved and its misses cost; null where prompts cost time. */
export function moneyOf(usage: PromptUsage, model: EngineModel): UsageMoney | null {
  const { cost } = model;
  if (cost.kind === "time") return null;
  const total = usage.report?.promptTokens ?? usage.promptTokens;
  // A report is exact: it must not be rounded to blocks again.
  const cached = Math.min(total, usage.report?.cachedTokens ?? cacheable(model, usage.expectedTokens));
  const computed = total < model.minimumPrefixTokens ? cost.uncached : cost.written;
  return {
    saved: cost.uncached * total - cost.cached * cached - computed * (total - cached),
    missed: Math.max(0, computed - cost.cached) * missedTokens(usage),
  };
}

/*
 * A histogram of times whose bins grow by 15 %, from 1 ms to 20 minutes: percentiles of sums of many prompts, within 7 % of their value.
 */

const GROWTH = 1.15;
/** Bins are 0 to this one. */
export const LAST_TIME_BIN = 100;

/** The bin of a time in milliseconds. */
export function timeBin(ms: number): number {
  if (!(ms > 1)) return 0;
  return Math.min(LAST_TIME_BIN, Math.ceil(Math.log(ms) / Math.log(GROWTH)));
}

/** The middle of a bin, in milliseconds. */
function middleOf(bin: number): number {
  return bin === 0 ? 1 : GROWTH ** (bin - 0.5);
}

/** The time that a share of all times is not above, in milliseconds; null without times. `share`: 0 to 1. */
export function timeAt(counts: ReadonlyMap<number, number>, share: number): number | null {
  const bins = [...counts].sort(([a], [b]) => a - b);
  const wanted = bins.reduce((sum, [, count]) => sum + count, 0) * share;
  let seen = 0;
  for (const [bin, count] of bins) {
    seen += count;
    if (seen >= wanted && count > 0) return middleOf(bin);
  }
  return null;
}
