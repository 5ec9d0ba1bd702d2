import { type EngineModel, moneyOf, type PromptUsage, setApart, type UsageWindow } from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import {
  type KeptUsage,
  SUM_NAMES,
  type TimedSums,
  type UsageGroup,
  type UsageSpan,
  type UsageSums,
  type UsageView,
  type WindowSums,
} from "../api/usage-log.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** How long the steps of a window are, and how many it has. */
const STEPS: Readonly<Record<UsageWindow, { readonly stepMs: number; readonly count: number }>> = {
  hour: { stepMs: MINUTE_MS, count: 60 },
  day: { stepMs: 15 * MINUTE_MS, count: 96 },
  month: { stepMs: 6 * HOUR_MS, count: 124 },
};

/** A window's span in whole steps, the running one included. */
export function spanOf({ window, now }: Pick<UsageView, "window" | "now">): UsageSpan {
  const { stepMs, count } = STEPS[window];
  const to = (Math.floor(now / stepMs) + 1) * stepMs;
  return { from: to - count * stepMs, to, stepMs };
}

/** A kept prompt with what it is worth, by the prices when it was recorded. */
export interface KeptPrompt extends KeptUsage {
  readonly apart: ReturnType<typeof setApart>;
  readonly missedMoney: number | null;
}

/** A prompt's usage, valued by the engine's model. */
export function valued(
  usage: PromptUsage,
  costs: EngineModel,
): Pick<KeptPrompt, "usage" | "apart" | "savedMoney" | "missedMoney"> {
  const money = moneyOf(usage, costs);
  return {
    usage,
    apart: setApart(usage, costs.minimumPrefixTokens),
    savedMoney: money?.saved ?? null,
    missedMoney: money?.missed ?? null,
  };
}

/** What a query adds up for {@link GroupedSums}, by its column: an expression over prompts `p`. */
export const SUMMED = {
  prompts: "count(*)",
  promptTokens: "sum(p.prompt_tokens)",
  expectedTokens: "sum(p.expected_tokens)",
  uncachedTokens: "sum(p.uncached_tokens)",
  missedTokens: "sum(coalesce(p.miss_tokens, 0))",
  reportedPrompts: "count(p.reported_cached_tokens)",
  reportedPromptTokens:
    "sum(case when p.reported_cached_tokens is not null then coalesce(p.reported_prompt_tokens, p.prompt_tokens) else 0 end)",
  reportedCachedTokens: "sum(coalesce(p.reported_cached_tokens, 0))",
  // As the same share of the engine's count.
  reportedExpectedTokens: `sum(case when p.reported_cached_tokens is null then 0 else coalesce(cast(p.expected_tokens as double precision)
    * coalesce(p.reported_prompt_tokens, p.prompt_tokens) / nullif(p.prompt_tokens, 0), 0) end)`,
  timedPrompts: "count(p.first_token_ms)",
  firstTokenMs: "sum(coalesce(p.first_token_ms, 0))",
  savedMoney: "sum(coalesce(p.saved_money, 0))",
  missedMoney: "sum(coalesce(p.missed_money, 0))",
} as const;

/** Sums over the prompts of a step that are counted under the same. */
export interface GroupedSums extends UsageGroup, Readonly<Record<keyof typeof SUMMED, number>> {
  /** Where the step begins, in milliseconds since the epoch. */
  readonly at: number;
  readonly apart: KeptPrompt["apart"];
  /** Of the time to the first token; null: not measured. */
  readonly bin: number | null;
}

class GrowingSums implements TimedSums {
  readonly sums = Object.fromEntries(SUM_NAMES.map((name) => [name, 0])) as {
    -readonly [K in keyof UsageSums]: UsageSums[K];
  };
  readonly times = new Map<number, number>();

  add(row: GroupedSums): void {
    const { apart, bin, prompts, promptTokens } = row;
    const isShared = apart === null ? 1 : 0;
    const added: UsageSums = {
      ...row,
      sharedPromptTokens: isShared * promptTokens,
      sharedExpectedTokens: isShared * row.expectedTokens,
      sharedReportedPromptTokens: isShared * row.reportedPromptTokens,
      sharedReportedCachedTokens: isShared * row.reportedCachedTokens,
      sharedReportedExpectedTokens: isShared * Math.round(row.reportedExpectedTokens),
      belowMinimumPrompts: apart === "below_minimum" ? prompts : 0,
      belowMinimumTokens: apart === "below_minimum" ? promptTokens : 0,
      expiredPrompts: apart === "expired" ? prompts : 0,
      expiredTokens: apart === "expired" ? promptTokens : 0,
    };
    for (const name of SUM_NAMES) this.sums[name] += added[name];
    if (bin !== null) this.times.set(bin, (this.times.get(bin) ?? 0) + prompts);
  }
}

/** Sums of a window in all, by step and by group. */
export function windowSums(rows: readonly GroupedSums[]): Pick<WindowSums, "total" | "points" | "groups"> {
  const total = new GrowingSums();
  const points = new Map<number, GrowingSums>();
  const groups = new Map<string, TimedSums & { readonly group: UsageGroup; readonly of: GrowingSums }>();
  for (const row of rows) {
    const { model, engine, layout } = row;
    const { of } = keptIn(groups, JSON.stringify([model, engine, layout]), () => {
      const sums = new GrowingSums();
      return { group: { model, engine, layout }, of: sums, sums: sums.sums, times: sums.times };
    });
    for (const sums of [total, keptIn(points, row.at, () => new GrowingSums()), of]) sums.add(row);
  }
  return { total, points, groups: [...groups.values()].map(({ group, sums, times }) => ({ group, sums, times })) };
}
