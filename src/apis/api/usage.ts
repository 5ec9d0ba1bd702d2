import { record } from "../../core/text/json.js";

/** Token counts of one request as an engine reported them. Null: not reported, which is not zero. */
export interface EngineUsage {
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly writtenTokens: number | null;
  readonly completionTokens: number | null;
  readonly raw: unknown;
}

/**
 * Reads OpenAI's `usage`: of chat completions (`prompt_tokens`, `prompt_tokens_details`) and of responses (`input_tokens`, …). vLLM without
 * `--enable-prompt-tokens-details` and SGLang without `--enable-cache-report` omit the details.
 * Source: `CompletionUsage`, https://platform.openai.com/docs/api-reference/chat/object
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

/** Moonshot's and Together's name for tokens read from the cache, and DeepSeek's, beside the details. */
const READ = ["cached_tokens", "prompt_cache_hit_tokens"];

function cachedTokensIn(usage: unknown, details: unknown): number | null {
  const counts = [reportedCount(details, "cached_tokens"), ...READ.map((name) => reportedCount(usage, name))];
  return counts.find((count) => count !== null) ?? null;
}

/** OpenAI's and OpenRouter's, vLLM's (`PromptTokenUsageInfo`), LiteLLM's, and other gateways' to Anthropic, also beside the details. */
const WRITTEN = ["cache_write_tokens", "created_cache_tokens", "cache_creation_tokens", "cache_creation_input_tokens"];

function writtenTokensIn(usage: unknown, details: unknown): number | null {
  for (const name of WRITTEN) {
    const count = reportedCount(details, name) ?? reportedCount(usage, name);
    if (count !== null) return count;
  }
  return null;
}

/** Whether a usage counts a prompt: some engines send zeros until they know, or after what they have said. */
export function countsPrompt(usage: unknown): boolean {
  const { prompt_tokens, input_tokens, cache_read_input_tokens, cache_creation_input_tokens } = record(usage);
  const counts = [prompt_tokens, input_tokens, cache_read_input_tokens, cache_creation_input_tokens];
  return counts.some((count) => typeof count === "number" && count > 0);
}

export function reported(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((found, name) => record(found)[name], value);
}

/** Null for anything but a count, so that what was not reported stays unknown. */
export function reportedCount(value: unknown, ...path: readonly string[]): number | null {
  const count = reported(value, ...path);
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : null;
}

export function sumOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

/**
 * No prompt has zero tokens: that and what is cached of it are not known. More cached tokens than prompt tokens is impossible. Either may be
 * wrong, so the cached count becomes unknown: a wrong one would mislead the index.
 */
export function usageRecord(counts: Omit<EngineUsage, "raw">, raw: unknown): EngineUsage {
  const { promptTokens, cachedTokens } = counts;
  if (promptTokens === 0) return { ...counts, promptTokens: null, cachedTokens: null, writtenTokens: null, raw };
  const isPossible = promptTokens === null || cachedTokens === null || cachedTokens <= promptTokens;
  return { ...counts, cachedTokens: isPossible ? cachedTokens : null, raw };
}
