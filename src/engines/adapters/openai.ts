import type { ChatMessage, ContentPart, RequestId } from "../../core/index.js";
import { type BreakpointStyle, countMarks, withBreakpoints } from "./cache-breakpoints.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";
import { OPENAI_LIMITS } from "./provider-limits.js";
import { readOpenAiUsage } from "./reported-usage.js";

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

const MARK = "prompt_cache_breakpoint";

/** The content parts that the API reference lets carry a breakpoint; an assistant's own messages are not among those that do. */
const MARKABLE = new Set(["image_url", "input_audio", "file"]);

const style: BreakpointStyle = {
  field: MARK,
  mark: { mode: "explicit" },
  limits: OPENAI_LIMITS,
  canMark: ({ role }: ChatMessage, part: ContentPart) =>
    role !== "assistant" &&
    role !== "function" &&
    (MARKABLE.has(part.type) || (part.type === "text" && part["text"] !== "")),
};

/**
 * OpenAI's models from GPT-5.6 on, which match at breakpoints, exactly, and bill what is written. With breakpoints of ours the automatic
 * one at the newest message is turned off: it would be written and billed every time, and never be read where the end changes.
 * Source: https://platform.openai.com/docs/guides/prompt-caching, `prompt_cache_options` and `prompt_cache_breakpoint` of the
 * chat completions reference.
 */
export const openAiBreakpoints: EngineAdapter = {
  name: "openai-breakpoints",
  emit: (prompt) => {
    const messages = withBreakpoints(prompt, style);
    const isMarked = countMarks(messages, MARK) > 0;
    return {
      messages,
      fields: {
        prompt_cache_key: prompt.scopeKey,
        ...(isMarked ? { prompt_cache_options: { mode: "explicit" } } : {}),
      },
      headers: openAiHeaders(prompt.requestId),
    };
  },
  readUsage: readOpenAiUsage,
};

/** OpenAI names its own requests in `x-request-id` and takes ours in another header (API overview, "Debugging requests"). */
function openAiHeaders(requestId: RequestId): Readonly<Record<string, string>> {
  return { ...requestIdHeader(requestId), "x-client-request-id": requestId };
}
