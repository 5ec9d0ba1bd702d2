/**
 * Where a turn's section stands: before its question's text; behind its tool result, in a user's message of its own; or inside the tool
 * result's message, behind its text, for engines and chat templates that take no user's message there (Mistral's).
 */
export const SECTION_PLACEMENTS = ["in-question", "after-tool-result", "in-tool-result"] as const;
export type SectionPlacement = (typeof SECTION_PLACEMENTS)[number];

/** Where memories stand behind a tool's result, as a caller names it. */
export const TOOL_MEMORIES = ["own_message", "in_result"] as const;
export type ToolMemories = (typeof TOOL_MEMORIES)[number];
