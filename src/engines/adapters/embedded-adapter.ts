import type { EngineAdapter } from "./engine-adapter.js";
import { vllm } from "./vllm.js";

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
