import type { ContentPart } from "../../core/index.js";
import { type BreakpointStyle, withBreakpoints } from "./cache-breakpoints.js";
import type { EngineAdapter } from "./engine-adapter.js";
import { requestIdHeader } from "./engine-adapter.js";
import { ANTHROPIC_LIMITS } from "./provider-limits.js";
import { readAnthropicUsage } from "./reported-usage.js";

/** Text without anything in it cannot carry a mark, and thinking never does. */
function canMark(part: ContentPart): boolean {
  if (part.type === "text") return typeof part["text"] === "string" && part["text"].trim() !== "";
  return part.type !== "thinking" && part.type !== "redacted_thinking" && part.type !== "refusal";
}

const style: BreakpointStyle = {
  field: "cache_control",
  mark: { type: "ephemeral" },
  limits: ANTHROPIC_LIMITS,
  canMark: (_message, part) => canMark(part),
};

/**
 * Anthropic's models. What is cached ends at marks on content parts; messages are still OpenAI's, with Anthropic's marks on them, which
 * gateways take as they are and `toAnthropicMessages` moves to where `/v1/messages` has them. The time that a prefix is kept is the
 * default, 5 minutes: one for an hour costs twice the input to write.
 * Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 */
export const anthropic: EngineAdapter = {
  name: "anthropic",
  noLogprobs: "Anthropic's API gives no log probabilities",
  emit: (prompt) => ({
    messages: withBreakpoints(prompt, style),
    fields: {},
    headers: requestIdHeader(prompt.requestId),
  }),
  readUsage: readAnthropicUsage,
};
