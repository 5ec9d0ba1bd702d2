import type { PromptEnd } from "../cost/expected-reads.js";
import type { NodeId, TurnId } from "../text/ids.js";
import type { ContextIndex } from "./context-index.js";

/** The expected cost of a composed prompt, in tokens of the configured counter. */
export interface ExpectedTokens {
  /** Tokens expected in the engine's prefix cache. */
  readonly expectedCachedTokens: number;
  /** Tokens of the whole prompt. */
  readonly totalTokens: number;
}

/** A composed request, as needed to interpret an engine's report of it. */
export interface ReportedRequest {
  /** Node of the context index where its sequence ends. */
  readonly leaf: NodeId;
  /** Turn ids ascend in compose order: the scope's logical clock. */
  readonly turn: TurnId;
  /** When it was composed, in milliseconds since the epoch. */
  readonly at: number;
  readonly plan: ExpectedTokens;
  /** Circumstances of the compose; null for requests stored before these were recorded. */
  readonly grounds?: ReportGrounds | null;
}

/** What a report is interpreted by, besides the plan. */
export interface ReportGrounds {
  /** Requests answered up to this time, in milliseconds since the epoch, had finished when this one was composed. */
  readonly settledAt: number;
  /** Tokens of the instructions at the prompt's head, which other users' prompts may share. */
  readonly headTokens: number;
  /** See {@link CacheReport.besideTokens}. */
  readonly besideTokens?: number;
  /** Ends of the prompt that no later one is expected to read, where writing to the cache is billed. Absent: none. */
  readonly unread?: readonly PromptEnd[];
}

/** What an engine reported of a request, in its own tokens. */
export interface CacheReport {
  readonly cachedTokens: number;
  /** Null: not reported. */
  readonly promptTokens: number | null;
  /** Tokens by memprefix's counter of what the engine is sent besides the prompt: a chat's tools, which come first. Absent: none. */
  readonly besideTokens?: number;
}

export interface ReportReading {
  /**
   * Whether the previous report also showed nothing but the instructions. One such miss may be due to an old prompt; two in a row mean that
   * the engine was restarted, and other users' requests cached the instructions again.
   */
  readonly again?: boolean;
  /** Whether the engine counts every token, not whole steps. */
  readonly isExact?: boolean;
}

export interface Correction {
  /** Tokens that should have been cached and are not, each prefix once: how much the context index shrank. Estimated. */
  readonly tokensRemoved: number;
}

export const NOTHING_CORRECTED: Correction = { tokensRemoved: 0 };

/** Maximum tokens that a template and a section's opening add after the instructions. */
const AFTER_HEAD = 16;
/** Tolerance of an estimate scaled to the engine's own prompt count, as a share of the expected tokens … */
const SCALED_ERROR = 0.02;
/** … and of an unscaled one, if the engine did not report the prompt's tokens: tokenizers differ that much. */
const UNSCALED_ERROR = 0.1;

/** By how much an engine's tokens of what it counts besides a prompt (tools, in a template's form) may differ from memprefix's, as a share. */
export const BESIDE_ERROR = 0.25;

/**
 * Maximum prefill time of a prompt, in milliseconds. Of two concurrent requests the second cannot hit what the first has not written yet:
 * such a miss does not mean that the prefix was evicted.
 */
export const IN_FLIGHT_MS = 5_000;

/**
 * Tokens of the step in which an engine counted what was cached, as far as the count shows it: OpenAI's are of 128, vLLM's blocks of 16. A
 * multiple of neither is exact.
 */
export function stepOf(cachedTokens: number): number {
  return [128, 16].find((tokens) => cachedTokens % tokens === 0) ?? 1;
}

/**
 * Upper bound of what the engine held of the prompt when it served the request, in tokens of the plan: the reported tokens, plus the rest
 * of the last step, plus the estimate's tolerance.
 */
export function reachOf({ plan }: Pick<ReportedRequest, "plan">, report: CacheReport, isExact = false): number {
  const { cachedTokens, promptTokens } = report;
  const besideTokens = besideIn(report, plan.totalTokens);
  const isScaled = promptTokens !== null && promptTokens > 0;
  const sent = plan.totalTokens + besideTokens;
  const scale = isScaled ? sent / promptTokens : 1;
  const error = plan.expectedCachedTokens * (isScaled ? SCALED_ERROR : UNSCALED_ERROR);
  // Of a known sum, what one part is off by the scale spreads over both.
  const besideError = BESIDE_ERROR * besideTokens * (isScaled && sent > 0 ? plan.totalTokens / sent : 1);
  return (
    Math.max(0, (cachedTokens + (isExact ? 1 : stepOf(cachedTokens))) * scale - besideTokens + besideError) + error
  );
}

/** Tokens that a report counts besides the prompt. None where half of them have no room: a model's template may leave tools out. */
function besideIn({ promptTokens, besideTokens = 0 }: CacheReport, total: number): number {
  const isLeftOut = promptTokens !== null && promptTokens > 0 && promptTokens < total + besideTokens / 2;
  return isLeftOut ? 0 : besideTokens;
}

/** A report of the prompt alone, where it has so many tokens by memprefix's count: without what the engine counts besides. */
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

/** Cached tokens of a report, where its prompt has so many by memprefix's count. */
export function cachedOf(report: CacheReport, total: number): number {
  const { cachedTokens, promptTokens } = ownReport(report, total);
  return Math.round(promptTokens !== null && promptTokens > 0 ? (cachedTokens * total) / promptTokens : cachedTokens);
}

/** Whether the engine held nothing but the prompt's instructions although more was expected: nothing of this user's own. */
export function hadOnlyHead(request: Omit<ReportedRequest, "leaf" | "turn" | "at">, report: CacheReport): boolean {
  const { expectedCachedTokens: expected, totalTokens } = request.plan;
  const most = Math.max(expected * UNSCALED_ERROR, (request.grounds?.headTokens ?? 0) + AFTER_HEAD);
  const isMissed = expected > most && reachOf(request, report) < expected;
  return isMissed && report.cachedTokens <= most + besideIn(report, totalTokens);
}

/**
 * Corrects the index by an engine's report (docs/internals/algorithms.md, "Residency"); the engine's count is the truth. A prefix that was
 * expected to hit and missed had been evicted when the request was served. So had everything after it and everything used no later, except
 * what a later request was served, and except what was used so shortly before that it was not written yet. The request's own path is cached
 * since. With no hit at all, nothing of the scope was left. The prefix that hit counts as used at `now` (milliseconds), when the report
 * arrived. A request that has left the index itself changes nothing.
 */
export function takeReport(
  index: ContextIndex,
  request: ReportedRequest,
  report: CacheReport,
  now: number,
  { again = false, isExact = false }: ReportReading = {},
): Correction {
  const { leaf, turn, at, plan, grounds } = request;
  const held = index.tokens;
  const reach = reachOf(request, report, isExact);
  if (reach < plan.expectedCachedTokens) {
    const isEmpty = report.cachedTokens === 0 || (again && hadOnlyHead(request, report));
    index.miss(leaf, turn, isEmpty ? 0 : reach, grounds?.settledAt ?? at - IN_FLIGHT_MS);
  }
  index.refresh(leaf, turn, now);
  return { tokensRemoved: Math.max(0, held - index.tokens) };
}
