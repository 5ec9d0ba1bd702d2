import { z } from "zod";
import type { Difference, Explanation, PlaceInPrompt, Waste } from "../../core/index.js";
import * as field from "../../service/fields/fields.js";
import { answerForm } from "./answer-form.js";
import { label } from "./label.js";

/*
 * `GET /requests/{request_id}/explain`. No field holds the text of a memory or of a message.
 */

const tokens = z.int();

export const explainPath = z.strictObject({
  request_id: field.requestId.meta({ description: "The composed request." }),
});
export const explainQuery = z.strictObject({
  ...answerForm,
  user_id: field.userId.meta({ description: "Whose request. Always given, never guessed." }),
  agent_id: field.agentId.optional().meta({ description: "The agent that it was composed for." }),
});

/** With the request id in the query. */
export const requestExplainQuery = explainQuery.extend(explainPath.shape);

const cause = z
  .discriminatedUnion("kind", [
    z.object({
      kind: z.enum([
        "first_prompt",
        "appended",
        "repeated",
        "other_instructions",
        "other_question",
        "edited_history",
        "other_history",
        "forgotten_memory",
        "other_annotations",
      ]),
    }),
    z.object({ kind: z.literal("new_epoch"), reason: field.epochReason }),
    z.object({ kind: z.literal("fresh_start"), where: z.enum(["here", "there"]) }),
    z.object({
      kind: z.literal("not_retained"),
      retention: field.fixedRetention,
      what: z.enum(["annotations", "memories"]),
    }),
    z.object({ kind: z.literal("updated_text"), was: label, is: label }),
    z.object({ kind: z.literal("new_memory"), label, instead: label.nullable(), instead_moved: z.boolean() }),
    z.object({ kind: z.literal("missing_memory"), label, instead: label.nullable() }),
    z.object({ kind: z.literal("other_order"), here: label, there: label }),
  ])
  .meta({
    id: "MissCause",
    description: "Why the prompts differ. `here`: this prompt; `there`: the nearest earlier one.",
  });

const place = z
  .object({
    kind: z.enum(["instructions", "message", "opening", "block", "annotation", "closing", "erased"]),
    role: z.string().nullable(),
    digest: z.string().nullable().meta({ description: "Of a message without memories: SHA-256, base64url." }),
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
    description: "Tokens computed that could have been cached, and their price by `MEMSTEM_COST`.",
  });

const because = <K extends readonly [string, ...string[]]>(kinds: K, ...more: readonly z.ZodObject[]) =>
  z.union([z.object({ kind: z.enum(kinds) }), ...more]);

export const explainResult = z
  .object({
    request_id: z.string(),
    explanation: z.array(z.string()).meta({ description: "The findings as sentences." }),
    cause,
    compared: z.int().meta({ description: "Earlier prompts compared." }),
    compared_all: z.boolean().meta({ description: "Whether all earlier prompts were compared." }),
    nearest: z
      .object({
        request_id: z.string().nullable(),
        conversation: z.enum(["same", "other", "none"]),
        age_ms: z.number(),
        evicted: z.boolean(),
        total_tokens: tokens,
      })
      .nullable()
      .meta({ description: "The earlier prompt with the longest common prefix; null: none has one." }),
    difference: z
      .object({
        message: z.int().meta({ description: "Index of the first message that differs." }),
        token: tokens.meta({ description: "Tokens before the difference; estimated." }),
        block: z.int().nullable().meta({ description: "Index of the block within this turn; null: not in a block." }),
        here: place.meta({ description: "Null: the prompt ends here." }),
        there: place,
      })
      .nullable(),
    tokens: z.object({
      total: tokens,
      shared: tokens.meta({ description: "Common prefix: what could have hit." }),
      expected: tokens.meta({ description: "What memstem expected to hit." }),
      reported: tokens.nullable().meta({ description: "Cached tokens by the engine's own count; null: not reported." }),
    }),
    index: z
      .discriminatedUnion("kind", [
        z.object({ kind: z.enum(["nothing_shared", "expected"]) }),
        z.object({
          kind: z.literal("left"),
          tokens,
          because: because(
            ["evicted", "forgotten", "unknown"],
            z.object({ kind: z.literal("ttl"), ttl_ms: z.number() }),
            z.object({ kind: z.literal("reported"), request_id: z.string() }),
            z.object({ kind: z.literal("capacity"), tokens }),
            z.object({ kind: z.literal("slots"), slots: z.number() }),
          ),
        }),
      ])
      .meta({ description: "Whether the common prefix was still expected to be cached; if not, why." }),
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
      .meta({ description: "Whether the engine cached what was expected; if less, the most likely reason." }),
    lost: waste.meta({ description: "In the common prefix, but not cached." }),
    behind: waste.meta({ description: "In both prompts, but after the difference." }),
  })
  .meta({ id: "Explanation" });

type Wire = z.input<typeof explainResult>;

/** The JSON of an explanation. `words`: the same as sentences. */
export function writeExplanation(explanation: Explanation, words: readonly string[]): Wire {
  const { nearest } = explanation;
  return {
    request_id: explanation.requestId,
    explanation: [...words],
    cause: writeCause(explanation.cause),
    compared: explanation.compared,
    compared_all: explanation.comparedAll,
    nearest: nearest && {
      request_id: nearest.requestId,
      conversation: nearest.conversation,
      age_ms: nearest.ageMs,
      evicted: nearest.evicted,
      total_tokens: nearest.totalTokens,
    },
    difference: writeDifference(explanation.difference),
    tokens: { ...explanation.tokens },
    index: writeIndexVerdict(explanation.index),
    engine: writeEngineVerdict(explanation.engine),
    lost: writeWaste(explanation.lost),
    behind: writeWaste(explanation.behind),
  };
}

function writeCause(value: Explanation["cause"]): Wire["cause"] {
  if (value.kind !== "new_memory") return value;
  const { insteadMoved, ...rest } = value;
  return { ...rest, instead_moved: insteadMoved };
}

function writeDifference(value: Difference | null): Wire["difference"] {
  return value && { ...value, here: writePlace(value.here), there: writePlace(value.there) };
}

function writePlace(value: PlaceInPrompt | null) {
  return value && { ...value };
}

function writeIndexVerdict(value: Explanation["index"]): Wire["index"] {
  if (value.kind !== "left") return value;
  const { because: why } = value;
  switch (why.kind) {
    case "ttl":
      return { ...value, because: { kind: why.kind, ttl_ms: why.ttlMs } };
    case "reported":
      return { ...value, because: { kind: why.kind, request_id: why.requestId } };
    default:
      return { ...value, because: why };
  }
}

function writeEngineVerdict(value: Explanation["engine"]): Wire["engine"] {
  if (value.kind !== "less") return value;
  const { because: why } = value;
  switch (why.kind) {
    case "below_minimum":
      return { ...value, because: { kind: why.kind, minimum_tokens: why.minimumTokens } };
    case "block_rounding":
      return { ...value, because: { kind: why.kind, block_tokens: why.blockTokens } };
    default:
      return { ...value, because: why };
  }
}

function writeWaste({ tokens: count, price }: Waste): z.input<typeof waste> {
  return { tokens: count, price: { ...price } };
}
