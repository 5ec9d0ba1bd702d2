import { utcDay } from "../text/given-time.js";
import { canonicalText, cutText } from "../text/memory-text.js";
import type { RenderedMemory, RetrievedMemory } from "./context-block.js";

/** A memory as its block gives it, and whether its text had to be truncated. */
export interface SizedMemory {
  readonly memory: RenderedMemory;
  readonly isCut: boolean;
}

/**
 * Renders a memory in at most `max` characters (UTF-16 units): its text is truncated to fit. With `dates`, the day of its `createdAt` in UTC
 * stands before it, where it has one: `2026-11-29: text`. Pure, and the same on every machine.
 */
export function renderMemory({ createdAt, ...memory }: RetrievedMemory, dates: boolean, max: number): SizedMemory {
  const day = dates && createdAt !== undefined ? utcDay(createdAt) : null;
  if (day === null) return sized(memory, memory.text, "", max);
  const { memory: rendered, isCut } = sized(memory, canonicalText(memory.text), `${day}: `, max);
  return { memory: { ...rendered, dated: true }, isCut };
}

function sized(memory: Omit<RetrievedMemory, "createdAt">, text: string, before: string, max: number): SizedMemory {
  const isCut = before.length + text.length > max;
  const words = isCut ? cutText(text, max - before.length) : text;
  return { memory: { ...memory, text: before + words }, isCut };
}
