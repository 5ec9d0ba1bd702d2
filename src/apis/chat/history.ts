import type { ChatMessage } from "../../core/index.js";
import { type JsonObject, listIn } from "../../core/text/json.js";

export function history({ messages }: JsonObject): readonly ChatMessage[] | null {
  return Array.isArray(messages) ? (messages as readonly ChatMessage[]) : null;
}

/** OpenAI's two forms of tools. */
export function tools({ tools: given, functions }: JsonObject): readonly unknown[] {
  return [...listIn(given), ...listIn(functions)];
}
