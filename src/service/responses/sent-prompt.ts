import { type ChatMessage, digestOf } from "../../core/index.js";
import type { SentPrompt } from "./remembered-responses.js";

/** No messages. */
export const NOTHING_SENT: SentPrompt = { count: 0, digest: digestOf("") };

/** What was sent, followed by more messages. */
export function sentWith(sent: SentPrompt, messages: readonly ChatMessage[]): SentPrompt {
  const digest = messages.reduce((before, message) => digestOf(before + toldBy(message)), sent.digest);
  return { count: sent.count + messages.length, digest };
}

/** Whether a prompt begins with what was sent. */
export function continues(prompt: readonly ChatMessage[], sent: SentPrompt): boolean {
  if (prompt.length < sent.count) return false;
  return sentWith(NOTHING_SENT, prompt.slice(0, sent.count)).digest === sent.digest;
}

/** What the engine computes of a message; cache marks, which split texts into parts, do not count. */
function toldBy({ role, content, tool_calls: calls, tool_call_id: id }: ChatMessage): string {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  const texts = parts.map((part) => (part.type === "text" ? part["text"] : ""));
  const others = parts.filter(({ type }) => type !== "text");
  return JSON.stringify([role, texts.join(""), others, calls ?? null, id ?? null]);
}
