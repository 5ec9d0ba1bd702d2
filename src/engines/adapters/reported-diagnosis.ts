import type { CacheDiagnosis, DiagnosisOutcome } from "../../core/index.js";
import { reported, reportedCount } from "./reported-usage.js";

/** A diagnosis as the provider words it: it knows its own ids, not memstem's. */
export type ReportedDiagnosis = Omit<CacheDiagnosis, "comparedWith">;

const OPENAI_OUTCOMES: Readonly<Record<string, DiagnosisOutcome>> = {
  cache_hit: "no_miss",
  cache_miss: "miss",
  comparison_response_not_found: "not_found",
};

/**
 * Reads `prompt_cache_diagnostics` of a response. Null: there is none. A type that is not known counts as `unavailable`, with its own word as
 * the reason.
 * Source: https://developers.openai.com/api/docs/guides/prompt-caching/diagnostics
 */
export function readOpenAiDiagnosis(response: unknown): ReportedDiagnosis | null {
  const given = reported(response, "prompt_cache_diagnostics");
  const type = reported(given, "type");
  if (typeof type !== "string") return null;
  const outcome = OPENAI_OUTCOMES[type] ?? "unavailable";
  const isOther = outcome === "unavailable" && type !== "unavailable";
  return {
    provider: "openai",
    outcome,
    reason: word(reported(given, "reason") ?? (isOther ? type : null)),
    missedTokens: reportedCount(given, "cache_missed_tokens"),
    reusableTokens: reportedCount(given, "comparison_reusable_tokens"),
  };
}

const ANTHROPIC_OUTCOMES: Readonly<Record<string, DiagnosisOutcome>> = {
  previous_message_not_found: "not_found",
  unavailable: "unavailable",
};

/**
 * Reads `diagnostics` of a message. Null: there is none, as where it was not asked for. With `cache_miss_reason` null the comparison had not
 * ended; any reason but the two of {@link ANTHROPIC_OUTCOMES} names what changed.
 * Source: https://platform.claude.com/docs/en/build-with-claude/cache-diagnostics
 *
 * @param wasCompared whether the request named an earlier message: then `diagnostics: null` says that nothing changed
 */
export function readAnthropicDiagnosis(message: unknown, wasCompared: boolean): ReportedDiagnosis | null {
  const given = reported(message, "diagnostics");
  const nothing = { provider: "anthropic", reason: null, missedTokens: null, reusableTokens: null } as const;
  if (given === null) return wasCompared ? { ...nothing, outcome: "no_miss" } : null;
  const reason = reported(given, "cache_miss_reason");
  if (reason === undefined) return null;
  if (reason === null) return { ...nothing, outcome: "pending" };
  const type = word(reported(reason, "type"));
  if (type === null) return null;
  const outcome = ANTHROPIC_OUTCOMES[type] ?? "miss";
  return {
    ...nothing,
    outcome,
    reason: outcome === "miss" ? type : null,
    missedTokens: reportedCount(reason, "cache_missed_input_tokens"),
  };
}

/** A word of the provider's; anything else may quote the prompt, and explanations hold no text. */
function word(value: unknown): string | null {
  return typeof value === "string" && /^[a-z][a-z0-9_]{0,63}$/.test(value) ? value : null;
}
