/*
 * usage: what answered prompts cost and why they missed.
 * Enters: what was planned and reported of a prompt, and queries of a tenant. Leaves: the figures that are stored with a compose or a report,
 * and the tenant's view of them.
 */

import {
  type CacheReport,
  type EngineModel,
  type MissCause,
  modelAfter,
  moneyOf,
  NO_MODEL,
  type PromptUsage,
  reportedUsage,
  setApart,
} from "../../core/index.js";
import type { NewPrompt, PromptFigures } from "../../store/prompt-figures.js";
import type { EngineReport } from "../../store/store.js";
import type { ObservedCompose } from "../base/memprefix-observer.js";

/** What is counted of a composed prompt. */
export type CountedPrompt = Pick<ObservedCompose, "plan" | "besideTokens" | "model" | "engine" | "carriedTokens">;

/** The figures of a prompt that was composed. @param costs of the configured engine */
export function newPrompt(prompt: CountedPrompt, costs: EngineModel): NewPrompt {
  const { plan, besideTokens, model, engine, carriedTokens } = prompt;
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
    ...valued(usage, modelAfter(costs, besideTokens)),
  };
}

/** What an engine's report changes of a prompt's figures. */
export interface CountedReport {
  /** With what earlier reports said. */
  readonly report: EngineReport;
  /** Tokens that the engine counts besides the prompt. */
  readonly besideTokens: number;
  /** As its client names it; null: not known. */
  readonly model: string | null;
  /** Why the engine had less than planned, where that is known: `EngineLosses.reported`. */
  readonly because: MissCause | null;
}

/** A prompt's figures with its engine's report. A repeated report changes nothing. @param costs of the configured engine */
export function reportedFigures(before: PromptFigures, reported: CountedReport, costs: EngineModel): PromptFigures {
  const { report, besideTokens, model, because } = reported;
  const facts = { report: cacheReport(report, besideTokens), firstTokenMs: report.ttftMs ?? null, because };
  const usage = reportedUsage(before.usage, facts);
  return { model: model ?? before.model, ...valued(usage, modelAfter(costs, besideTokens)) };
}

/** What a report says of the cache; null: nothing. */
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
