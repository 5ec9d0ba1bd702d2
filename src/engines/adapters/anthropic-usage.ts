import type { EngineUsage } from "./engine-adapter.js";
import { reported, reportedCount, sumOf, usageRecord } from "./reported-counts.js";

/**
 * Reads Anthropic's `usage`, of a message, of the stream's `message_start` and `message_delta`, or of an answer converted to OpenAI's
 * form, which keeps these fields. "Total input tokens in a request is the summation of `input_tokens`, `cache_creation_input_tokens`,
 * and `cache_read_input_tokens`" (API reference, `Usage`): without one of them the total is not known.
 */
export function readAnthropicUsage(answer: unknown): EngineUsage {
  const usage = reported(answer, "usage") ?? reported(answer, "message", "usage");
  const cachedTokens = reportedCount(usage, "cache_read_input_tokens");
  const writtenTokens = reportedCount(usage, "cache_creation_input_tokens");
  const uncached = reportedCount(usage, "input_tokens");
  return usageRecord(
    {
      promptTokens: sumOf(uncached, sumOf(cachedTokens, writtenTokens)),
      cachedTokens,
      writtenTokens,
      completionTokens: reportedCount(usage, "output_tokens"),
    },
    usage ?? null,
  );
}
