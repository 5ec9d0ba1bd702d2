import type { Miss } from "../compose/miss.js";
import { keptIn } from "../text/collections.js";
import type { UsageWindow } from "./usage-record.js";

/** For prompts without a model name. */
export const NO_MODEL = "unknown";
/** Models other than those with most tokens in a window. */
export const OTHER_MODELS = "other";

export const SUM_NAMES = [
  "prompts",
  "promptTokens",
  "expectedTokens",
  "uncachedTokens",
  "missedTokens",
  /** Prompts whose cost by hand is known: tokens computed of them, and as many as by hand. */
  "comparedTokens",
  "inMessageTokens",
  "inSystemTokens",
  /** Prompts whose engine reported, and their tokens by its count. */
  "reportedPrompts",
  "reportedPromptTokens",
  "reportedCachedTokens",
  /** Without prompts that are set apart: what shares are made of. */
  "sharedPromptTokens",
  "sharedExpectedTokens",
  "sharedReportedPromptTokens",
  "sharedReportedCachedTokens",
  /** Expected tokens of the reported ones, as the same share of the engine's count. */
  "sharedReportedExpectedTokens",
  "belowMinimumPrompts",
  "belowMinimumTokens",
  "expiredPrompts",
  "expiredTokens",
  "timedPrompts",
  "firstTokenMs",
  "savedMoney",
  "missedMoney",
] as const;
export type PromptSums = Readonly<Record<(typeof SUM_NAMES)[number], number>>;

/** Times to the first token, by the bins of `timeBin`. */
export type TimeCounts = ReadonlyMap<number, number>;

export interface TimedSums {
  readonly sums: PromptSums;
  readonly times: TimeCounts;
}

/** Steps of a window, in milliseconds since the epoch. */
export interface WindowSpan {
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
}

export class GrowingSums implements TimedSums {
  readonly sums = Object.fromEntries(SUM_NAMES.map((name) => [name, 0])) as {
    -readonly [K in keyof PromptSums]: PromptSums[K];
  };
  readonly times = new Map<number, number>();

  /** Times of one bin; null: not measured. */
  add(sums: PromptSums, bin: number | null): void {
    for (const name of SUM_NAMES) this.sums[name] += sums[name];
    if (bin !== null) this.times.set(bin, (this.times.get(bin) ?? 0) + sums.prompts);
  }
}

const MINUTE_MS = 60_000;
const STEPS: Readonly<Record<UsageWindow, { readonly stepMs: number; readonly count: number }>> = {
  hour: { stepMs: MINUTE_MS, count: 60 },
  day: { stepMs: 15 * MINUTE_MS, count: 96 },
  month: { stepMs: 360 * MINUTE_MS, count: 124 },
};

/** Whole steps, the running one included. `now`: milliseconds since the epoch. */
export function spanOf(window: UsageWindow, now: number): WindowSpan {
  const { stepMs, count } = STEPS[window];
  const to = (Math.floor(now / stepMs) + 1) * stepMs;
  return { from: to - count * stepMs, to, stepMs };
}

export interface WindowSums extends WindowSpan {
  readonly total: TimedSums;
  /** By the start of their step; steps without prompts are left out. */
  readonly points: ReadonlyMap<number, TimedSums>;
  readonly models: ReadonlyMap<string, TimedSums>;
  /** Mem0's calls of its own model, which the others leave out. */
  readonly writes: TimedSums;
}

export interface WindowMisses extends WindowSpan {
  readonly causes: readonly (Miss & { readonly prompts: number; readonly money: number })[];
}

export type GroupedSums = PromptSums & {
  readonly model: string;
  readonly at: number;
  readonly bin: number | null;
  readonly isWrite: number;
};

export function windowSums(rows: readonly GroupedSums[]): Omit<WindowSums, keyof WindowSpan> {
  const total = new GrowingSums();
  const points = new Map<number, GrowingSums>();
  const models = new Map<string, GrowingSums>();
  const writes = new GrowingSums();
  for (const row of rows.filter(({ isWrite }) => isWrite === 0)) {
    total.add(row, row.bin);
    keptIn(points, row.at, () => new GrowingSums()).add(row, row.bin);
    keptIn(models, row.model, () => new GrowingSums()).add(row, row.bin);
  }
  for (const row of rows) if (row.isWrite === 1) writes.add(row, row.bin);
  return { total, points, models, writes };
}
