import type { PromptEnd } from "../cost/expected-reads.js";
import type { NodeId, TurnId } from "../text/ids.js";
import type { ContextIndex } from "./context-index.js";

export interface ReportedRequest {
  /** Node of the context index where its sequence ends. */
  readonly leaf: NodeId;
  readonly turn: TurnId;
  readonly plan: { readonly expectedCachedTokens: number; readonly totalTokens: number };
  readonly grounds: ReportGrounds;
}

export interface ReportGrounds {
  /** Requests answered by then (milliseconds since the epoch) had finished when this one was composed. */
  readonly settledAt: number;
  /** Tokens of the instructions, which other users' prompts may share. */
  readonly headTokens: number;
  readonly besideTokens?: number;
  /** Ends that no later prompt is expected to read, where cache writes are billed. */
  readonly unread?: readonly PromptEnd[];
}

export interface CacheReport {
  readonly cachedTokens: number;
  readonly promptTokens: number | null;
  /** What the engine is sent besides the prompt, by memprefix's counter: a chat's tools, which come first. */
  readonly besideTokens?: number;
}

/** Maximum tokens that a template and a section's opening add after the instructions. */
const AFTER_HEAD = 16;
/** Tolerance of an estimate scaled to the engine's own prompt count, as a share. */
export const SCALED_ERROR = 0.02;
/** Tolerance of an unscaled one: tokenizers differ that much. */
const UNSCALED_ERROR = 0.1;

/** By how much an engine's tokens of the tools may differ from memprefix's, as a share. */
export const BESIDE_ERROR = 0.25;

/** Maximum prefill time. A concurrent request's miss is no eviction: the first has not written its prefix yet. */
export const IN_FLIGHT_MS = 5_000;

/** The step in which an engine counts cached tokens: 128 for OpenAI, blocks of 16 for vLLM, otherwise 1. */
export function stepOf(cachedTokens: number): number {
  return [128, 16].find((tokens) => cachedTokens % tokens === 0) ?? 1;
}

/** Upper bound of what the engine held, in tokens of the plan: reported tokens, the last step's rest, and the tolerance. */
export function reachOf({ plan }: Pick<ReportedRequest, "plan">, report: CacheReport, isExact = false): number {
  const { cachedTokens, promptTokens } = report;
  const besideTokens = besideIn(report, plan.totalTokens);
  const isScaled = promptTokens !== null && promptTokens > 0;
  const sent = plan.totalTokens + besideTokens;
  const scale = isScaled ? sent / promptTokens : 1;
  const error = plan.expectedCachedTokens * (isScaled ? SCALED_ERROR : UNSCALED_ERROR);
  // Of a known sum, what one part is off by the scale spreads over both.
  const besideError = BESIDE_ERROR * besideTokens * (isScaled && sent > 0 ? plan.totalTokens / sent : 1);
  const reached = (cachedTokens + (isExact ? 1 : stepOf(cachedTokens))) * scale - besideTokens + besideError;
  return Math.max(0, reached) + error;
}

/** Tokens that a report counts besides the prompt; 0 if they do not fit, as a model's template may leave tools out. */
function besideIn({ promptTokens, besideTokens = 0 }: CacheReport, total: number): number {
  const isLeftOut = promptTokens !== null && promptTokens > 0 && promptTokens < total + besideTokens / 2;
  return isLeftOut ? 0 : besideTokens;
}

/** A report without what the engine counts besides the prompt, which has `total` tokens by memprefix's counter. */
export function ownReport(report: CacheReport, total: number): CacheReport {
  const { cachedTokens, promptTokens } = report;
  const besideTokens = besideIn(report, total);
  if (besideTokens === 0) return { cachedTokens, promptTokens };
  const scale = promptTokens === null || promptTokens <= 0 ? 1 : promptTokens / (total + besideTokens);
  const beside = Math.round(besideTokens * scale);
  return {
    cachedTokens: Math.max(0, cachedTokens - beside),
    promptTokens: promptTokens === null ? null : Math.max(0, promptTokens - beside),
  };
}

export function cachedOf(report: CacheReport, total: number): number {
  const { cachedTokens, promptTokens } = ownReport(report, total);
  return Math.round(promptTokens !== null && promptTokens > 0 ? (cachedTokens * total) / promptTokens : cachedTokens);
}

/** Whether the engine held only the instructions although more was expected. */
export function hadOnlyHead(request: Pick<ReportedRequest, "plan" | "grounds">, report: CacheReport): boolean {
  const { expectedCachedTokens: expected, totalTokens } = request.plan;
  const most = Math.max(expected * UNSCALED_ERROR, request.grounds.headTokens + AFTER_HEAD);
  const isMissed = expected > most && reachOf(request, report) < expected;
  return isMissed && report.cachedTokens <= most + besideIn(report, totalTokens);
}

/**
 * Corrects the index by a report (docs/internals/algorithms.md, "Residency"): a missed prefix was evicted, with all used no later that was written.
 * What hit was used at `now` (milliseconds). `again`: the report before also showed the head alone, so the engine was restarted.
 */
export function takeReport(
  index: ContextIndex,
  request: ReportedRequest,
  report: CacheReport,
  now: number,
  { again = false, isExact = false }: { readonly again?: boolean; readonly isExact?: boolean } = {},
): void {
  const { leaf, turn, plan, grounds } = request;
  const reach = reachOf(request, report, isExact);
  if (reach < plan.expectedCachedTokens) {
    const isEmpty = report.cachedTokens === 0 || (again && hadOnlyHead(request, report));
    index.miss(leaf, turn, isEmpty ? 0 : reach, grounds.settledAt);
  }
  index.refresh(leaf, turn, now);
}
