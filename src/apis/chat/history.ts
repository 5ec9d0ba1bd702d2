import type { ChatMessage } from "../../core/index.js";
import type { JsonObject } from "../../core/text/json.js";

export function history({ messages }: JsonObject): readonly ChatMessage[] | null {
  return Array.isArray(messages) ? (messages as readonly ChatMessage[]) : null;
}
