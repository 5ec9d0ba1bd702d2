import type { ChatMessage } from "../text/message.js";

/**
 * Where a turn's section goes: before its question's text; after its tool result, in a user message of its own whose content is a text, or
 * a list of parts if the client's is; or inside the tool result's message, after its text, for engines and chat templates that accept no
 * user message there (Mistral's).
 */
export const SECTION_PLACEMENTS = [
  "in-question",
  "after-tool-result",
  "in-tool-result",
  "after-tool-result-as-parts",
] as const;
export type SectionPlacement = (typeof SECTION_PLACEMENTS)[number];

/** Where memories go after a tool's result, as a caller names it. */
export const TOOL_MEMORIES = ["own_message", "in_result"] as const;
export type ToolMemories = (typeof TOOL_MEMORIES)[number];

/** Whether the section is a message of its own. */
export function isOwnMessage(placement: SectionPlacement): boolean {
  return placement === "after-tool-result" || placement === "after-tool-result-as-parts";
}

/**
 * The placement of a section in a message of its own after the first `count` of a client's plain messages. Its content has the form of the
 * last user message before it, so that it fits the client's message type.
 */
export function ownMessageBehind(messages: readonly ChatMessage[], count = messages.length): SectionPlacement {
  for (let at = count - 1; at >= 0; at--) {
    const message = messages[at];
    if (message?.role === "user")
      return Array.isArray(message.content) ? "after-tool-result-as-parts" : "after-tool-result";
  }
  return "after-tool-result";
}
