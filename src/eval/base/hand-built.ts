import type { ChatMessage, RetrievedMemory } from "../../core/index.js";

/** The prompt that Mem0's README, its examples and its provider for the Vercel AI SDK build: memories in the system message, in search order. */
export function readmeMessages(memories: readonly RetrievedMemory[], history: readonly ChatMessage[]): ChatMessage[] {
  return [{ role: "system", content: `${INSTRUCTION}\n${listOf(memories)}` }, ...history];
}

/** Memories in the last message, before the question, in search order. Later prompts have that message as plain history. */
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

/** The instructions that every measured prompt begins with, whoever builds it. */
export const INSTRUCTION = "You are a helpful assistant. Answer the question from what you remember about the user.";

/** What a history holds as the answer to a question that has none. */
export const NO_ANSWER = "I don't know.";

/** A text of so many o200k_base tokens, for histories whose answers have a given length. */
export function answerOf(tokens: number): string {
  return "yes".concat(" yes".repeat(tokens - 1));
}

/** Milliseconds between two questions by a composer's clock: time to read an answer and write the next question. */
export const PAUSE_MS = 30_000;
