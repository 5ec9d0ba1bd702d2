import type { ContextIndex } from "./context-index.js";
import type { NodeId, TurnId } from "./ids.js";
import type { Plan } from "./plan.js";

/** A request that was composed, as far as an engine's report of it needs it. */
export interface ReportedRequest {
  /** Node of the context index where its sequence ended. */
  readonly leaf: NodeId;
  /** Turns are numbered in the order in which they were composed: the scope's logical clock. */
  readonly turn: TurnId;
  /** When it was composed, in milliseconds since the epoch. */
  readonly at: number;
  readonly plan: Pick<Plan, "expectedCachedTokens" | "totalTokens">;
}

/** What an engine said of a request, counted in its own tokens. */
export interface CacheReport {
  readonly cachedTokens: number;
  /** Null: it did not say. */
  readonly promptTokens: number | null;
}

/** What a report changed. */
export interface Correction {
  /** Tokens that should have been cached, each prefix once, and are not: by so much the context index shrank. Estimated. */
  readonly tokensRemoved: number;
}

export const NOTHING_CORRECTED: Correction = { tokensRemoved: 0 };

/** Steps in which engines count, coarsest first: OpenAI's 128 tokens, vLLM's blocks of 16. A report that is a multiple of neither is exact. */
const STEPS: readonly number[] = [128, 16];
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
export function reachOf({ plan }: Pick<ReportedRequest, "plan">, { cachedTokens, promptTokens }: CacheReport): number {
  const isScaled = promptTokens !== null && promptTokens > 0;
  const scale = isScaled ? plan.totalTokens / promptTokens : 1;
  const step = STEPS.find((tokens) => cachedTokens % tokens === 0) ?? 1;
  const error = plan.expectedCachedTokens * (isScaled ? SCALED_ERROR : UNSCALED_ERROR);
  return (cachedTokens + step) * scale + error;
}

/**
 * Corrects the index by what an engine reported (ARCHITECTURE.md, "honest about the cache"): its count is the truth. What was expected
 * to hit and did not had gone by the time the request was served, and with it everything that stood behind it or was used no later,
 * unless a later request was served it, or one so shortly before that it was not written yet; the request's own path is there since. Where nothing hit, nothing of the scope had stayed. What
 * hit is as young as `now`, in milliseconds, when the report came. A request that has left the index itself says nothing.
 */
export function takeReport(
  index: ContextIndex,
  request: ReportedRequest,
  report: CacheReport,
  now: number,
): Correction {
  const { leaf, turn, at, plan } = request;
  const held = index.tokens;
  const reach = reachOf(request, report);
  if (reach < plan.expectedCachedTokens)
    index.miss(leaf, turn, report.cachedTokens === 0 ? 0 : reach, at - IN_FLIGHT_MS);
  index.refresh(leaf, turn, now);
  return { tokensRemoved: Math.max(0, held - index.tokens) };
}
