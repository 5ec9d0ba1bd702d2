import type { ChatMessage } from "../src/core/index.js";

/** A user's message. */
export const user = (content: ChatMessage["content"], more: object = {}): ChatMessage => ({
  role: "user",
  content,
  ...more,
});

/** An answer. */
export const says = (content: ChatMessage["content"], more: object = {}): ChatMessage => ({
  role: "assistant",
  content,
  ...more,
});

/** An answer that calls a tool. */
export const calls = (name: string, json: string, id = "call_1", more: object = {}): ChatMessage =>
  says(null, { tool_calls: [{ id, type: "function", function: { name, arguments: json } }], ...more });

/** The result of a call. */
export const result = (content: string, id = "call_1"): ChatMessage => ({ role: "tool", tool_call_id: id, content });

/** A part of a message. */
export const part = (said: string, more: object = {}) => ({ type: "text", text: said, ...more });
