import { z } from "zod";
import { addOptions, forgetMemoryOptions } from "../../service/fields/companion-options.js";
import { bodyOf, label, snakeCased } from "./wire-form.js";

/*
 * Memories: `POST /memories`, and forgetting one.
 */

const memoryItem = z
  .looseObject({ id: z.union([z.string(), z.int()]), memory: z.string().describe("The text.") })
  .meta({
    id: "Memory",
    description:
      "A memory in Mem0's format. A block template can name its times, categories and metadata; other fields are ignored.",
  });

export const addBody = bodyOf(addOptions, { id: "AddRequest" });

export const addResult = z
  .object({
    results: z.array(memoryItem).describe("The memories with their ids, in the request's order."),
  })
  .meta({ id: "AddAnswer" });

/** The ids of a memory. */
export const memoryIds = snakeCased(forgetMemoryOptions);

export const forgetMemoryResult = z
  .object({
    memory_id: z.string(),
    labels: z.array(label).describe("Blocks whose text was erased."),
    deleted_from_source: z
      .boolean()
      .nullable()
      .describe(
        "Whether it was deleted in the memory source. Null: another system owns the memory; delete it there too.",
      ),
  })
  .meta({ id: "ForgottenMemory" });
