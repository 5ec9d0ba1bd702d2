import type { RequestId } from "../../core/index.js";
import type { EngineAdapter } from "./engine-adapter.js";
import { readOpenAiUsage } from "./openai-usage.js";
import { requestIdHeader } from "./request-headers.js";

/**
 * OpenAI's models before GPT-5.6: prefixes of 1,024 tokens and more are cached by themselves. `prompt_cache_key` brings a scope's
 * prompts to the machine that holds their cache. How long they are kept (`prompt_cache_retention`) is a choice of the caller's.
 * Source: https://platform.openai.com/docs/guides/prompt-caching
 */
export const openAi: EngineAdapter = {
  name: "openai",
  emit: ({ requestId, scopeKey, messages }) => ({
    messages,
    fields: { prompt_cache_key: scopeKey },
    headers: openAiHeaders(requestId),
  }),
  readUsage: readOpenAiUsage,
};

/** OpenAI names its own requests in `x-request-id` and takes ours in another header (API overview, "Debugging requests"). */
export function openAiHeaders(requestId: RequestId): Readonly<Record<string, string>> {
  return { ...requestIdHeader(requestId), "x-client-request-id": requestId };
}
