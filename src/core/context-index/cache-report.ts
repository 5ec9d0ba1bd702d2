import type { NodeId, TurnId } from "../text/ids.js";
import type { ContextIndex } from "./context-index.js";

/** What a composed prompt was expected to cost, in tokens as the configured counter counts them. */
export interface ExpectedTokens {
  /** Tokens that the engine should have found in its prefix cache. */
  readonly expectedCachedTokens: number;
  /** Tokens of the whole prompt. */
  readonly totalTokens: number;
}

/** A request that was composed, as far as an engine's report of it needs it. */
export interface ReportedRequest {
  /** Node of the context index where its sequence ended. */
  readonly leaf: NodeId;
  /** Turns are numbered in the order in which they were composed: the scope's logical clock. */
  readonly turn: TurnId;
  /** When it was composed, in milliseconds since the epoch. */
  readonly at: number;
  readonly plan: ExpectedTokens;
  /** What is known of the moment when it was composed; null in requests of before it was kept. */
  readonly grounds?: ReportGrounds | null;
}

/** What a report is judged by beside the plan. */
export interface ReportGrounds {
  /** What was used up to this time, in milliseconds since the epoch, had been answered when the request came. */
  readonly settledAt: number;
  /** Tokens of the instructions at the prompt's head, which the prompts of others may begin with too. */
  readonly headTokens: number;
}

/** What an engine said of a request, counted in its own tokens. */
export interface CacheReport {
  readonly cachedTokens: number;
  /** Null: it did not say. */
  readonly promptTokens: number | null;
}

/** How a report is to be read. */
export interface ReportReading {
  /**
   * Whether the report before this one showed nothing but the instructions, too. One such miss may be of something old; of two in a row
   * nothing is left: the engine was started again, and the instructions are there on others' account.
   */
  readonly again?: boolean;
  /** Whether the engine counts each token, so that no step hides any. */
  readonly isExact?: boolean;
}

/** What a report changed. */
export interface Correction {
  /** Tokens that should have been cached, each prefix once, and are not: by so much the context index shrank. Estimated. */
  readonly tokensRemoved: number;
}

export const NOTHING_CORRECTED: Correction = { tokensRemoved: 0 };

/** Steps in which engines count, coarsest first: OpenAI's 128 tokens, vLLM's blocks of 16. A report that is a multiple of neither is exact. */
const STEPS: readonly number[] = [128, 16];
/** Of an engine that is known to count each token. */
const EXACT: readonly number[] = [];
/** Tokens that a template and a section's opening may put behind the instructions. */
const BEHIND_HEAD = 16;
/** Share of what was expected by which an estimate may be off once it is scaled to the engine's own count of the prompt … */
const SCALED_ERROR = 0.02;
/** … and where the engine did not say how many tokens the prompt had: tokenizers differ that much. */
const UNSCALED_ERROR = 0.1;

/**
 * Milliseconds that an engine may take to compute a prompt. Of two requests sent at once the second cannot hit what the first has not
 * written yet, which says nothing of what the engine keeps.
 */
export const IN_FLIGHT_MS = 5_000;

/**
 * Tokens of a prompt, as the plan counts them, up to which an engine may have held it when it served the request: what it reported,
 * what the rest of its last step could hide, and what the estimates may be off.
 */
export function reachOf(
  { plan }: Pick<ReportedRequest, "plan">,
  { cachedTokens, promptTokens }: CacheReport,
  steps = STEPS,
): number {
  const isScaled = promptTokens !== null && promptTokens > 0;
  const scale = isScaled ? plan.totalTokens / promptTokens : 1;
  const step = steps.find((tokens) => cachedTokens % tokens === 0) ?? 1;
  const error = plan.expectedCachedTokens * (isScaled ? SCALED_ERROR : UNSCALED_ERROR);
  return (cachedTokens + step) * scale + error;
}

/** Whether an engine had no more of a prompt than its instructions, where more was expected: nothing of this user's own. */
export function hadOnlyHead(request: Omit<ReportedRequest, "leaf" | "turn" | "at">, report: CacheReport): boolean {
  const { plan, grounds } = request;
  const most = Math.max(plan.expectedCachedTokens * UNSCALED_ERROR, (grounds?.headTokens ?? 0) + BEHIND_HEAD);
  return (
    plan.expectedCachedTokens > most &&
    reachOf(request, report) < plan.expectedCachedTokens &&
    report.cachedTokens <= most
  );
}

/**
 * Corrects the index by what an engine reported (docs/internals/algorithms.md, "Residency"): its count is the truth. What was expected
 * to hit and did not had gone by the time the request was served, and with it everything that stood behind it or was used no later,
 * unless a later request was served it, or one so shortly before that it was not written yet; the request's own path is there since. Where nothing hit, nothing of the scope had stayed. What
 * hit is as young as `now`, in milliseconds, when the report came. A request that has left the index itself says nothing.
 *
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
  const reach = reachOf(request, report, isExact ? EXACT : STEPS);
  if (reach < plan.expectedCachedTokens) {
    const isEmpty = report.cachedTokens === 0 || (again && hadOnlyHead(request, report));
    index.miss(leaf, turn, isEmpty ? 0 : reach, grounds?.settledAt ?? at - IN_FLIGHT_MS);
  }
  index.refresh(leaf, turn, now);
  return { tokensRemoved: Math.max(0, held - index.tokens) };
}
