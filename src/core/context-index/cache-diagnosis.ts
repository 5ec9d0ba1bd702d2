import type { RequestId } from "../text/ids.js";

/**
 * What a provider says of its own cache: whether a prompt could reuse an earlier one's prefix. `no_miss`: it found no difference; `miss`: it
 * names one; `not_found`: it no longer knows the earlier one; `pending`: it was still comparing; `unavailable`: it cannot tell.
 */
export const DIAGNOSIS_OUTCOMES = ["no_miss", "miss", "not_found", "pending", "unavailable"] as const;
export type DiagnosisOutcome = (typeof DIAGNOSIS_OUTCOMES)[number];

/** Providers that diagnose cache misses. */
export const DIAGNOSING_PROVIDERS = ["openai", "anthropic"] as const;
export type DiagnosingProvider = (typeof DIAGNOSING_PROVIDERS)[number];

/** A provider's diagnosis of one request. Counts are its own. */
export interface CacheDiagnosis {
  readonly provider: DiagnosingProvider;
  readonly outcome: DiagnosisOutcome;
  /** Its word for what changed, such as `tools_changed`; null: none. */
  readonly reason: string | null;
  /** Tokens of the earlier prompt's prefix that were not reused; null: not said. */
  readonly missedTokens: number | null;
  /** Tokens of the earlier prompt that could have been; null: not said. */
  readonly reusableTokens: number | null;
  /** The request that it was compared with; null: not one that memstem knows. */
  readonly comparedWith: RequestId | null;
}
