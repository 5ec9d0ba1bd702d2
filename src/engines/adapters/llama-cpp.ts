import type { EngineAdapter, EngineUsage } from "./engine-adapter.js";
import { requestIdHeader } from "./engine-adapter.js";
import { readOpenAiUsage, reported, reportedCount, sumOf, usageRecord } from "./reported-usage.js";

/**
 * llama.cpp's server. `cache_prompt` is its default today and was not always; the slot is left to the server, which takes the one whose
 * prompt is most alike (`--slot-prompt-similarity`), for only it knows how many there are. It has nothing to keep tenants apart by.
 * Source: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
 */
export const llamaCpp: EngineAdapter = {
  name: "llamacpp",
  emit: ({ requestId, messages }) => ({
    messages,
    fields: { cache_prompt: true },
    headers: requestIdHeader(requestId),
  }),
  readUsage: readLlamaCppUsage,
};

/**
 * `usage` where it says something, else `timings`: `cache_n` tokens of the prompt were reused, `prompt_n` computed, `predicted_n`
 * generated (server README, "Timings and context usage").
 */
export function readLlamaCppUsage(answer: unknown): EngineUsage {
  const usage = readOpenAiUsage(answer);
  const timings = reported(answer, "timings");
  const cachedTokens = reportedCount(timings, "cache_n");
  return usageRecord(
    {
      promptTokens: usage.promptTokens ?? sumOf(cachedTokens, reportedCount(timings, "prompt_n")),
      cachedTokens: usage.cachedTokens ?? cachedTokens,
      writtenTokens: usage.writtenTokens,
      completionTokens: usage.completionTokens ?? reportedCount(timings, "predicted_n"),
    },
    timings === undefined ? usage.raw : { usage: usage.raw, timings },
  );
}
