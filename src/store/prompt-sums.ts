import { GrowingSums, type PromptSums } from "../core/index.js";
import { keptIn } from "../core/text/collections.js";
import type { WindowSums } from "./prompt-figures.js";

/*
 * Sums over the table `prompts`: one query adds up each step, model and bin of times; these few rows are added up here.
 */

/** A prompt's tokens by its engine's count, where it gave one. */
const COUNTED = "coalesce(p.reported_prompt_tokens, p.prompt_tokens)";
const IS_REPORTED = "p.reported_cached_tokens is not null";
const sumWhere = (condition: string, value: string) => `sum(case when ${condition} then ${value} else 0 end)`;

/** What each sum is, over prompts `p`. */
const SUMS: Readonly<Record<keyof PromptSums, string>> = {
  prompts: "count(*)",
  promptTokens: "sum(p.prompt_tokens)",
  expectedTokens: "sum(p.expected_tokens)",
  uncachedTokens: "sum(p.uncached_tokens)",
  missedTokens: "sum(coalesce(p.miss_tokens, 0))",
  reportedPrompts: "count(p.reported_cached_tokens)",
  reportedPromptTokens: sumWhere(IS_REPORTED, COUNTED),
  reportedCachedTokens: sumWhere(IS_REPORTED, "p.reported_cached_tokens"),
  sharedPromptTokens: sumWhere("p.apart is null", "p.prompt_tokens"),
  sharedExpectedTokens: sumWhere("p.apart is null", "p.expected_tokens"),
  sharedReportedPromptTokens: sumWhere(`p.apart is null and ${IS_REPORTED}`, COUNTED),
  sharedReportedCachedTokens: sumWhere(`p.apart is null and ${IS_REPORTED}`, "p.reported_cached_tokens"),
  sharedReportedExpectedTokens: `round(${sumWhere(
    `p.apart is null and ${IS_REPORTED} and p.prompt_tokens > 0`,
    `cast(p.expected_tokens as double precision) * ${COUNTED} / p.prompt_tokens`,
  )})`,
  belowMinimumPrompts: sumWhere("p.apart = 'below_minimum'", "1"),
  belowMinimumTokens: sumWhere("p.apart = 'below_minimum'", "p.prompt_tokens"),
  expiredPrompts: sumWhere("p.apart = 'expired'", "1"),
  expiredTokens: sumWhere("p.apart = 'expired'", "p.prompt_tokens"),
  timedPrompts: "count(p.first_token_ms)",
  firstTokenMs: "sum(coalesce(p.first_token_ms, 0))",
  savedMoney: "sum(coalesce(p.saved_money, 0))",
  missedMoney: "sum(coalesce(p.missed_money, 0))",
};

/** The sums as columns of a query, as numbers in both databases. */
export const SUM_COLUMNS = Object.entries(SUMS)
  .map(([name, sum]) => `cast(${sum} as double precision) as "${name}"`)
  .join();

/** Sums over the prompts of a step of one model, with first-token times in the same bin (null: not measured). */
export type GroupedSums = PromptSums & { readonly model: string; readonly at: number; readonly bin: number | null };

/** Sums of a window in all, by step and by model. */
export function windowSums(rows: readonly GroupedSums[]): Pick<WindowSums, "total" | "points" | "models"> {
  const total = new GrowingSums();
  const points = new Map<number, GrowingSums>();
  const models = new Map<string, GrowingSums>();
  for (const row of rows) {
    total.add(row, row.bin);
    keptIn(points, row.at, () => new GrowingSums()).add(row, row.bin);
    keptIn(models, row.model, () => new GrowingSums()).add(row, row.bin);
  }
  return { total, points, models };
}
