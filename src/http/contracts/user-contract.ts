import { z } from "zod";
import type { IndexDescription } from "../../service/base/answers.js";
import * as field from "../../service/fields/fields.js";
import { answerForm } from "./answer-form.js";
import { label } from "./label.js";

/*
 * A user's state: the context index, and forgetting the user. The export has a file of its own.
 */

const DEFAULT_NODES = 1_000;
const MAX_NODES = 10_000;

const userId = field.userId.meta({ description: "Whose state." });

export const userPath = z.strictObject({ user_id: userId });
export const userQuery = userPath.extend(answerForm);

export const indexQuery = z.strictObject({
  ...answerForm,
  agent_id: field.agentId.optional().meta({ description: "The agent whose index; absent: the user's own." }),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_NODES)
    .default(DEFAULT_NODES)
    .meta({ description: "Most nodes in the answer." }),
});
/** With the user id in the query. */
export const userIndexQuery = indexQuery.extend({ user_id: userId });

export const indexResult = z
  .object({
    user_id: z.string(),
    agent_id: z.string().nullable(),
    counts: z.object({
      blocks: z.int(),
      nodes: z.int(),
      conversations: z.int(),
      turns: z.int(),
      requests: z.int(),
    }),
    nodes: z
      .array(
        z.object({
          search_path: z.array(z.int()).meta({ description: "Child positions from the root to the node." }),
          labels: z.array(label),
          uses: z.int().meta({ description: "Requests that passed through or ended here." }),
          live_requests: z.int().meta({ description: "Requests that ended here and were not evicted." }),
          last_used: z.int().meta({ description: "The scope's request counter at the last use: a logical clock." }),
          used_at: z
            .int()
            .meta({ description: "When it was last used, in milliseconds since the epoch; 0: not known." }),
          tokens: z.int().meta({ description: "Of its blocks; of a root, also those before them. Estimated." }),
          total_tokens: z.int().meta({ description: "Of the whole prefix that ends here." }),
          is_expected: z.boolean().meta({ description: "Whether the engine's cache should still hold it." }),
          request_ids: z.array(z.string()),
        }),
      )
      .meta({ description: "Parents before children." }),
  })
  .meta({ id: "Index", description: "The context index of one user and agent." });

/** The JSON of {@link indexResult}. */
export function writeIndex({ userId, agentId, counts, nodes }: IndexDescription): z.input<typeof indexResult> {
  return {
    user_id: userId,
    agent_id: agentId,
    counts,
    nodes: nodes.map((node) => ({
      search_path: [...node.searchPath],
      labels: [...node.labels],
      uses: node.uses,
      live_requests: node.live,
      last_used: node.lastUsed,
      used_at: node.usedAt,
      tokens: node.tokens,
      total_tokens: node.totalTokens,
      is_expected: node.isExpected,
      request_ids: [...node.requestIds],
    })),
  };
}

export const forgetUserResult = z
  .object({
    user_id: z.string(),
    scopes: z.int().meta({ description: "Scopes that were erased: one per agent, and the user's own." }),
  })
  .meta({ id: "ForgottenUser" });
