import { utcDay } from "../text/given-time.js";
import { canonicalText, cutText } from "../text/memory-text.js";
import type { RenderedMemory, RetrievedMemory } from "./context-block.js";

/** A rendered memory, and whether its text was truncated. */
export interface SizedMemory {
  readonly memory: RenderedMemory;
  readonly isCut: boolean;
}

/** Truncates a memory to `max` characters (UTF-16 units). `dates` puts the UTC day of `createdAt` first: `2026-11-29: text`. */
export function renderMemory(retrieved: RetrievedMemory, dates: boolean, max: number): SizedMemory {
  const { createdAt, updatedAt, ...given } = retrieved;
  const writtenAt = updatedAt ?? createdAt;
  const memory = writtenAt === undefined ? given : { ...given, writtenAt };
  const day = dates && createdAt !== undefined ? utcDay(createdAt) : null;
  if (day === null) return sized(memory, memory.text, "", max);
  const { memory: rendered, isCut } = sized(memory, canonicalText(memory.text), `${day}: `, max);
  return { memory: { ...rendered, dated: true }, isCut };
}

function sized(memory: RenderedMemory, text: string, before: string, max: number): SizedMemory {
  const isCut = before.length + text.length > max;
  const words = isCut ? cutText(text, max - before.length) : text;
  return { memory: { ...memory, text: before + words }, isCut };
}
