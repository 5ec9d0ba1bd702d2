/* usage: what answered prompts cost and why they missed. Enters: a plan, the engine's report. Leaves: one record without text. */

import { type CacheReport, cachedOf, ownReport } from "../cache/cache-report.js";
import { type Miss, reportedMiss } from "../compose/miss.js";
import { cacheable, type EngineModel } from "../cost/engine-model.js";

/** 60 minutes, 24 hours or 31 days. */
export const USAGE_WINDOWS = ["hour", "day", "month"] as const;
export type UsageWindow = (typeof USAGE_WINDOWS)[number];

/** All but the reported tokens are estimates. */
export interface PromptUsage {
  readonly promptTokens: number;
  readonly expectedTokens: number;
  /** Of memories that were not retrieved. */
  readonly carriedTokens: number;
  readonly planned: Miss | null;
  readonly miss: Miss | null;
  /** Of the prompt alone; null: not reported. */
  readonly report: CacheReport | null;
  readonly firstTokenMs: number | null;
}

/** A report with other numbers replaces an earlier one; a repeated one changes no tokens. */
export function reportedUsage(
  usage: PromptUsage,
  { report, ...facts }: Pick<PromptUsage, "report" | "firstTokenMs">,
): PromptUsage {
  const firstTokenMs = facts.firstTokenMs ?? usage.firstTokenMs;
  if (report === null) return { ...usage, firstTokenMs };
  const own = ownReport(report, usage.promptTokens);
  if (isSameReport(own, usage.report)) return { ...usage, firstTokenMs };
  const { promptTokens: totalTokens, expectedTokens: expectedCachedTokens, planned } = usage;
  const miss = reportedMiss({ totalTokens, expectedCachedTokens, miss: planned }, report);
  return { ...usage, miss, report: own, firstTokenMs };
}

export function isSameReport(report: CacheReport, before: CacheReport | null): boolean {
  return before?.cachedTokens === report.cachedTokens && before.promptTokens === report.promptTokens;
}

/** Tokens of the new turn's own text: neither cached nor missed. */
export function newTokens(usage: PromptUsage): number {
  return Math.max(0, uncachedTokens(usage) - (usage.miss?.tokens ?? 0));
}

/** Tokens that the engine computed: all but those reported, or else expected, as cached. */
export function uncachedTokens({ promptTokens, expectedTokens, report }: PromptUsage): number {
  if (report === null) return promptTokens - expectedTokens;
  return Math.max(0, promptTokens - cachedOf(report, promptTokens));
}

/** Why a prompt says nothing about how well prompts are built; null: it does. */
export function setApart(usage: PromptUsage, minimumPrefixTokens: number): "below_minimum" | "expired" | null {
  if (usage.promptTokens < minimumPrefixTokens) return "below_minimum";
  return usage.miss?.cause === "expired" ? "expired" : null;
}

export interface UsageMoney {
  /** What cache reads save, less what cache writes cost more. May be negative. */
  readonly saved: number;
  /** What missed tokens cost more than cached ones. */
  readonly missed: number;
}

export function moneyOf(usage: PromptUsage, model: EngineModel): UsageMoney | null {
  const { cost } = model;
  if (cost.kind === "time") return null;
  const total = usage.report?.promptTokens ?? usage.promptTokens;
  // A report is exact: it must not be rounded to blocks again.
  const cached = Math.min(total, usage.report?.cachedTokens ?? cacheable(model, usage.expectedTokens));
  const computed = total < model.minimumPrefixTokens ? cost.uncached : cost.written;
  return {
    saved: cost.uncached * total - cost.cached * cached - computed * (total - cached),
    missed: Math.max(0, computed - cost.cached) * (usage.miss?.tokens ?? 0),
  };
}

/* A histogram of times from 1 ms to 20 minutes. Bins grow by 15 %, so percentiles are within 7 %. */

const GROWTH = 1.15;
export const LAST_TIME_BIN = 100;

export function timeBin(ms: number): number {
  if (!(ms > 1)) return 0;
  return Math.min(LAST_TIME_BIN, Math.ceil(Math.log(ms) / Math.log(GROWTH)));
}

function middleOf(bin: number): number {
  return bin === 0 ? 1 : GROWTH ** (bin - 0.5);
}

/** The percentile `share` (0 to 1) in milliseconds; null without times. */
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
