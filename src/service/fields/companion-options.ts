import { z } from "zod";
import type { RetrievedMemory } from "../../core/index.js";
import type { NewMemory } from "../../memory/memory-source.js";
import type { EngineReport } from "../../store/api/store.js";
import * as field from "./fields.js";
import { modelName } from "./usage-fields.js";

/*
 * Checks the options of the library's calls other than `compose` (`base/call-options.ts`), and turns them into what the service takes.
 */

export const addOptions = z.strictObject({
  userId: field.userId,
  agentId: field.agentId.nullish(),
  memories: field.memoryTexts,
  metadata: field.memoryMetadata.optional(),
});

export const evictOptions = z.strictObject({ requestIds: field.requestIds });

export const feedbackOptions = z.strictObject({
  userId: field.userId,
  agentId: field.agentId.nullish(),
  requestId: field.requestId,
  promptTokens: field.tokenCount.nullish(),
  cachedTokens: field.tokenCount.nullish(),
  ttftMs: field.milliseconds.nullish(),
  model: modelName.nullish(),
});

export const forgetMemoryOptions = z.strictObject({ userId: field.userId, memoryId: field.memoryId });

export const forgetUserOptions = z.strictObject({ userId: field.userId });

/** An engine's report, without absent fields. */
export function observationOf(reported: Partial<Record<keyof EngineReport, number | null | undefined>>): EngineReport {
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
