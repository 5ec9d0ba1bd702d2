import { z } from "zod";
import type { Eviction, Feedback } from "../../service/base/answers.js";
import * as field from "../../service/fields/fields.js";
import { modelName } from "../../service/fields/usage-fields.js";

/*
 * What the engine reports of its cache: `POST /evict` and `POST /feedback`.
 */

export const evictBody = z
  .strictObject({ request_ids: field.requestIds.meta({ description: "Requests whose cache the engine dropped." }) })
  .meta({
    id: "EvictRequest",
    description: "The body that ContextPilot's eviction hooks for SGLang and vLLM post.",
  });
export const evictResult = z
  .object({
    evicted: z.array(z.string()),
    unknown: z.array(z.string()).meta({ description: "Never composed, or evicted before." }),
  })
  .meta({ id: "EvictAnswer" });

/** The JSON of {@link evictResult}. */
export function writeEviction({ evicted, unknown }: Eviction): z.input<typeof evictResult> {
  return { evicted: [...evicted], unknown: [...unknown] };
}

export const feedbackBody = z
  .strictObject({
    user_id: field.userId.meta({ description: "Whose request." }),
    agent_id: field.agentId.nullish().meta({ description: "The agent that it was composed for." }),
    request_id: field.requestId.meta({ description: "The composed request." }),
    prompt_tokens: field.tokenCount.nullish().meta({
      description:
        "Prompt tokens by the engine's count. Converts its figures to memstem's estimates, so give it with `cached_tokens`.",
    }),
    cached_tokens: field.tokenCount
      .nullish()
      .meta({ description: "Cached prompt tokens by the engine's count. Absent: unknown, not zero." }),
    ttft_ms: field.milliseconds.nullish().meta({ description: "Time to first token, in milliseconds." }),
    model: modelName.nullish().meta({
      description:
        "The model that answered: `/usage` counts the prompt under it. Absent: under the one it was composed for.",
    }),
  })
  .meta({ id: "FeedbackRequest" });
export const feedbackResult = z
  .object({
    request_id: z.string(),
    expected_cached_tokens: z.int().meta({
      description:
        "What the plan predicted: in the engine's tokens where `prompt_tokens` was reported, else estimated.",
    }),
    observed_cached_tokens: z.int().nullable().meta({ description: "What the engine reported; null: unknown." }),
    difference: z.int().nullable().meta({ description: "Observed minus expected." }),
    corrected: z.object({ tokens_removed: z.int() }).meta({
      description: "Tokens that the index no longer expects to be cached, because of this report; estimated.",
    }),
  })
  .meta({ id: "FeedbackAnswer" });

/** The JSON of {@link feedbackResult}. */
export function writeFeedback(feedback: Feedback): z.input<typeof feedbackResult> {
  return {
    request_id: feedback.requestId,
    expected_cached_tokens: feedback.expectedCachedTokens,
    observed_cached_tokens: feedback.observedCachedTokens,
    difference: feedback.difference,
    corrected: { tokens_removed: feedback.corrected.tokensRemoved },
  };
}
