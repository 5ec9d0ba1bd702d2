import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import { explainResult } from "./explain-contract.js";
import { usageNote, usageRow } from "./usage-contract.js";
import { answerForm, label } from "./wire-form.js";

/*
 * `GET /usage/request`: one prompt as bars, beside the prompt that it should have continued. And `GET /usage/events`: new ones as they come.
 */

const tokens = z.int();

export const usageRequestQuery = z.strictObject({
  ...answerForm,
  user_id: field.userId,
  agent_id: field.agentId.optional().describe("The agent that it was composed for."),
  request_id: field.requestId,
});

/** A part of a prompt, in the prompt's order. */
const bar = z
  .object({
    message: z.int().describe("Index of its message, from 0."),
    kind: z.enum(["instructions", "message", "opening", "block", "annotation", "closing", "erased"]),
    role: z.string().nullable().describe("Of its message; null: it was erased."),
    label: label.nullable().describe("Of a block; null for anything else."),
    tokens: tokens.describe("Estimated; 0 for what was erased."),
    state: z
      .enum(["cached", "expected", "carried", "annotation", "again", "new"])
      .describe(
        "How to paint it. `cached`: the engine had it (most of it); `expected`: memstem expected so, the engine did not report or had it not; `carried`: a memory that was not retrieved; `annotation`; `again`: an earlier prompt had it and it is computed again; `new`.",
      ),
    text: z.string().nullable().describe("Null unless MEMSTEM_DASHBOARD_TEXT is on."),
    cached_tokens: tokens.nullable().describe("Those of them that the engine had cached; null: not reported."),
    expected_tokens: tokens.describe("Those of them that memstem expected to be cached."),
    is_shared: z.boolean().describe("Whether the other prompt begins with the same up to and including this."),
  })
  .meta({ id: "PromptBar" });

export const usageRequestResult = z
  .object({
    request: usageRow.nullable().describe("Null: it is no longer among the rows that are kept."),
    has_text: z.boolean().describe("Whether the operator lets memory text be shown."),
    bars: z.array(bar),
    nearest: z
      .object({
        request_id: z.string().nullable(),
        bars: z.array(bar).describe("Its `cached_tokens` are null: they are its own request's matter."),
      })
      .nullable()
      .describe("The earlier prompt with the longest common prefix; null: none has one."),
    difference: z
      .object({
        here: z.int().describe("Index of the first bar that differs; `bars.length`: the prompt ends before."),
        there: z.int(),
      })
      .nullable(),
    explanation: explainResult,
  })
  .meta({ id: "UsageRequest" });

/** `GET /usage/events`, as server-sent events: `event:` is the field's name, `data:` its JSON. */
export const usageEvents = z
  .object({
    requests: z
      .object({
        rows: z.array(usageRow).describe("The newest, oldest first, each as it is now."),
        more: z.int().describe("Prompts besides that fit the filter: more than `limit` came at once."),
      })
      .describe("Prompts were answered, or their engine reported: the same `id` comes again. Four a second at most."),
    note: usageNote,
    dropped: z
      .object({ count: z.int() })
      .describe("The client reads too slowly: so many prompts and notes were neither sent nor counted until now."),
  })
  .partial()
  .meta({ id: "RecordedEvent" });
