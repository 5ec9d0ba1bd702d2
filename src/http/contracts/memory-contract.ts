import { z } from "zod";
import type { Forgetting } from "../../service/base/answers.js";
import * as field from "../../service/fields/fields.js";
import { answerForm } from "./answer-form.js";
import { label } from "./label.js";
import { userPath } from "./user-contract.js";

/*
 * Memories: as requests give them, `POST /memories`, and forgetting one.
 */

const memoryItem = z
  .looseObject({ id: z.union([z.string(), z.int()]), memory: z.string().meta({ description: "The text." }) })
  .meta({
    id: "Memory",
    description:
      "A memory in Mem0's format. A block template can name its times, categories and metadata; other fields are ignored.",
  });

/** Memories in any of Mem0's result shapes. The document's words for what {@link field.memories} reads. */
export const givenMemories = field.memories.meta({
  description:
    "Mem0's search result, unmodified: an array, `{ results }`, `{ results, relations }` or a page. Each item needs `id` and `memory`; most relevant first. An item that is no memory is left out, and the warning `memory_unusable` names it; one that no longer holds (its `expiration_date` is past, it was superseded, archived or deleted) is left out with the warning `memory_ended`. Absent: memstem searches the configured source.",
  anyOf: [
    { type: "array", items: { $ref: "#/components/schemas/Memory" } },
    {
      type: "object",
      required: ["results"],
      properties: { results: { type: "array", items: { $ref: "#/components/schemas/Memory" } } },
    },
    { type: "null" },
  ],
});

export const addBody = z
  .strictObject({
    user_id: field.userId.meta({ description: "Whose memories." }),
    agent_id: field.agentId.nullish().meta({ description: "The agent whose memories; absent: the user's own." }),
    memories: field.memoryTexts.meta({ description: "One text each, stored unmodified." }),
    metadata: field.memoryMetadata.optional().meta({ description: "Stored with each memory, where the source can." }),
  })
  .meta({ id: "AddRequest" });

export const addResult = z
  .object({
    results: z.array(memoryItem).meta({ description: "The memories with their ids, in the request's order." }),
  })
  .meta({ id: "AddAnswer" });

export const memoryPath = userPath.extend({
  memory_id: field.memoryId.meta({ description: "The memory's id in its source." }),
});
export const memoryQuery = memoryPath.extend(answerForm);

export const forgetMemoryResult = z
  .object({
    memory_id: z.string(),
    labels: z.array(label).meta({ description: "Blocks whose text was erased." }),
    deleted_from_source: z.boolean().nullable().meta({
      description:
        "Whether it was deleted in the memory source. Null: another system owns the memory; delete it there too.",
    }),
  })
  .meta({ id: "ForgottenMemory" });

/** The JSON of {@link forgetMemoryResult}. */
export function writeForgetting({
  memoryId,
  labels,
  deletedFromSource,
}: Forgetting): z.input<typeof forgetMemoryResult> {
  return { memory_id: memoryId, labels: [...labels], deleted_from_source: deletedFromSource };
}
