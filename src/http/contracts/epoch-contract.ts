import { z } from "zod";
import type { PlanEpoch } from "../../core/index.js";
import * as field from "../../service/fields/fields.js";

/** `plan.epoch`: the place of a window's prompt among those that begin alike. */
export const planEpoch = z
  .object({
    began: field.epochReason.nullable().meta({
      description:
        "Why an epoch began with this prompt; null: it continues the one before. `ratio`: the epoch's average would have passed `history_ratio`. `cost`: another prompt would have cost more than the epoch's average. `limit`: it would have been too long. `window`: `history` is `exact`. `summary`: other messages are in place of those that were cut.",
    }),
    prompts: z.int().meta({ description: "Prompts of the epoch, this one included." }),
    left_out_messages: z.int().meta({ description: "Messages of the history that the prompt has no room for." }),
    head_tokens: z.int().meta({ description: "Tokens of the memories that this prompt has in front of its messages." }),
    carried_tokens: z.int().meta({ description: "Those of them that were not retrieved." }),
  })
  .meta({ id: "PlanEpoch", description: "Absent where the history was not cut." });

export function writeEpoch({
  began,
  prompts,
  leftOut,
  headTokens,
  carriedTokens,
}: PlanEpoch): z.input<typeof planEpoch> {
  return {
    began,
    prompts,
    left_out_messages: leftOut,
    head_tokens: headTokens,
    carried_tokens: carriedTokens,
  };
}
