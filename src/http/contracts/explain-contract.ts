import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import { answerForm, label, writerOf } from "./wire-form.js";

/*
 * `GET /requests/{request_id}/explain`. No field holds the text of a memory or of a message.
 */

const tokens = z.int();

/** The id of a request. */
export const requestIds = z.strictObject({
  request_id: field.requestId.describe("The composed request."),
});
export const explainQuery = z.strictObject({
  ...answerForm,
  user_id: field.userId.describe("Whose request. Always given, never guessed."),
  agent_id: field.agentId.optional().describe("The agent that it was composed for."),
});

const cause = z
  .discriminatedUnion("kind", [
    z.object({
      kind: z.enum([
        "first_prompt",
        "appended",
        "repeated",
        "changed_instructions",
        "other_question",
        "rewritten_history",
        "other_history",
        "forgotten_memory",
        "other_annotations",
      ]),
    }),
    z.object({ kind: z.literal("new_epoch"), reason: field.epochReason }),
    z.object({ kind: z.literal("fresh_start"), where: z.enum(["here", "there"]) }),
    z.object({
      kind: z.literal("retention"),
      retention: field.fixedRetention,
      what: z.enum(["annotations", "memories"]),
    }),
    z.object({ kind: z.literal("updated_text"), was: label, is: label }),
    z.object({ kind: z.literal("new_memories"), label, instead: label.nullable(), instead_moved: z.boolean() }),
    z.object({ kind: z.literal("missing_memory"), label, instead: label.nullable() }),
    z.object({ kind: z.literal("changed_order"), here: label, there: label }),
  ])
  .meta({
    id: "MissCause",
    description: "Why the prompts differ. `here`: this prompt; `there`: the nearest earlier one.",
  });

const place = z
  .object({
    kind: z.enum(["instructions", "message", "opening", "block", "annotation", "closing", "erased"]),
    role: z.string().nullable(),
    digest: z.string().nullable().describe("Of a message without memories: SHA-256, base64url."),
    label: label.nullable(),
  })
  .meta({ id: "PlaceInPrompt", description: "What is at a position of a prompt." })
  .nullable();

const waste = z
  .object({
    tokens,
    price: z.object({ unit: z.enum(["ms", "money"]), amount: z.number() }),
  })
  .meta({
    id: "Waste",
    description: "Tokens computed that could have been cached, and their price by `MEMPREFIX_ENGINE_COST`.",
  });

const because = <K extends readonly [string, ...string[]]>(kinds: K, ...more: readonly z.ZodObject[]) =>
  z.union([z.object({ kind: z.enum(kinds) }), ...more]);

export const explainResult = z
  .object({
    request_id: z.string(),
    explanation: z.array(z.string()).describe("The findings as sentences."),
    cause,
    compared: z.int().describe("Earlier prompts compared."),
    compared_all: z.boolean().describe("Whether all earlier prompts were compared."),
    nearest: z
      .object({
        request_id: z.string().nullable(),
        conversation: z.enum(["same", "other", "none"]),
        age_ms: z.number(),
        evicted: z.boolean(),
        total_tokens: tokens,
      })
      .nullable()
      .describe("The earlier prompt with the longest common prefix; null: none has one."),
    difference: z
      .object({
        message: z.int().describe("Index of the first message that differs."),
        token: tokens.describe("Tokens before the difference; estimated."),
        block: z.int().nullable().describe("Index of the block within this turn; null: not in a block."),
        here: place.describe("Null: the prompt ends here."),
        there: place,
      })
      .nullable(),
    tokens: z.object({
      total: tokens,
      shared: tokens.describe("Common prefix: what could have hit."),
      expected: tokens.describe("What memprefix expected to hit."),
      reported: tokens
        .nullable()
        .describe("Cached tokens by the engine's own count, without a chat's tools; null: not reported."),
    }),
    index: z
      .discriminatedUnion("kind", [
        z.object({ kind: z.enum(["nothing_shared", "expected"]) }),
        z.object({
          kind: z.literal("left"),
          tokens,
          because: because(
            ["evicted", "forgotten", "unknown"],
            z.object({ kind: z.literal("expired"), ttl_ms: z.number() }),
            z.object({ kind: z.literal("reported"), request_id: z.string() }),
            z.object({ kind: z.literal("displaced"), tokens }),
            z.object({ kind: z.literal("slots"), slots: z.number() }),
          ),
        }),
      ])
      .describe("Whether the common prefix was still expected to be cached; if not, why."),
    engine: z
      .discriminatedUnion("kind", [
        z.object({ kind: z.enum(["not_reported", "as_expected"]) }),
        z.object({ kind: z.literal("more"), tokens }),
        z.object({
          kind: z.literal("less"),
          tokens,
          because: because(
            ["evicted", "in_flight", "no_breakpoint", "unknown"],
            z.object({ kind: z.literal("below_minimum"), minimum_tokens: tokens }),
            z.object({ kind: z.literal("block_rounding"), block_tokens: tokens }),
          ),
        }),
      ])
      .describe("Whether the engine cached what was expected; if less, the most likely reason."),
    lost: waste.describe("In the common prefix, but not cached."),
    behind: waste.describe("In both prompts, but after the difference."),
  })
  .meta({ id: "Explanation" });

/** The JSON of an explanation; `explanation` has the findings as sentences. */
export const writeExplanation = writerOf(explainResult);
