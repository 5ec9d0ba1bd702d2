import { readMessagesUsage } from "../../apis/messages/answer.js";
import type { ContentPart } from "../../core/index.js";
import { type BreakpointStyle, withBreakpoints } from "./cache-breakpoints.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";
import { ANTHROPIC_LIMITS } from "./provider-limits.js";

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

/** How long a marked prefix is kept after its last use. */
export const MARK_LIFETIMES = ["5m", "1h"] as const;
export type MarkLifetime = (typeof MARK_LIFETIMES)[number];

/**
 * "Cache entries with longer TTL must appear before shorter TTLs", in the order tools, system, messages: after five minutes no hour may
 * stand. Null: the caller's own marks are in no such order.
 */
function markBetween(wished: MarkLifetime, before: readonly unknown[], behind: readonly unknown[]) {
  const mayBeHour = before.every(isHour);
  const mustBeHour = behind.some(isHour);
  if (mustBeHour && !mayBeHour) return null;
  return mustBeHour || (mayBeHour && wished === "1h") ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" };
}

/** The default is five minutes. */
function isHour(mark: unknown): boolean {
  return typeof mark === "object" && mark !== null && "ttl" in mark && mark.ttl === "1h";
}

/**
 * Anthropic's models: cached prefixes end at breakpoints on content parts. Gateways take them on the parts of chat completions as well;
 * `apis/messages/sections.ts` puts them where `/v1/messages` has them.
 * Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 *
 * @param lifetime of the marks set here, where the caller's own allow it; writing for an hour costs twice the input, for five minutes 1.25 times
 */
export function anthropicWith(lifetime: MarkLifetime): EngineAdapter {
  const style: BreakpointStyle = {
    field: "cache_control",
    markBetween: (before, behind) => markBetween(lifetime, before, behind),
    limits: ANTHROPIC_LIMITS,
    canMark: (_message, part) => canMark(part),
  };
  return {
    name: "anthropic",
    noLogprobs: "Anthropic's API gives no log probabilities",
    emit: (prompt) => ({
      messages: withBreakpoints(prompt, style),
      fields: {},
      headers: requestIdHeader(prompt.requestId),
    }),
    readUsage: readMessagesUsage,
  };
}

/** Anthropic's models, with marks of five minutes. */
export const anthropic = anthropicWith("5m");
