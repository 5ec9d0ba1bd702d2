import { readOpenAiUsage } from "../../apis/api/usage.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";

/**
 * SGLang. `cache_salt` keeps tenants apart in the radix tree. Cached tokens need `--enable-cache-report`.
 * Source: `python/sglang/srt/entrypoints/openai/protocol.py`
 */
export const sglang: EngineAdapter = {
  name: "sglang",
  salt: "cache_salt",
  emit: ({ requestId, tenantKey, messages }) => ({
    messages,
    fields: { rid: requestId, cache_salt: tenantKey },
    headers: requestIdHeader(requestId),
  }),
  readUsage: readOpenAiUsage,
};
