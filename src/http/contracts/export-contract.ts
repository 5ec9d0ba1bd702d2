import { z } from "zod";
import type { UserExport } from "../../service/records/user-records.js";

/*
 * `GET /users/{user_id}/export` over the wire. Rows are those of the database, under its own names, with JSON taken apart; a column that
 * comes later comes in here by itself. Digests do not: a short text could be guessed by them.
 */

const row = z.looseObject({});
const rows = z.array(row);

/** Every table whose rows belong to a user and an agent. */
const tables = z
  .object({
    blocks: rows.meta({ description: "Texts of memories, by label." }),
    memory_versions: rows.meta({ description: "Which memory has, or had, which block's text." }),
    index_nodes: rows.meta({ description: "The context index: which blocks were served in which order, and when." }),
    ordering_rows: rows.meta({ description: "What ordering policies remember beside the index." }),
    conversations: rows,
    heads: rows.meta({ description: "Instructions that stood at the head of prompts, null for each that was erased." }),
    turns: rows.meta({
      description:
        "Prompts: `given` is what the application said, null for each message that was erased; `injection` what was added.",
    }),
    requests: rows.meta({ description: "Answers, and what engines reported of them." }),
  })
  .catchall(rows);

export const exportResult = z
  .object({
    user_id: z.string(),
    scopes: z.array(
      z.object({
        agent_id: z.string().nullable(),
        scope: row.meta({ description: "Counters, and when it was created, in milliseconds since the epoch." }),
        tables,
      }),
    ),
    forgotten_memories: z.array(z.string()).meta({ description: "Ids that are kept so as never to be sent again." }),
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
          .meta({ description: "Null where another system owns the memories: ask it for them." }),
      })
      .nullable()
      .meta({ description: "Null where no memory source is configured." }),
  })
  .meta({ id: "UserExport", description: "Everything held on a user, with every agent." });

export function writeExport({ userId, scopes, forgottenMemories, source }: UserExport): z.input<typeof exportResult> {
  return {
    user_id: userId,
    scopes: scopes.map(({ agentId, scope, tables: of }) => ({
      agent_id: agentId,
      scope: { ...scope },
      tables: of as z.input<typeof tables>,
    })),
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
