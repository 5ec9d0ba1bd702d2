import {
  causesOf,
  type EngineModel,
  missedTokens,
  moneyOf,
  type PromptUsage,
  setApart,
  timeBin,
  type UsageCause,
  type UsageWindow,
  uncachedTokens,
} from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import {
  type KeptUsage,
  REUSE_NAMES,
  SUM_NAMES,
  type TimedSums,
  type UsageGroup,
  type UsageSpan,
  type UsageSums,
  type UsageView,
  type WindowMisses,
  type WindowSums,
} from "../api/usage-log.js";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** How long the steps of a window are, and how many it has. Each length divides the next. */
const STEPS: Readonly<Record<UsageWindow, { readonly stepMs: number; readonly count: number }>> = {
  hour: { stepMs: MINUTE_MS, count: 60 },
  day: { stepMs: 15 * MINUTE_MS, count: 96 },
  month: { stepMs: 6 * HOUR_MS, count: 124 },
};

/** Which sums are added up to longer steps: those that began so long ago that only longer windows have them. */
export const FOLDS: readonly { readonly stepMs: number; readonly afterMs: number }[] = [
  { stepMs: STEPS.day.stepMs, afterMs: 2 * HOUR_MS },
  { stepMs: STEPS.month.stepMs, afterMs: DAY_MS + HOUR_MS },
];

/** A window's span in whole steps, the running one included. */
export function spanOf({ window, now }: Pick<UsageView, "window" | "now">): UsageSpan {
  const { stepMs, count } = STEPS[window];
  const to = (Math.floor(now / stepMs) + 1) * stepMs;
  return { from: to - count * stepMs, to, stepMs };
}

/** A prompt's usage with what it is worth, kept so that it can be taken out of sums when prices have changed. */
export interface Valued {
  readonly usage: PromptUsage;
  readonly apart: ReturnType<typeof setApart>;
  readonly savedMoney: number | null;
  readonly missedMoney: number | null;
}

/** A kept prompt, as it is valued. */
export type KeptPrompt = KeptUsage & Valued;

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

const NO_SUMS = Object.fromEntries(SUM_NAMES.map((name) => [name, 0])) as unknown as UsageSums;

/** What one prompt adds to sums. */
export function sumsOf({ usage, apart, savedMoney, missedMoney }: Valued): UsageSums {
  const { promptTokens, expectedTokens, report, firstTokenMs } = usage;
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
    reportedPrompts: report === null ? 0 : 1,
    reportedPromptTokens,
    reportedCachedTokens,
    sharedPromptTokens: isShared * promptTokens,
    sharedExpectedTokens: isShared * expectedTokens,
    sharedReportedPromptTokens: isShared * reportedPromptTokens,
    sharedReportedCachedTokens: isShared * reportedCachedTokens,
    sharedReportedExpectedTokens: isShared * Math.round((expectedTokens * reportedPromptTokens) / (promptTokens || 1)),
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

/** The columns of a user's or a conversation's sums, by their names. */
export const REUSE_COLUMNS = Object.fromEntries(
  REUSE_NAMES.map((name) => [name, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]),
) as Readonly<Record<(typeof REUSE_NAMES)[number], string>>;

const BIN = "first_token ";
const CAUSE = "cause ";

/** What one prompt adds to the sums of its minute beside {@link UsageSums}: its time's bin, and its misses by cause. */
export function measuresOf({ usage, missedMoney }: Valued): readonly (readonly [measure: string, value: number])[] {
  const { firstTokenMs } = usage;
  const all = missedTokens(usage);
  const missed = causesOf(usage).flatMap(({ cause, tokens }) => [
    [`${CAUSE}${cause} prompts`, 1] as const,
    [`${CAUSE}${cause} tokens`, tokens] as const,
    // Its share of the prompt's.
    [`${CAUSE}${cause} money`, all === 0 ? 0 : ((missedMoney ?? 0) * tokens) / all] as const,
  ]);
  return firstTokenMs === null ? missed : [...missed, [`${BIN}${timeBin(firstTokenMs)}`, 1]];
}

/** A sum over time, of a group and a step. */
export interface MeasuredSum {
  /** Where the step begins, in milliseconds since the epoch. */
  readonly at: number;
  readonly groupId: number;
  readonly measure: string;
  readonly value: number;
}

class GrowingSums implements TimedSums {
  readonly sums: { -readonly [K in keyof UsageSums]: UsageSums[K] } = { ...NO_SUMS };
  readonly times = new Map<number, number>();

  add({ measure, value }: MeasuredSum): void {
    if (measure in this.sums) this.sums[measure as keyof UsageSums] += value;
    else if (measure.startsWith(BIN)) {
      const bin = Number(measure.slice(BIN.length));
      this.times.set(bin, (this.times.get(bin) ?? 0) + value);
    }
  }
}

/** Sums of a window in all, by step and by group; those without prompts are left out. */
export function windowSums(
  groups: readonly (UsageGroup & { readonly id: number })[],
  rows: readonly MeasuredSum[],
): Pick<WindowSums, "total" | "points" | "groups"> {
  const total = new GrowingSums();
  const points = new Map<number, GrowingSums>();
  const byGroup = new Map<number, GrowingSums>();
  for (const row of rows) {
    const point = keptIn(points, row.at, () => new GrowingSums());
    const ofGroup = keptIn(byGroup, row.groupId, () => new GrowingSums());
    for (const sums of [total, point, ofGroup]) sums.add(row);
  }
  return {
    total,
    points: new Map([...points].filter(([, { sums }]) => sums.prompts > 0)),
    groups: groups.flatMap(({ id, model, engine, layout }) => {
      const of = byGroup.get(id);
      return of === undefined || of.sums.prompts <= 0 ? [] : [{ group: { model, engine, layout }, ...of }];
    }),
  };
}

/** Misses of a window, by cause; causes without any are left out. */
export function windowMisses(rows: readonly MeasuredSum[]): WindowMisses["causes"] {
  const causes = new Map<string, Record<string, number>>();
  for (const { measure, value } of rows) {
    if (!measure.startsWith(CAUSE)) continue;
    const [, cause = "", of = ""] = measure.split(" ");
    const sums = causes.get(cause) ?? { prompts: 0, tokens: 0, money: 0 };
    causes.set(cause, { ...sums, [of]: (sums[of] ?? 0) + value });
  }
  return [...causes].flatMap(([cause, { prompts = 0, tokens = 0, money = 0 }]) =>
    prompts > 0 ? [{ cause: cause as UsageCause, prompts, tokens, money }] : [],
  );
}
