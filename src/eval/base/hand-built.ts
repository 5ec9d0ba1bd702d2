import type { ChatMessage, RetrievedMemory } from "../../core/index.js";

/** The prompt of Mem0's README and its Vercel AI SDK provider: memories in the system message, in search order. */
export function readmeMessages(memories: readonly RetrievedMemory[], history: readonly ChatMessage[]): ChatMessage[] {
  return [{ role: "system", content: `${INSTRUCTION}\n${listOf(memories)}` }, ...history];
}

/** Memories in the last message, before the question, in search order. Later prompts hold that message as plain history. */
export function inLastMessage(memories: readonly RetrievedMemory[], history: readonly ChatMessage[]): ChatMessage[] {
  const asked = history.at(-1)?.content ?? "";
  return [
    { role: "system", content: INSTRUCTION },
    ...history.slice(0, -1),
    { role: "user", content: `${listOf(memories)}\n\n${String(asked)}` },
  ];
}

function listOf(memories: readonly RetrievedMemory[]): string {
  return `User Memories:\n${memories.map(({ text }) => `- ${text}`).join("\n")}`;
}

/** The first line of every measured prompt, whoever builds it. */
export const INSTRUCTION = "You are a helpful assistant. Answer the question from what you remember about the user.";

/** The answer that histories hold for a question without one. */
export const NO_ANSWER = "I don't know.";

/** A text of this many o200k_base tokens, for histories with answers of a fixed length. */
export function answerOf(tokens: number): string {
  return "yes".concat(" yes".repeat(tokens - 1));
}

/** Time between two questions by a composer's clock. */
export const PAUSE_MS = 30_000;
