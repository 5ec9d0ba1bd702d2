import { type EngineUsage, readOpenAiUsage, reported, reportedCount, usageRecord } from "../../apis/api/usage.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";

/**
 * SGLang. `cache_salt` keeps tenants apart in the radix tree. Cached tokens need `--enable-cache-report`, except in `/generate`'s `meta_info`.
 * Sources: `python/sglang/srt/entrypoints/openai/protocol.py`, https://docs.sglang.ai/basic_usage/native_api.html
 */
export const sglang: EngineAdapter = {
  name: "sglang",
  salt: "cache_salt",
  emit: ({ requestId, tenantKey, messages }) => ({
    messages,
    fields: { rid: requestId, cache_salt: tenantKey },
    headers: requestIdHeader(requestId),
  }),
  readUsage: (answer) => (reported(answer, "usage") == null ? readMetaInfo(answer) : readOpenAiUsage(answer)),
};

function readMetaInfo(answer: unknown): EngineUsage {
  const meta = reported(answer, "meta_info");
  return usageRecord(
    {
      promptTokens: reportedCount(meta, "prompt_tokens"),
      cachedTokens: reportedCount(meta, "cached_tokens"),
      writtenTokens: null,
      completionTokens: reportedCount(meta, "completion_tokens"),
    },
    meta ?? null,
  );
}
