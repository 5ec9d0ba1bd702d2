import type { ChatMessage } from "../../core/index.js";
import { type JsonObject, listIn } from "../../core/text/json.js";

/** The messages of a chat completion; null where it has none. */
export function history({ messages }: JsonObject): readonly ChatMessage[] | null {
  return Array.isArray(messages) ? (messages as readonly ChatMessage[]) : null;
}

/** Its tools, in both of OpenAI's forms. */
export function tools({ tools: given, functions }: JsonObject): readonly unknown[] {
  return [...listIn(given), ...listIn(functions)];
}
