import { readOpenAiUsage } from "../../apis/api/usage.js";
import type { ChatMessage, ContentPart, RequestId } from "../../core/index.js";
import type { JsonObject } from "../../core/text/json.js";
import { type BreakpointStyle, countMarks, withBreakpoints } from "./cache-breakpoints.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";

/**
 * OpenAI's models before GPT-5.6, which cache prefixes from 1,024 tokens automatically. `prompt_cache_key` routes to the machine that has them.
 * Source: https://platform.openai.com/docs/guides/prompt-caching
 */
export const openAi: EngineAdapter = {
  name: "openai",
  emit: ({ requestId, scopeKey, messages }) => ({
    messages,
    fields: cacheKey(scopeKey),
    headers: openAiHeaders(requestId),
  }),
  readUsage: readOpenAiUsage,
};

const MARK = "prompt_cache_breakpoint";

/** By the API reference; parts of assistant messages may not carry a breakpoint. */
const MARKABLE = new Set(["image_url", "input_audio", "file"]);

const style: BreakpointStyle = {
  field: MARK,
  markBetween: () => ({ mode: "explicit" }),
  // "Each request can write up to four breakpoints". The effect of a fifth on the first is not documented.
  maxMarks: 4,
  lookBackBlocks: 1,
  canMark: ({ role }: ChatMessage, part: ContentPart) =>
    role !== "assistant" &&
    role !== "function" &&
    (MARKABLE.has(part.type) || (part.type === "text" && part["text"] !== "")),
};

/**
 * OpenAI's models from GPT-5.6 on: hits end exactly at breakpoints, and cache writes are billed. The automatic breakpoint at the newest message is
 * off with explicit ones, and where none is worth its price: each write would be billed and never read.
 */
export const openAiBreakpoints: EngineAdapter = {
  name: "openai-breakpoints",
  emit: (prompt) => {
    const messages = withBreakpoints(prompt, style);
    const isExplicit = countMarks(messages, MARK) > 0 || prompt.isRead === false;
    return {
      messages,
      fields: {
        ...cacheKey(prompt.scopeKey),
        ...(isExplicit ? { prompt_cache_options: { mode: "explicit" } } : {}),
      },
      headers: openAiHeaders(prompt.requestId),
    };
  },
  readUsage: readOpenAiUsage,
};

export function cacheKey(scopeKey: string | null): JsonObject {
  return scopeKey === null ? {} : { prompt_cache_key: scopeKey };
}

/** OpenAI uses `x-request-id` for its own ids and reads the client's from another header (API overview, "Debugging requests"). */
function openAiHeaders(requestId: RequestId): Readonly<Record<string, string>> {
  return { ...requestIdHeader(requestId), "x-client-request-id": requestId };
}
