import { readOpenAiUsage } from "../../apis/api/usage.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";

/**
 * vLLM. `cache_salt` enters the first block's hash and so keeps tenants apart. Cached tokens need `--enable-prompt-tokens-details`.
 * Sources: https://docs.vllm.ai/en/latest/design/prefix_caching/, `vllm/entrypoints/openai/chat_completion/protocol.py`
 */
export const vllm: EngineAdapter = {
  name: "vllm",
  salt: "cache_salt",
  emit: ({ requestId, tenantKey, messages }) => ({
    messages,
    fields: { request_id: requestId, cache_salt: tenantKey },
    headers: requestIdHeader(requestId),
  }),
  readUsage: readOpenAiUsage,
};
