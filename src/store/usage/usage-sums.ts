import {
  causesOf,
  type EngineModel,
  missedTokens,
  moneyOf,
  type PromptUsage,
  setApart,
  timeBin,
  uncachedTokens,
} from "../../core/index.js";
import type { KeptUsage, ReuseSums, UsageSums } from "../api/usage-log.js";

/** Sums by the names of their columns. */
export const SUM_COLUMNS = {
  prompts: "prompts",
  promptTokens: "prompt_tokens",
  expectedTokens: "expected_tokens",
  uncachedTokens: "uncached_tokens",
  missedTokens: "missed_tokens",
  reportedPrompts: "reported_prompts",
  reportedPromptTokens: "reported_prompt_tokens",
  reportedCachedTokens: "reported_cached_tokens",
  sharedPromptTokens: "shared_prompt_tokens",
  sharedExpectedTokens: "shared_expected_tokens",
  sharedReportedPromptTokens: "shared_reported_prompt_tokens",
  sharedReportedCachedTokens: "shared_reported_cached_tokens",
  belowMinimumPrompts: "below_minimum_prompts",
  belowMinimumTokens: "below_minimum_tokens",
  expiredPrompts: "expired_prompts",
  expiredTokens: "expired_tokens",
  timedPrompts: "timed_prompts",
  firstTokenMs: "first_token_ms",
  savedMoney: "saved_money",
  missedMoney: "missed_money",
} as const satisfies Record<keyof UsageSums, string>;

export const SUM_NAMES = Object.keys(SUM_COLUMNS) as (keyof UsageSums)[];

/** Those that are kept of a user and a conversation; `lastAt` is no sum. */
export const REUSE_NAMES = [
  "prompts",
  "promptTokens",
  "uncachedTokens",
  "missedTokens",
  "sharedPromptTokens",
  "sharedExpectedTokens",
  "sharedReportedPromptTokens",
  "sharedReportedCachedTokens",
  "savedMoney",
] as const satisfies readonly (keyof UsageSums & keyof ReuseSums)[];

/** Sums that grow. */
export type GrowingSums = { -readonly [K in keyof UsageSums]: UsageSums[K] };

const NO_SUMS = Object.fromEntries(SUM_NAMES.map((name) => [name, 0])) as GrowingSums;

export function noSums(): GrowingSums {
  return { ...NO_SUMS };
}

/** Adds sums to others, or takes them away (`sign` -1). */
export function addSums(to: GrowingSums, added: UsageSums, sign: 1 | -1 = 1): void {
  for (const name of SUM_NAMES) to[name] += sign * added[name];
}

/** What a prompt is kept with besides its usage, so that it can be taken out of sums when prices have changed. */
export interface Valued {
  readonly usage: PromptUsage;
  readonly apart: ReturnType<typeof setApart>;
  readonly savedMoney: number | null;
  readonly missedMoney: number | null;
}

/** A prompt's usage, valued by the engine's model. */
export function valued(usage: PromptUsage, costs: EngineModel): Valued {
  const money = moneyOf(usage, costs);
  return {
    usage,
    apart: setApart(usage, costs.minimumPrefixTokens),
    savedMoney: money?.saved ?? null,
    missedMoney: money?.missed ?? null,
  };
}

/** What one prompt adds to sums. */
export function sumsOf({ usage, apart, savedMoney, missedMoney }: Valued): UsageSums {
  const { promptTokens, expectedTokens, report, firstTokenMs } = usage;
  const isReported = report === null ? 0 : 1;
  const reportedPromptTokens = report === null ? 0 : (report.promptTokens ?? promptTokens);
  const reportedCachedTokens = report?.cachedTokens ?? 0;
  const isShared = apart === null ? 1 : 0;
  const isBelow = apart === "below_minimum" ? 1 : 0;
  const isExpired = apart === "expired" ? 1 : 0;
  return {
    prompts: 1,
    promptTokens,
    expectedTokens,
    uncachedTokens: uncachedTokens(usage),
    missedTokens: missedTokens(usage),
    reportedPrompts: isReported,
    reportedPromptTokens,
    reportedCachedTokens,
    sharedPromptTokens: isShared * promptTokens,
    sharedExpectedTokens: isShared * expectedTokens,
    sharedReportedPromptTokens: isShared * reportedPromptTokens,
    sharedReportedCachedTokens: isShared * reportedCachedTokens,
    belowMinimumPrompts: isBelow,
    belowMinimumTokens: isBelow * promptTokens,
    expiredPrompts: isExpired,
    expiredTokens: isExpired * promptTokens,
    timedPrompts: firstTokenMs === null ? 0 : 1,
    firstTokenMs: firstTokenMs ?? 0,
    savedMoney: savedMoney ?? 0,
    missedMoney: missedMoney ?? 0,
  };
}

/** The bin of a prompt's time to the first token; null: it was not measured. */
export function binOf({ firstTokenMs }: PromptUsage): number | null {
  return firstTokenMs === null ? null : timeBin(firstTokenMs);
}

/** A prompt's misses with what each cost: its share of the prompt's. */
export function pricedCauses({ usage, missedMoney }: Valued) {
  const all = missedTokens(usage);
  return causesOf(usage).map((miss) => ({ ...miss, money: all === 0 ? 0 : ((missedMoney ?? 0) * miss.tokens) / all }));
}

/** A kept prompt, as it is valued. */
export type KeptRow = KeptUsage & Valued;
