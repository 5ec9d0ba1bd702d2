import { readOpenAiUsage } from "../../apis/api/usage.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";

/**
 * vLLM's OpenAI-compatible server. `cache_salt` enters the hash of the first block, so tenants share no cached block; eviction events and logs
 * have the `request_id`. Cached tokens are reported with `--enable-prompt-tokens-details` only.
 * Sources: https://docs.vllm.ai/en/latest/design/prefix_caching/, `vllm/entrypoints/openai/chat_completion/protocol.py`
 */
export const vllm: EngineAdapter = {
  name: "vllm",
  emit: ({ requestId, tenantKey, messages }) => ({
    messages,
    fields: { request_id: requestId, cache_salt: tenantKey },
    headers: requestIdHeader(requestId),
  }),
  readUsage: readOpenAiUsage,
};
