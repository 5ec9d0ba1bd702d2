import { z } from "zod";
import { forgetUserOptions } from "../../service/fields/companion-options.js";
import * as field from "../../service/fields/fields.js";
import { answerForm, label, snakeCased } from "./wire-form.js";

/*
 * A user's state: the context index, and forgetting the user. The export has a file of its own.
 */

const DEFAULT_NODES = 1_000;
const MAX_NODES = 10_000;

/** The id of a user. */
export const userIds = snakeCased(forgetUserOptions);

export const indexQuery = z.strictObject({
  ...answerForm,
  agent_id: field.agentId.optional().describe("The agent whose index; absent: the user's own."),
  limit: z.coerce.number().int().min(1).max(MAX_NODES).default(DEFAULT_NODES).describe("Most nodes in the answer."),
});
/** With the user id in the query. */
export const userIndexQuery = indexQuery.extend(userIds.shape);

export const indexResult = z
  .object({
    user_id: z.string(),
    agent_id: z.string().nullable(),
    counts: z.object({
      conversations: z.int(),
      turns: z.int(),
      requests: z.int(),
      blocks: z.int(),
      nodes: z.int(),
    }),
    nodes: z
      .array(
        z.object({
          search_path: z.array(z.int()).describe("Child positions from the root to the node."),
          labels: z.array(label),
          uses: z.int().describe("Requests that passed through or ended here."),
          live_requests: z.int().describe("Requests that ended here and were not evicted."),
          last_used: z.int().describe("The scope's request counter at the last use: a logical clock."),
          used_at: z.int().describe("When it was last used, in milliseconds since the epoch; 0: not known."),
          tokens: z.int().describe("Of its blocks; of a root, also those before them. Estimated."),
          total_tokens: z.int().describe("Of the whole prefix that ends here."),
          is_expected: z.boolean().describe("Whether the engine's cache should still hold it."),
          request_ids: z.array(z.string()),
        }),
      )
      .describe("Parents before children."),
  })
  .meta({ id: "Index", description: "The context index of one user and agent." });

export const forgetUserResult = z
  .object({
    user_id: z.string(),
    scopes: z.int().describe("Scopes that were erased: one per agent, and the user's own."),
  })
  .meta({ id: "ForgottenUser" });
