import { z } from "zod";
import type { RetrievedMemory } from "../../core/index.js";
import type { NewMemory } from "../../memory/memory-source.js";
import type { EngineReport } from "../../store/api/store.js";
import * as field from "./fields.js";

/*
 * Options of the library's calls other than `compose`: the fields of the HTTP requests, in camelCase. `null` counts as absent.
 */

export const addOptions = z.strictObject({
  userId: field.userId,
  agentId: field.agentId.nullish(),
  memories: field.memoryTexts,
  metadata: field.memoryMetadata.optional(),
});
export type AddOptions = z.input<typeof addOptions>;

export const evictOptions = z.strictObject({ requestIds: field.requestIds });
export type EvictOptions = z.input<typeof evictOptions>;

export const feedbackOptions = z.strictObject({
  userId: field.userId,
  agentId: field.agentId.nullish(),
  requestId: field.requestId,
  promptTokens: field.tokenCount.nullish(),
  cachedTokens: field.tokenCount.nullish(),
  ttftMs: field.milliseconds.nullish(),
});
export type FeedbackOptions = z.input<typeof feedbackOptions>;

export const forgetMemoryOptions = z.strictObject({ userId: field.userId, memoryId: field.memoryId });
export type ForgetMemoryOptions = z.input<typeof forgetMemoryOptions>;

export const forgetUserOptions = z.strictObject({ userId: field.userId });
export type ForgetUserOptions = z.input<typeof forgetUserOptions>;

/** An engine's report, without absent fields. */
export function observationOf(
  reported: Partial<Record<Exclude<keyof EngineReport, "diagnosis">, number | null | undefined>>,
): EngineReport {
  const { promptTokens, cachedTokens, ttftMs } = reported;
  return {
    ...(promptTokens == null ? {} : { promptTokens }),
    ...(cachedTokens == null ? {} : { cachedTokens }),
    ...(ttftMs == null ? {} : { ttftMs }),
  };
}

/** Memories to add: texts with common metadata. */
export function newMemories(
  texts: readonly string[],
  metadata: Readonly<Record<string, unknown>> | undefined,
): NewMemory[] {
  return texts.map((text) => ({ text, ...(metadata === undefined ? {} : { metadata }) }));
}

/** Memories in Mem0's result shape. */
export function mem0Items(memories: readonly RetrievedMemory[]): { id: string; memory: string }[] {
  return memories.map(({ id, text }) => ({ id, memory: text }));
}
