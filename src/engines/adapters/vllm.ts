import type { EngineAdapter } from "./engine-adapter.js";
import { requestIdHeader } from "./engine-adapter.js";
import { readOpenAiUsage } from "./reported-usage.js";

/**
 * vLLM's OpenAI-compatible server. `cache_salt` enters the hash of the first block, so tenants share no cached block; `request_id` is
 * what eviction events and logs call the request. How much was cached is reported with `--enable-prompt-tokens-details` only.
 * Sources: https://docs.vllm.ai/en/latest/design/prefix_caching/ (cache isolation), `ChatCompletionRequest` in
 * `vllm/entrypoints/openai/chat_completion/protocol.py`.
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

/**
 * The engine inside: vLLM's form, whose salt it honours, and beside it whose request it is, so that a tenant's users take turns where they
 * wait. It goes under vLLM's name, because to a caller it is one.
 */
export const embedded: EngineAdapter = {
  ...vllm,
  emit: (prompt) => {
    const emission = vllm.emit(prompt);
    return { ...emission, fields: { ...emission.fields, prompt_cache_key: prompt.scopeKey } };
  },
};
