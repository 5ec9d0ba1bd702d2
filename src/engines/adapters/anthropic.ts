import type { ContentPart } from "../../core/index.js";
import { type BreakpointStyle, withBreakpoints } from "./cache-breakpoints.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";
import { ANTHROPIC_LIMITS } from "./provider-limits.js";
import { readAnthropicUsage } from "./reported-usage.js";

/** Content parts that carry no breakpoint: Anthropic's, then those of the AI SDK's prompts. */
const UNMARKABLE: ReadonlySet<string> = new Set([
  ...["thinking", "redacted_thinking", "refusal"],
  ...["reasoning", "reasoning-file", "custom", "tool-approval-response"],
]);

/** Empty text cannot carry a breakpoint either. */
function canMark(part: ContentPart): boolean {
  if (part.type === "text") return typeof part["text"] === "string" && part["text"].trim() !== "";
  return !UNMARKABLE.has(part.type);
}

const style: BreakpointStyle = {
  field: "cache_control",
  mark: { type: "ephemeral" },
  limits: ANTHROPIC_LIMITS,
  canMark: (_message, part) => canMark(part),
};

/**
 * Anthropic's models: cached prefixes end at breakpoints on content parts. Messages stay in OpenAI's form, with Anthropic's breakpoints on
 * them: gateways pass those on, and `toAnthropicMessages` moves them to where `/v1/messages` has them. TTL is the default, 5 minutes:
 * writing for an hour costs twice the input.
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
