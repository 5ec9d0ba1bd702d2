import { z } from "zod";
import {
  addOptions,
  forgetMemoryOptions,
  forgetUserOptions,
  memoriesOptions,
} from "../../service/fields/companion-options.js";
import * as field from "../../service/fields/fields.js";
import type { UserExport } from "../../service/records/user-records.js";
import { bodyOf, label, snakeCased } from "./wire-form.js";
import type { FromWire } from "./wire-names.js";

/*
 * Forgetting a user.
 */

export const userIds = snakeCased(forgetUserOptions);

export const forgetUserResult = z
  .object({
    user_id: z.string(),
    scopes: z.int().describe("Scopes that were erased: one per agent, and the user's own."),
  })
  .meta({ id: "ForgottenUser" });

/*
 * Memories: `GET` and `POST /memories`, and forgetting one.
 */

const memoryItem = z
  .looseObject({ id: z.union([z.string(), z.int()]), memory: z.string().describe("The text.") })
  .meta({
    id: "Memory",
    description: "A memory in Mem0's format. With `dates` a prompt gives its `created_at` too.",
  });

export const addBody = bodyOf(addOptions, { id: "AddRequest" });

export const addResult = z
  .object({
    results: z
      .array(memoryItem)
      .describe(
        "The memories with their ids, in the request's order; of `messages`, what Mem0 made of them with `wait`.",
      ),
    waiting: z.int().describe("How many exchanges of the conversation Mem0 has not been given yet."),
  })
  .meta({ id: "AddAnswer" });

export const memoriesQuery = z.strictObject({
  ...snakeCased(memoriesOptions).shape,
  top_k: z.coerce.number().pipe(field.topK).optional().describe("How many to search for. Default: `MEMPREFIX_TOP_K`."),
});

export const memoriesResult = z
  .object({ results: z.array(memoryItem) })
  .meta({ id: "MemoriesAnswer", description: "A user's memories, in Mem0's result shape." });

export const memoryIds = snakeCased(forgetMemoryOptions);

export const forgetMemoryResult = z
  .object({
    memory_id: z.string(),
    labels: z.array(label).describe("Blocks whose text was erased."),
    kept_by: z
      .array(z.string())
      .describe("Ids of other memories with the same text, which keep it in prompts and files: forget them, too."),
    conversations: z
      .array(z.object({ agent_id: z.string().nullable(), conversation_id: z.string() }))
      .describe(
        "Conversations whose stored history now ends before the first turn that was given it, or that says it.",
      ),
    prompts: z.int().describe("How many stored prompts were removed with it."),
    responses: z
      .array(z.string())
      .describe(
        "Ids of responses and conversations of the Responses API that were given it, as far as known. The engine still holds them; delete them there.",
      ),
    engine_cache: z
      .object({ may_hold: z.boolean(), until: z.int().nullable() })
      .describe(
        "Whether an engine may still have prompts with it cached, and until when, in milliseconds since the epoch. Null: not known; `MEMPREFIX_CACHE_TTL_SECONDS` says how long it keeps them.",
      ),
    files: z
      .enum(["erased", "pending"])
      .describe(
        "Whether its text is out of memprefix's files. `pending`: another program was reading them; it is done when the service starts again.",
      ),
    deleted_from_source: z
      .boolean()
      .nullable()
      .describe(
        "Whether it was deleted in the memory source. Null: another system owns the memory; delete it there too.",
      ),
  })
  .meta({ id: "ForgottenMemory" });

/*
 * `GET /users/{user_id}/export`. Rows have the database's column names, with JSON columns parsed; new columns appear by themselves. Digests
 * are left out: a short text could be guessed from its digest.
 */

const row = z.looseObject({});
const rows = z.array(row);

/** Tables whose rows belong to a user and an agent. */
const tables = z
  .object({
    blocks: rows.describe(
      "Texts of memories, by label. `superseded_by` 0: it no longer holds, and nothing replaces it.",
    ),
    memories: rows.describe(
      "Which memory has or had which block's text. Label 0: it no longer holds. `found`: by a search. `of_run`: it belongs to a run. `until`: when it ceases to, in milliseconds since 1970.",
    ),
    index_nodes: rows.describe("The context index: block sequences that were served, and when."),
    conversations: rows,
    turns: rows.describe("What each prompt added: `section` is what memprefix wrote."),
    messages: rows.describe("What the client sent: instructions, and each message once."),
    requests: rows.describe("Answers, with what engines reported."),
    prompts: rows.describe("Figures of prompts."),
    writes: rows.describe("Exchanges that the memory source has not been given yet."),
  })
  .catchall(rows);

export const exportResult = z
  .object({
    user_id: z.string(),
    scopes: z.array(
      z.object({
        agent_id: z.string().nullable(),
        tables,
      }),
    ),
    forgotten_memories: z.array(z.string()).describe("Ids of memories that are never sent again."),
    source: z
      .object({
        name: z.string(),
        memories: z
          .array(
            z.object({
              id: z.string(),
              memory: z.string(),
              agent_id: z.string().nullable(),
              metadata: row,
              created_at: z.string().nullable(),
              updated_at: z.string().nullable(),
            }),
          )
          .nullable()
          .describe("Null: another system owns the memories; export them there."),
      })
      .nullable()
      .describe("Null: no memory source is configured."),
  })
  .meta({ id: "UserExport", description: "Everything stored on a user, for every agent." });

export function exportOf({ source, ...others }: UserExport): FromWire<z.input<typeof exportResult>> {
  const memories = source?.memories?.map(({ text, ...memory }) => ({ ...memory, memory: text })) ?? null;
  const shown = { ...others, source: source && { name: source.name, memories } };
  return shown as unknown as FromWire<z.input<typeof exportResult>>;
}
