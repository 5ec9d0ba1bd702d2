import {
  type EngineUsage,
  readOpenAiUsage,
  reported,
  reportedCount,
  sumOf,
  usageRecord,
} from "../../apis/api/usage.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";

/** `timings` has `cache_n` prompt tokens reused, `prompt_n` computed, `predicted_n` generated (server README, "Timings and context usage"). */
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

/**
 * Older versions need `cache_prompt`. The server picks the slot with the most similar prompt. It has no salt to keep tenants apart.
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
