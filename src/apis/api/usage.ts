import { record } from "../../core/text/json.js";

/** Token counts of one request as an engine reported them. Null: not reported, which is not zero. */
export interface EngineUsage {
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  /** Tokens billed as written to the cache. */
  readonly writtenTokens: number | null;
  readonly completionTokens: number | null;
  /** The report, unmodified. */
  readonly raw: unknown;
}

/**
 * Reads `usage` in OpenAI's form: of chat completions (`prompt_tokens`, `prompt_tokens_details`) and of responses (`input_tokens`,
 * `input_tokens_details`). Engines omit the details where they do not report caching: vLLM without `--enable-prompt-tokens-details`, SGLang
 * without `--enable-cache-report`.
 * Source: OpenAI API reference, `CompletionUsage` (https://platform.openai.com/docs/api-reference/chat/object).
 */
export function readOpenAiUsage(answer: unknown): EngineUsage {
  const usage = reported(answer, "usage");
  const details = reported(usage, "prompt_tokens_details") ?? reported(usage, "input_tokens_details");
  return usageRecord(
    {
      promptTokens: reportedCount(usage, "prompt_tokens") ?? reportedCount(usage, "input_tokens"),
      cachedTokens: cachedTokensIn(usage, details),
      writtenTokens: writtenTokensIn(usage, details),
      completionTokens: reportedCount(usage, "completion_tokens") ?? reportedCount(usage, "output_tokens"),
    },
    usage ?? null,
  );
}

/** Names that Moonshot and Together, and DeepSeek, give the tokens read from the cache beside the details. */
const READ = ["cached_tokens", "prompt_cache_hit_tokens"];

function cachedTokensIn(usage: unknown, details: unknown): number | null {
  const counts = [reportedCount(details, "cached_tokens"), ...READ.map((name) => reportedCount(usage, name))];
  return counts.find((count) => count !== null) ?? null;
}

/**
 * Names of the tokens written to the cache: OpenAI's and OpenRouter's, vLLM's (`PromptTokenUsageInfo`), LiteLLM's, and that of Anthropic's models
 * through other gateways, which have it beside the details, too.
 */
const WRITTEN = ["cache_write_tokens", "created_cache_tokens", "cache_creation_tokens", "cache_creation_input_tokens"];

function writtenTokensIn(usage: unknown, details: unknown): number | null {
  for (const name of WRITTEN) {
    const count = reportedCount(details, name) ?? reportedCount(usage, name);
    if (count !== null) return count;
  }
  return null;
}

/** The value at a path of a JSON value; undefined where there is none. */
export function reported(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((found, name) => record(found)[name], value);
}

/** A token count at a path. Null for anything else, so that what was not reported stays unknown. */
export function reportedCount(value: unknown, ...path: readonly string[]): number | null {
  const count = reported(value, ...path);
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : null;
}

/** The sum of two counts; null where one of them is unknown. */
export function sumOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

/**
 * One usage record. More cached tokens than prompt tokens is impossible, and which of the two is wrong is not known; the cached count
 * becomes unknown, as a wrong one would mislead the index.
 */
export function usageRecord(counts: Omit<EngineUsage, "raw">, raw: unknown): EngineUsage {
  const { promptTokens, cachedTokens } = counts;
  const isPossible = promptTokens === null || cachedTokens === null || cachedTokens <= promptTokens;
  return { ...counts, cachedTokens: isPossible ? cachedTokens : null, raw };
}
