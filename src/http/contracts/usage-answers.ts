import type { z } from "zod";
import type { CacheState } from "../../core/index.js";
import type { ShownPrompt } from "../../service/records/explain.js";
import {
  MISS_CAUSES,
  type MissCause,
  newTokens,
  type PromptPage,
  type StoredFigures,
  type TimedSums,
  timeAt,
  uncachedTokens,
  type WindowMisses,
  type WindowSums,
} from "../../service/usage/tenant-usage.js";
import causeTexts from "./usage-causes.json" with { type: "json" };
import type * as wire from "./usage-contract.js";
import type { FromWire } from "./wire-names.js";

/*
 * Answers of the usage views, from stored figures: shares, percentiles, money where prompts cost any. Fields that an answer's schema lacks
 * are dropped when it is written.
 */

type Answer<S extends z.ZodType> = FromWire<z.input<S>>;
type Row = Answer<typeof wire.usageRow>;
type Sums = Answer<typeof wire.usageSums>;

/** Each cause of misses in a few words, and its remedy. */
const CAUSES: Readonly<Record<MissCause, { readonly title: string; readonly advice: string }>> = causeTexts;

/** Whether prompts cost money rather than time. */
export interface Priced {
  readonly hasPrices: boolean;
}

function shownRow({ usage, engine, layout, ...row }: StoredFigures): Row {
  return {
    ...row,
    ...usage,
    engine: engine as Row["engine"],
    // Calls of Mem0's own are not listed.
    layout: layout as Row["layout"],
    expectedCachedTokens: usage.expectedTokens,
    newTokens: newTokens(usage),
    reportedPromptTokens: usage.report?.promptTokens ?? null,
    reportedCachedTokens: usage.report?.cachedTokens ?? null,
    uncachedTokens: uncachedTokens(usage),
  };
}

/** `GET /usage/summary`. */
export function usageSummary(
  window: Answer<typeof wire.usageSummaryResult>["window"],
  { from, to, stepMs, total, points, models, writes }: WindowSums,
  misses: WindowMisses,
  priced: Priced,
  cache: CacheState | null,
): Answer<typeof wire.usageSummaryResult> {
  const steps = Array.from({ length: Math.round((to - from) / stepMs) }, (_, step) => from + step * stepMs);
  const byModel = [...models].map(([model, of]) => ({ ...shownSums(of, priced), model }));
  return {
    window,
    from,
    to,
    stepMs,
    hasPrices: priced.hasPrices,
    cache,
    total: shownSums(total, priced),
    writes: shownSums(writes, priced),
    points: steps.map((at) => ({ at, ...shownSums(points.get(at) ?? null, priced) })),
    byModel: byModel.sort((a, b) => b.promptTokens - a.promptTokens),
    misses: missesOf(misses, priced),
  };
}

/** `GET /usage/requests`. */
export function usageRequests({ rows, next }: PromptPage): Answer<typeof wire.usageRequestsResult> {
  return { requests: rows.map(shownRow), next: cursorOf(next) };
}

/** `GET /usage/request`. */
export function usageRequest(
  figures: StoredFigures | null,
  { explanation, messages, continuedMessages }: ShownPrompt,
  hasText: boolean,
): Answer<typeof wire.usageRequestResult> {
  return { request: figures && shownRow(figures), hasText, explanation, messages, continuedMessages };
}

/** All causes, most tokens first. */
function missesOf({ causes }: WindowMisses, { hasPrices }: Priced): Answer<typeof wire.usageSummaryResult>["misses"] {
  const all = causes.reduce((sum, { tokens }) => sum + tokens, 0);
  const found = new Map(causes.map((cause) => [cause.cause, cause]));
  const none = { prompts: 0, tokens: 0, money: 0 };
  return MISS_CAUSES.map((cause) => {
    const { prompts, tokens, money } = found.get(cause) ?? none;
    const share = all === 0 ? 0 : tokens / all;
    return { cause, ...CAUSES[cause], prompts, tokens, share, money: hasPrices ? rounded(money) : null };
  }).sort((a, b) => b.tokens - a.tokens);
}

/** A cursor for {@link pageBefore}. */
function cursorOf(next: number | null): string | null {
  return next === null ? null : next.toString(36);
}

/** The id before which a page begins; null: at the newest. */
export function pageBefore(cursor: string | undefined): number | null {
  if (cursor === undefined) return null;
  const id = Number.parseInt(cursor, 36);
  return Number.isSafeInteger(id) ? id : 0;
}

function shownSums(of: TimedSums | null, { hasPrices }: Priced): Sums {
  const { sums, times } = of ?? { sums: null, times: new Map<number, number>() };
  const count = (name: keyof TimedSums["sums"]) => sums?.[name] ?? 0;
  const timed = count("timedPrompts");
  return {
    prompts: count("prompts"),
    reportedPrompts: count("reportedPrompts"),
    promptTokens: count("promptTokens"),
    expectedCachedTokens: count("expectedTokens"),
    reportedPromptTokens: count("reportedPromptTokens"),
    reportedCachedTokens: count("reportedCachedTokens"),
    uncachedTokens: count("uncachedTokens"),
    missedTokens: count("missedTokens"),
    byHand: {
      uncachedTokens: count("comparedTokens"),
      inMessageTokens: count("inMessageTokens"),
      inSystemTokens: count("inSystemTokens"),
    },
    ...(sums === null ? { cachedShare: null, expectedShare: null } : cachedShares(sums)),
    belowMinimum: { prompts: count("belowMinimumPrompts"), tokens: count("belowMinimumTokens") },
    expired: { prompts: count("expiredPrompts"), tokens: count("expiredTokens") },
    firstTokenMs:
      timed === 0
        ? null
        : {
            prompts: timed,
            mean: rounded(count("firstTokenMs") / timed),
            p50: rounded(timeAt(times, 0.5) ?? 0),
            p95: rounded(timeAt(times, 0.95) ?? 0),
          },
    savedMoney: hasPrices ? rounded(count("savedMoney")) : null,
    missedMoney: hasPrices ? rounded(count("missedMoney")) : null,
  };
}

/** The share that the engine reported as cached, and the expected share of the same prompts; of all prompts where none was reported. */
function cachedShares(sums: TimedSums["sums"]) {
  const { sharedReportedPromptTokens: reported, sharedReportedExpectedTokens: expected } = sums;
  return {
    cachedShare: shareOf(sums.sharedReportedCachedTokens, reported),
    expectedShare:
      reported > 0 ? shareOf(expected, reported) : shareOf(sums.sharedExpectedTokens, sums.sharedPromptTokens),
  };
}

/** Null: nothing to have a share of. Capped, because an engine's counts may contradict each other. */
function shareOf(part: number, whole: number): number | null {
  return whole <= 0 ? null : Math.min(1, part / whole);
}

/** To nine digits, because sums that are added to and subtracted from end in noise. */
function rounded(value: number): number {
  return Number(value.toPrecision(9)) || 0;
}
