import { z } from "zod";
import { evictOptions, feedbackOptions } from "../../service/fields/companion-options.js";
import { bodyOf } from "./wire-form.js";

/*
 * What the engine reports of its cache: `POST /evict` and `POST /feedback`.
 */

export const evictBody = bodyOf(evictOptions, {
  id: "EvictRequest",
  description: "The body that ContextPilot's eviction hooks for SGLang and vLLM post.",
});
export const evictResult = z
  .object({
    evicted: z.array(z.string()),
    unknown: z.array(z.string()).describe("Never composed, or evicted before."),
  })
  .meta({ id: "EvictAnswer" });

export const feedbackBody = bodyOf(feedbackOptions, { id: "FeedbackRequest" });
export const feedbackResult = z
  .object({
    request_id: z.string(),
    expected_cached_tokens: z
      .int()
      .describe("What the plan predicted: in the engine's tokens where `prompt_tokens` was reported, else estimated."),
    observed_cached_tokens: z
      .int()
      .nullable()
      .describe("What the engine reported, without a chat's tools, which come before the prompt; null: unknown."),
    difference: z.int().nullable().describe("Observed minus expected."),
  })
  .meta({ id: "FeedbackAnswer" });
