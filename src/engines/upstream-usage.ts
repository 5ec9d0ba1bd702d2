import { z } from "zod";
import type { EngineUsage } from "./engine-adapter.js";

/** How the usage is read out of an answer, or out of the last chunk of a streamed one. An adapter's `readUsage` is one. */
export type UsageReader = (answer: unknown) => EngineUsage;

const count = z.int().min(0).nullable().catch(null);
const answer = z.object({
  usage: z.object({
    prompt_tokens: count,
    completion_tokens: count,
    prompt_tokens_details: z
      .object({ cached_tokens: count, cache_write_tokens: count })
      .catch({ cached_tokens: null, cache_write_tokens: null }),
  }),
});

/** OpenAI's `usage`, as most engines have it. Tolerant: what is absent or no count is null. */
export const readOpenAiUsage: UsageReader = (given) => {
  const read = answer.safeParse(given);
  if (!read.success) {
    return { promptTokens: null, cachedTokens: null, writtenTokens: null, completionTokens: null, raw: null };
  }
  const { prompt_tokens_details: details, prompt_tokens, completion_tokens } = read.data.usage;
  return {
    promptTokens: prompt_tokens,
    cachedTokens: details.cached_tokens,
    writtenTokens: details.cache_write_tokens,
    completionTokens: completion_tokens,
    raw: (given as { readonly usage: unknown }).usage,
  };
};
