import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import { writerOf } from "./wire-form.js";

/*
 * `GET /requests/{request_id}/explain`. No field holds the text of a memory or message.
 */

export const requestIds = z.strictObject({
  request_id: field.requestId.describe("The composed request."),
});
export const explainQuery = z.strictObject({
  user_id: field.userId.describe("Whose request. Always given, never guessed."),
  agent_id: field.agentId.optional().describe("The agent that it was composed for."),
});

/** Missed tokens of a prompt, with their cause. */
export const miss = z.object({ cause: field.missCause, tokens: z.int() }).nullable().meta({
  id: "Miss",
  description:
    "Tokens that the engine computes beyond the new turn's own text, and why. Null: none. Decided when the prompt is planned; the engine's report may correct it.",
});

const prompt = {
  request_id: z.string(),
  at: z.int().describe("When it was composed, in milliseconds since the epoch."),
  total_tokens: z.int(),
  expected_cached_tokens: z.int().describe("What memprefix expected to hit."),
  reported_cached_tokens: z.int().nullable().describe("By the engine, in memprefix's count; null: not reported."),
  is_evicted: z.boolean().describe("Whether the engine reported its eviction."),
};

export const explainResult = z
  .object({
    ...prompt,
    miss,
    continued: z.object(prompt).nullable().describe("The earlier prompt that it continued; null: none."),
    words: z.array(z.string()).describe("The same as sentences."),
  })
  .meta({ id: "Explanation" });

export const writeExplanation = writerOf(explainResult);
