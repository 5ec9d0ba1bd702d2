import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";
import { readLlamaCppUsage } from "./reported-usage.js";

/**
 * llama.cpp's server. `cache_prompt` is the default only in newer versions. The slot is left to the server, which knows how many there are
 * and takes the one with the most similar prompt (`--slot-prompt-similarity`). It has no salt to keep tenants apart.
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
