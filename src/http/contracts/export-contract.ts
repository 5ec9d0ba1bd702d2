import { z } from "zod";
import type { UserExport } from "../../service/records/user-records.js";
import { usageRow } from "./usage-contract.js";
import { writeUsageRow } from "./usage-json.js";

/*
 * `GET /users/{user_id}/export`. Rows are the database's, under its column names, with JSON columns parsed; new columns appear by
 * themselves. Digests are left out: a short text could be guessed from its digest.
 */

const row = z.looseObject({});
const rows = z.array(row);

/** Tables whose rows belong to a user and an agent. */
const tables = z
  .object({
    blocks: rows.meta({
      description: "Texts of memories, by label. `superseded_by` 0: no longer true, and replaced by none.",
    }),
    memory_versions: rows.meta({
      description:
        "Which memory has or had which block's text. Label 0: it no longer holds. `found`: by a search. `until`: when it ceases to, in milliseconds since 1970.",
    }),
    index_nodes: rows.meta({ description: "The context index: block sequences that were served, and when." }),
    ordering_rows: rows.meta({ description: "State of ordering policies." }),
    conversations: rows,
    heads: rows.meta({ description: "System instructions at the head of prompts; null: erased." }),
    turns: rows.meta({
      description: "Turns: `given` is what the client sent (null: erased), `injection` what memstem added.",
    }),
    requests: rows.meta({ description: "Answers, with what engines reported." }),
  })
  .catchall(rows);

export const exportResult = z
  .object({
    user_id: z.string(),
    scopes: z.array(
      z.object({
        agent_id: z.string().nullable(),
        scope: row.meta({ description: "Counters, and the time of creation in milliseconds since the epoch." }),
        tables,
      }),
    ),
    usage: z.array(usageRow).meta({ description: "What was recorded of the user's prompts, oldest first." }),
    forgotten_memories: z.array(z.string()).meta({ description: "Ids of memories that are never sent again." }),
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
          .meta({ description: "Null: another system owns the memories; export them there." }),
      })
      .nullable()
      .meta({ description: "Null: no memory source is configured." }),
  })
  .meta({ id: "UserExport", description: "Everything stored on a user, for every agent." });

/** The JSON of {@link exportResult}. */
export function writeExport({
  userId,
  scopes,
  usage,
  forgottenMemories,
  source,
}: UserExport): z.input<typeof exportResult> {
  return {
    user_id: userId,
    scopes: scopes.map(({ agentId, scope, tables: of }) => ({
      agent_id: agentId,
      scope: { ...scope },
      tables: of as z.input<typeof tables>,
    })),
    usage: usage.map(writeUsageRow),
    forgotten_memories: [...forgottenMemories],
    source: source && {
      name: source.name,
      memories:
        source.memories?.map(({ id, text, agentId, metadata, createdAt, updatedAt }) => ({
          id,
          memory: text,
          agent_id: agentId,
          metadata: { ...metadata },
          created_at: createdAt,
          updated_at: updatedAt,
        })) ?? null,
    },
  };
}
