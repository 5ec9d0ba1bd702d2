import type { CacheReport } from "../cache/cache-report.js";
import type { ByHand } from "../compose/by-hand.js";
import type { Plan } from "../compose/plan.js";
import type { FixedRetention } from "../conversation/conversation.js";
import type { EpochReason } from "../conversation/epoch.js";
import { type EngineModel, modelAfter } from "../cost/engine-model.js";
import { NO_MODEL } from "./prompt-sums.js";
import { moneyOf, type PromptUsage, reportedUsage, setApart } from "./usage-record.js";

/* A prompt's figures, stored with its compose and with its engine's report. */

/** Money is null where prompts cost time. */
export interface PromptFigures {
  /** As the client named it, or `NO_MODEL`. */
  readonly model: string;
  readonly usage: PromptUsage;
  /** Why it says nothing about how well prompts are built. */
  readonly apart: "below_minimum" | "expired" | null;
  readonly savedMoney: number | null;
  readonly missedMoney: number | null;
}

export interface NewPrompt extends PromptFigures {
  readonly engine: string;
  /** `write`: a call that Mem0 makes of its own model. */
  readonly layout: "single" | "conversation" | "write";
  readonly policy: string;
  readonly retention: FixedRetention;
  readonly epoch: { readonly began: EpochReason | null; readonly prompts: number } | null;
  readonly byHand: ByHand | null;
}

/** Tokens and milliseconds. Absent: unknown, not zero. */
export interface EngineReport {
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  readonly ttftMs?: number;
}

export interface CountedPrompt {
  readonly plan: Plan;
  /** Tokens that the engine counts besides the prompt. */
  readonly besideTokens: number;
  /** As the client names it; null: unknown. */
  readonly model: string | null;
  readonly engine: string;
  /** Of memories that were not retrieved. */
  readonly carriedTokens: number;
  readonly byHand: ByHand | null;
}

/** @param costs of the configured engine */
export function newPrompt(prompt: CountedPrompt, costs: EngineModel): NewPrompt {
  const { plan, besideTokens, model, engine, carriedTokens, byHand } = prompt;
  const usage: PromptUsage = {
    promptTokens: plan.totalTokens,
    expectedTokens: plan.expectedCachedTokens,
    carriedTokens,
    planned: plan.miss,
    miss: plan.miss,
    report: null,
    firstTokenMs: null,
  };
  return {
    model: model ?? NO_MODEL,
    engine,
    layout: plan.layout,
    policy: plan.policy,
    retention: plan.retention,
    epoch: plan.epoch === undefined ? null : { began: plan.epoch.began, prompts: plan.epoch.prompts },
    byHand,
    ...valued(usage, modelAfter(costs, besideTokens)),
  };
}

export interface CountedWrite {
  readonly total: number;
  /** Expected to be cached. */
  readonly expected: number;
  readonly report: CacheReport | null;
  readonly model: string | null;
  readonly engine: string;
}

/** Figures of a call that Mem0 makes of its own model. @param costs of the configured engine */
export function writeFigures({ total, expected, report, model, engine }: CountedWrite, costs: EngineModel): NewPrompt {
  const usage: PromptUsage = {
    promptTokens: report?.promptTokens ?? total,
    expectedTokens: expected,
    carriedTokens: 0,
    planned: null,
    miss: null,
    report,
    firstTokenMs: null,
  };
  const named = { model: model ?? NO_MODEL, engine, layout: "write", policy: "none", retention: "ephemeral" } as const;
  return { ...named, epoch: null, byHand: null, ...valued(usage, costs) };
}

export interface CountedReport {
  /** Merged with earlier reports. */
  readonly report: EngineReport;
  readonly besideTokens: number;
  readonly model: string | null;
}

/** A repeated report changes nothing. @param costs of the configured engine */
export function reportedFigures(before: PromptFigures, reported: CountedReport, costs: EngineModel): PromptFigures {
  const { report, besideTokens, model } = reported;
  const facts = { report: cacheReport(report, besideTokens), firstTokenMs: report.ttftMs ?? null };
  const usage = reportedUsage(before.usage, facts);
  return { model: model ?? before.model, ...valued(usage, modelAfter(costs, besideTokens)) };
}

export function cacheReport({ cachedTokens, promptTokens }: EngineReport, besideTokens: number): CacheReport | null {
  return cachedTokens === undefined ? null : { cachedTokens, promptTokens: promptTokens ?? null, besideTokens };
}

function valued(usage: PromptUsage, costs: EngineModel): Omit<PromptFigures, "model"> {
  const money = moneyOf(usage, costs);
  return {
    usage,
    apart: setApart(usage, costs.minimumPrefixTokens),
    savedMoney: money?.saved ?? null,
    missedMoney: money?.missed ?? null,
  };
}
