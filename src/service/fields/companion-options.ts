import { z } from "zod";
import type { RetrievedMemory } from "../../core/index.js";
import * as field from "./fields.js";
import { modelName } from "./fields.js";

/* Options of the library's calls other than `compose`; in snake_case, HTTP's bodies. The descriptions appear in the OpenAPI document. */

export const addOptions = z.strictObject({
  userId: field.userId.describe("Whose memories."),
  agentId: field.agentId.nullish().describe("The agent whose memories; absent: the user's own."),
  memories: field.memoryTexts.optional().describe("One text each, stored unmodified and at once."),
  messages: field.addedMessages
    .optional()
    .describe(
      "An exchange, in place of `memories`: a user's message and the answer, of which Mem0's model extracts memories. Answered with 202: Mem0 is given two of a conversation together, or one after two minutes without another. A source without a model stores each at once, as one text.",
    ),
  conversationId: field.conversationId
    .nullish()
    .describe(
      "The conversation of `messages`, which is added in order. Not sent to Mem0. Default: those of the same user, agent and run.",
    ),
  runId: field.runId.nullish().describe("With `messages`: Mem0's `run_id`. Searches do not find memories of a run."),
  infer: z
    .boolean()
    .nullish()
    .describe("With `messages`, `false`: Mem0 stores them unmodified, at once and not together with others."),
  wait: z
    .boolean()
    .nullish()
    .describe(
      "With `messages`: whether they are added now, with those of the conversation that wait, and answered after it. Default: false.",
    ),
  metadata: field.memoryMetadata.optional().describe("Stored with each memory, where the source can."),
});

export const memoriesOptions = z.strictObject({
  userId: field.userId.describe("Whose memories."),
  agentId: field.agentId.nullish().describe("The agent whose memories; absent: the user's own."),
  query: field.query
    .nullish()
    .describe(
      "Searches as a prompt does, best first. Absent: all memories, oldest first, where the source is embedded.",
    ),
  topK: field.topK.nullish().describe("How many to search for. Default: `MEMPREFIX_TOP_K`."),
});

export type MemoriesQuery = z.output<typeof memoriesOptions>;

export const evictOptions = z.strictObject({
  requestIds: field.requestIds.describe("Requests whose cache the engine dropped."),
});

export const feedbackOptions = z.strictObject({
  userId: field.userId.describe("Whose request."),
  agentId: field.agentId.nullish().describe("The agent that it was composed for."),
  requestId: field.requestId.describe("The composed request."),
  promptTokens: field.tokenCount
    .nullish()
    .describe(
      "Prompt tokens by the engine's count. Converts its figures to memprefix's estimates, so give it with `cached_tokens`.",
    ),
  cachedTokens: field.tokenCount
    .nullish()
    .describe("Cached prompt tokens by the engine's count. Absent: unknown, not zero."),
  ttftMs: field.milliseconds.nullish().describe("Time to first token, in milliseconds."),
  model: modelName
    .nullish()
    .describe(
      "The model that answered: `/usage` counts the prompt under it. Absent: under the one it was composed for.",
    ),
});

export const forgetUserOptions = z.strictObject({ userId: field.userId.describe("Whose state.") });

export const forgetMemoryOptions = forgetUserOptions.extend({
  memoryId: field.memoryId.describe("The memory's id in its source."),
});

/** Memories in Mem0's result shape. */
export function mem0Items(memories: readonly Pick<RetrievedMemory, "id" | "text">[]): { id: string; memory: string }[] {
  return memories.map(({ id, text }) => ({ id, memory: text }));
}
