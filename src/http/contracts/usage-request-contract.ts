import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import type { ShownPrompt } from "../../service/usage/shown-prompt.js";
import type { KeptUsage, PromptBar } from "../../service/usage/usage-figures.js";
import { answerForm } from "./answer-form.js";
import { explainResult, writeExplanation } from "./explain-contract.js";
import { label } from "./label.js";
import { usageNote, usageRow } from "./usage-contract.js";
import { writeUsageRow } from "./usage-json.js";

/*
 * `GET /usage/request`: one prompt as bars, beside the prompt that it should have continued. And `GET /usage/events`: new ones as they come.
 */

const tokens = z.int();

export const usageRequestQuery = z.strictObject({
  ...answerForm,
  user_id: field.userId,
  agent_id: field.agentId.optional().meta({ description: "The agent that it was composed for." }),
  request_id: field.requestId,
});

/** A part of a prompt, in the prompt's order. */
const bar = z
  .object({
    message: z.int().meta({ description: "Index of its message, from 0." }),
    kind: z.enum(["instructions", "message", "opening", "block", "annotation", "closing", "erased"]),
    role: z.string().nullable().meta({ description: "Of its message; null: it was erased." }),
    label: label.nullable().meta({ description: "Of a block; null for anything else." }),
    tokens: tokens.meta({ description: "Estimated; 0 for what was erased." }),
    cached_tokens: tokens
      .nullable()
      .meta({ description: "Those of them that the engine had cached; null: not reported." }),
    expected_tokens: tokens.meta({ description: "Those of them that memstem expected to be cached." }),
    state: z.enum(["cached", "expected", "carried", "annotation", "again", "new"]).meta({
      description:
        "How to paint it. `cached`: the engine had it (most of it); `expected`: memstem expected so, the engine did not report or had it not; `carried`: a memory that was not retrieved; `annotation`; `again`: an earlier prompt had it and it is computed again; `new`.",
    }),
    is_shared: z
      .boolean()
      .meta({ description: "Whether the other prompt begins with the same up to and including this." }),
    text: z.string().nullable().meta({ description: "Null unless MEMSTEM_DASHBOARD_TEXT is on." }),
  })
  .meta({ id: "PromptBar" });

export const usageRequestResult = z
  .object({
    request: usageRow.nullable().meta({ description: "Null: it is no longer among the rows that are kept." }),
    has_text: z.boolean().meta({ description: "Whether the operator lets memory text be shown." }),
    bars: z.array(bar),
    nearest: z
      .object({
        request_id: z.string().nullable(),
        bars: z.array(bar).meta({ description: "Its `cached_tokens` are null: they are its own request's matter." }),
      })
      .nullable()
      .meta({ description: "The earlier prompt with the longest common prefix; null: none has one." }),
    difference: z
      .object({
        here: z
          .int()
          .meta({ description: "Index of the first bar that differs; `bars.length`: the prompt ends before." }),
        there: z.int(),
      })
      .nullable(),
    explanation: explainResult,
  })
  .meta({ id: "UsageRequest" });

/** The JSON of `GET /usage/request`. */
export function writeUsageRequest(
  kept: KeptUsage | null,
  { bars, explanation, words }: ShownPrompt,
  hasText: boolean,
): z.input<typeof usageRequestResult> {
  const { here, there, shared } = bars;
  return {
    request: kept && writeUsageRow(kept),
    has_text: hasText,
    bars: here.map(writeBar),
    nearest: there && { request_id: explanation.nearest?.requestId ?? null, bars: there.map(writeBar) },
    difference: there && { here: shared, there: shared },
    explanation: writeExplanation(explanation, words),
  };
}

function writeBar(given: PromptBar): z.input<typeof bar> {
  const { cachedTokens, expectedTokens, isShared, ...rest } = given;
  return { ...rest, cached_tokens: cachedTokens, expected_tokens: expectedTokens, is_shared: isShared };
}

/** `GET /usage/events`, as server-sent events: `event:` is the field's name, `data:` its JSON. */
export const usageEvents = z
  .object({
    requests: z
      .object({
        rows: z.array(usageRow).meta({ description: "The newest, oldest first, each as it is now." }),
        more: z.int().meta({ description: "Prompts besides that fit the filter: more than `limit` came at once." }),
      })
      .meta({
        description:
          "Prompts were answered, or their engine reported: the same `id` comes again. Four a second at most.",
      }),
    note: usageNote,
    dropped: z.object({ count: z.int() }).meta({
      description: "The client reads too slowly: so many prompts and notes were neither sent nor counted until now.",
    }),
  })
  .partial()
  .meta({ id: "RecordedEvent" });
