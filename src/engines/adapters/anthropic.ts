import { readMessagesUsage } from "../../apis/messages/answer.js";
import type { ContentPart } from "../../core/index.js";
import { record } from "../../core/text/json.js";
import { type BreakpointStyle, withBreakpoints } from "./cache-breakpoints.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";

/** Content parts that carry no breakpoint: Anthropic's, then those of the AI SDK's prompts. */
const UNMARKABLE: ReadonlySet<string> = new Set([
  ...["thinking", "redacted_thinking", "refusal"],
  ...["reasoning", "reasoning-file", "custom", "tool-approval-response"],
]);

function canMark(part: ContentPart): boolean {
  if (part.type === "text") return typeof part["text"] === "string" && part["text"].trim() !== "";
  return !UNMARKABLE.has(part.type);
}

/** Null: the caller's marks break the rule "Cache entries with longer TTL must appear before shorter TTLs". */
function markBetween(before: readonly unknown[], behind: readonly unknown[]) {
  if (!behind.some(isHour)) return { type: "ephemeral" };
  return before.every(isHour) ? { type: "ephemeral", ttl: "1h" } : null;
}

function isHour(mark: unknown): boolean {
  return record(mark)["ttl"] === "1h";
}

const STYLE: BreakpointStyle = {
  field: "cache_control",
  markBetween,
  // "You can define up to 4 cache breakpoints"; "at most 20 positions per breakpoint, counting the breakpoint itself as the first".
  maxMarks: 4,
  lookBackBlocks: 20,
  canMark: (_message, part) => canMark(part),
};

/**
 * Anthropic's models, also through gateways that take breakpoints in chat completions.
 * Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 */
export const anthropic: EngineAdapter = {
  name: "anthropic",
  noLogprobs: "Anthropic's API gives no log probabilities",
  emit: (prompt) => ({
    messages: withBreakpoints(prompt, STYLE),
    fields: {},
    headers: requestIdHeader(prompt.requestId),
  }),
  readUsage: readMessagesUsage,
};
