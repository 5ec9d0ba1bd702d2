import { type EngineUsage, reported, reportedCount, sumOf, usageRecord } from "../../apis/api/usage.js";
import { readMessagesUsage } from "../../apis/messages/answer.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";
import { readLlamaCppUsage } from "./llama-cpp.js";

/** DeepSeek, Gemini's endpoint, Ollama, LM Studio, gateways. Some reject unknown body fields, so only a header is added. */
export const generic: EngineAdapter = {
  name: "generic",
  emit: ({ requestId, messages }) => ({ messages, fields: {}, headers: requestIdHeader(requestId) }),
  readUsage: (answer) => {
    // Servers with Anthropic's usage: its `input_tokens` exclude cached tokens, OpenAI's include them.
    const isAnthropics = reported(answer, "usage", "cache_read_input_tokens") !== undefined;
    if (isAnthropics && reported(answer, "usage", "prompt_tokens") === undefined) return readMessagesUsage(answer);
    let usage = readLlamaCppUsage(answer);
    for (const read of DIALECTS) {
      const more = read(answer);
      if (more !== null) usage = withKnown(usage, more);
    }
    return usageRecord(usage, usage.raw);
  },
};

type DialectReader = (answer: unknown) => EngineUsage | null;

/** Hits and misses are beside OpenAI's fields. Source: https://api-docs.deepseek.com/guides/kv_cache */
const deepSeek: DialectReader = (answer) => {
  const usage = reported(answer, "usage");
  const hits = reportedCount(usage, "prompt_cache_hit_tokens");
  const misses = reportedCount(usage, "prompt_cache_miss_tokens");
  if (hits === null && misses === null) return null;
  return {
    promptTokens: sumOf(hits, misses),
    cachedTokens: hits,
    writtenTokens: null,
    completionTokens: null,
    raw: usage,
  };
};

/** Prompt tokens include cached ones. Source: https://ai.google.dev/api/generate-content#UsageMetadata */
const gemini: DialectReader = (answer) => {
  const usage = reported(answer, "usageMetadata");
  if (usage === undefined) return null;
  const generated = reportedCount(usage, "candidatesTokenCount");
  return {
    promptTokens: reportedCount(usage, "promptTokenCount"),
    cachedTokens: reportedCount(usage, "cachedContentTokenCount"),
    writtenTokens: null,
    completionTokens: sumOf(generated, reportedCount(usage, "thoughtsTokenCount") ?? 0),
    raw: usage,
  };
};

/** Older versions do not report cached tokens. Source: https://docs.ollama.com/api/usage */
const ollama: DialectReader = (answer) => {
  const promptTokens = reportedCount(answer, "prompt_eval_count");
  const completionTokens = reportedCount(answer, "eval_count");
  if (promptTokens === null && completionTokens === null) return null;
  const cachedTokens = reportedCount(answer, "prompt_eval_cached_count");
  const raw = {
    prompt_eval_count: reported(answer, "prompt_eval_count"),
    prompt_eval_cached_count: reported(answer, "prompt_eval_cached_count"),
    eval_count: reported(answer, "eval_count"),
  };
  return { promptTokens, cachedTokens, writtenTokens: null, completionTokens, raw };
};

const DIALECTS: readonly DialectReader[] = [deepSeek, gemini, ollama];

function withKnown(first: EngineUsage, second: EngineUsage): EngineUsage {
  return {
    promptTokens: first.promptTokens ?? second.promptTokens,
    cachedTokens: first.cachedTokens ?? second.cachedTokens,
    writtenTokens: first.writtenTokens ?? second.writtenTokens,
    completionTokens: first.completionTokens ?? second.completionTokens,
    raw: first.raw ?? second.raw,
  };
}
