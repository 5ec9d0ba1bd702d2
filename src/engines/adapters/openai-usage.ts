import type { EngineUsage } from "./engine-adapter.js";
import { reported, reportedCount, usageRecord } from "./reported-counts.js";

/**
 * Reads `usage` as OpenAI's API has it: chat completions (`prompt_tokens`, `prompt_tokens_details`) and responses (`input_tokens`,
 * `input_tokens_details`). Engines that speak the API leave the details out where caching is not reported, vLLM without
 * `--enable-prompt-tokens-details` and SGLang without `--enable-cache-report` for two.
 * Source: OpenAI API reference, `CompletionUsage` (https://platform.openai.com/docs/api-reference/chat/object).
 */
export function readOpenAiUsage(answer: unknown): EngineUsage {
  const usage = reported(answer, "usage");
  const details = reported(usage, "prompt_tokens_details") ?? reported(usage, "input_tokens_details");
  return usageRecord(
    {
      promptTokens: reportedCount(usage, "prompt_tokens") ?? reportedCount(usage, "input_tokens"),
      cachedTokens: reportedCount(details, "cached_tokens"),
      writtenTokens: reportedCount(details, "cache_write_tokens"),
      completionTokens: reportedCount(usage, "completion_tokens") ?? reportedCount(usage, "output_tokens"),
    },
    usage ?? null,
  );
}
