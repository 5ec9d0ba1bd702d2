import { z } from "zod";
import type { FromWire } from "../../client/wire-names.js";
import type { UserExport } from "../../service/records/user-records.js";
import { shownRow } from "./usage-answers.js";
import { usageRow } from "./usage-contract.js";
import { writerOf } from "./wire-form.js";

/*
 * `GET /users/{user_id}/export`. Rows are the database's, under its column names, with JSON columns parsed; new columns appear by
 * themselves. Digests are left out: a short text could be guessed from its digest.
 */

const row = z.looseObject({});
const rows = z.array(row);

/** Tables whose rows belong to a user and an agent. */
const tables = z
  .object({
    blocks: rows.describe("Texts of memories, by label. `superseded_by` 0: no longer true, and replaced by none."),
    memory_versions: rows.describe(
      "Which memory has or had which block's text. Label 0: it no longer holds. `found`: by a search. `of_run`: it belongs to a run. `until`: when it ceases to, in milliseconds since 1970.",
    ),
    index_nodes: rows.describe("The context index: block sequences that were served, and when."),
    ordering_rows: rows.describe("State of ordering policies."),
    conversations: rows,
    heads: rows.describe("System instructions at the head of prompts; null: erased."),
    turns: rows.describe("Turns: `given` is what the client sent (null: erased), `injection` what memstem added."),
    requests: rows.describe("Answers, with what engines reported."),
  })
  .catchall(rows);

export const exportResult = z
  .object({
    user_id: z.string(),
    scopes: z.array(
      z.object({
        agent_id: z.string().nullable(),
        scope: row.describe("Counters, and the time of creation in milliseconds since the epoch."),
        tables,
      }),
    ),
    usage: z.array(usageRow).describe("What was recorded of the user's prompts, oldest first."),
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

/** What is exported of a user, in the names of {@link exportResult}. */
export function exportOf({ usage, source, ...others }: UserExport): FromWire<z.input<typeof exportResult>> {
  const memories = source?.memories?.map(({ text, ...memory }) => ({ ...memory, memory: text })) ?? null;
  const shown = { ...others, usage: usage.map(shownRow), source: source && { name: source.name, memories } };
  return shown as unknown as FromWire<z.input<typeof exportResult>>;
}

/** The JSON of {@link exportResult}. */
export const writeExport = writerOf(exportResult);
