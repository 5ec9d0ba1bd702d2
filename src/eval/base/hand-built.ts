import type { ChatMessage, RetrievedMemory } from "../../core/index.js";
import { INSTRUCTION } from "./instruction.js";

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
