import { z } from "zod";
import type { ComposeAnswer } from "../../service/base/call-types.js";
import { type ComposeRequest, composeRequest, withoutAbsentMemories } from "../../service/compose/compose-request.js";
import { composeOptions } from "../../service/fields/compose-options.js";
import * as field from "../../service/fields/fields.js";
import { givenMessages } from "../../service/fields/given-messages.js";
import { miss } from "./explain-contract.js";
import { label, readerOf, snakeCased, type WireBody, writerOf } from "./wire-form.js";

/*
 * Chat messages, in requests and answers: the union of OpenAI's message types. Unknown fields pass through unmodified.
 */

const contentPart = z
  .looseObject({ type: z.string(), text: z.string().optional() })
  .describe("One part of the content: text, an image, audio, a file. Only the text of parts is read.");

const toolCall = z.looseObject({
  id: z.string(),
  type: z.string().describe("`function` or `custom`."),
  function: z
    .looseObject({ name: z.string(), arguments: z.string().describe("JSON, as the model wrote it.") })
    .optional(),
});

/** A chat message, for the OpenAPI document and for answers. */
export const message = z
  .looseObject({
    role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
    content: z.union([z.string(), z.array(contentPart), z.null()]).optional(),
    name: z.string().nullish().describe("Tells participants of one role apart; of `function`: which one."),
    tool_calls: z.array(toolCall).nullish().describe("Calls that the assistant asks for."),
    tool_call_id: z.string().nullish().describe("Of `tool`: the call that this is the result of."),
  })
  .meta({ id: "Message", description: "A chat message in OpenAI's format. Further fields pass through unmodified." });

/** An item of the Responses API, for the OpenAPI document. */
export const RESPONSES_ITEM = {
  type: "object" as const,
  description:
    "An input item of OpenAI's Responses API: a message, a function call, its output, reasoning, or any other. Fields pass through unmodified.",
  required: ["type"],
  properties: { type: { type: "string" as const } },
};

const refTo = (component: string) => ({ $ref: `#/components/schemas/${component}` });
const ANY_FORMAT = { anyOf: [refTo("Message"), refTo("ResponsesItem")] };

/*
 * `POST /compose`.
 */

/** Fields of the answer that are made of the body's and keep its bytes. */
export const COMPOSED_FIELDS = ["messages", "system"] as const;

const MEMORIES = { type: "array", items: { anyOf: [refTo("Memory"), { type: "string" }] } };
const { messages, memories } = composeOptions.shape;

export const composeBody = snakeCased(composeOptions)
  .extend({
    messages: givenMessages
      .meta({ items: ANY_FORMAT })
      .nullish()
      .meta({ ...messages.meta() }),
    memories: memories
      .unwrap()
      .meta({
        ...memories.meta(),
        anyOf: [
          MEMORIES,
          { type: "object", required: ["results"], properties: { results: MEMORIES } },
          { type: "null" },
        ],
      })
      .optional(),
  })
  .meta({ id: "ComposeRequest", description: "`query` or `messages` is required." });

/** `memories: null` counts as absent, like every other null. */
const composeBodyWithNulls = z.preprocess(withoutAbsentMemories, composeBody);

/** `plan.epoch`: the position of a window's prompt among those that begin alike. */
const planEpoch = z
  .object({
    began: field.epochReason
      .nullable()
      .describe(
        "Why an epoch began with this prompt; null: it continues the one before. `ratio`: the epoch's average would have passed `history_ratio`. `cost`: another prompt would have cost more than the epoch's average. `limit`: it would have been too long. `window`: `history` is `exact`. `summary`: other messages are in place of those that were cut.",
      ),
    prompts: z.int().describe("Prompts of the epoch, this one included."),
    left_out_messages: z.int().describe("Messages of the history that the prompt has no room for."),
    head_tokens: z.int().describe("Tokens of the memories that this prompt has in front of its messages."),
    carried_tokens: z.int().describe("Those of them that were not retrieved."),
  })
  .meta({ id: "PlanEpoch", description: "Absent where the history was not cut." });

const planDepth = z
  .object({
    retrieved: z.int().describe("Retrieved memories that no earlier turn gave."),
    given: z.int().describe("Those of them in the prompt."),
    outcome: field.depthOutcome,
    probes: z.array(
      z.object({
        blocks: z.int(),
        entropy_nats: z
          .number()
          .nullable()
          .describe("Upper bound of the first token's entropy, in nats; null: unknown."),
        prompt_tokens: z.int().nullable(),
        cached_tokens: z.int().nullable(),
      }),
    ),
  })
  .meta({ id: "PlanDepth", description: "How many memories a prompt with adaptive depth got, and why." });

export const composeResult = z
  .object({
    request_id: z.string(),
    messages: z.array(message).meta({
      description: "Send these to the engine. Of the same API as the request's.",
      items: ANY_FORMAT,
    }),
    system: z
      .union([z.string(), z.array(contentPart)])
      .optional()
      .describe("The request's instructions, where its messages are Anthropic's: send them beside these."),
    blocks: z
      .array(
        z
          .object({
            label,
            memory_id: z.string(),
            placement: z.enum(["cached_prefix", "new", "carried_over", "earlier_turn"]),
            rank: z.int().nullable().describe("Rank in the search result, from 0; null if carried over."),
            replaces: z.array(label).describe("Blocks in this prompt whose text this one updates."),
          })
          .meta({ id: "Block" }),
      )
      .describe("Every distinct memory: this turn's in prompt order, then those that earlier turns gave."),
    annotations: z.array(z.string()).describe("This turn's annotation lines, as in the prompt."),
    tools: z
      .array(z.looseObject({}))
      .optional()
      .describe("The request's tools in the order to send them in; absent: it has none."),
    plan: z
      .object({
        layout: z.enum(["single", "conversation"]),
        policy: z.string(),
        expected_cached_tokens: z.int().describe("Prompt tokens expected in the engine's prefix cache."),
        uncached_tokens: z.int().describe("Prompt tokens that the engine has to compute."),
        total_tokens: z.int(),
        miss,
        search_path: z
          .array(z.int())
          .describe("The matched node of the context index, as child positions; empty: no match."),
        order_changed: z.boolean().describe("Whether the blocks are not in retrieval order."),
        tool_changes: z
          .object({ added: z.array(z.string()), removed: z.array(z.string()), changed: z.array(z.string()) })
          .meta({ id: "ToolChanges" })
          .optional()
          .describe(
            "Names of the tools that differ from the conversation's newest prompt; all empty: only their order or form does. Absent: they are the same.",
          ),
        instruction_change: z
          .object({ line: z.int().describe("From 1, in the new text."), text: z.string() })
          .meta({ id: "InstructionChange" })
          .optional()
          .describe(
            "The first line of the instructions that differs from the conversation's newest prompt; its first 200 characters. Absent: none, or unknown.",
          ),
        stable_messages: z.int().describe("Leading messages that are byte-identical to an earlier prompt's."),
        retention: field.fixedRetention.describe("What later prompts keep of this turn's memories."),
        fresh_start: z
          .boolean()
          .describe("Whether the memories of earlier turns were dropped; those still wanted are given again."),
        fresh_start_reason: field.freshStartReason
          .optional()
          .describe(
            "Why: it costs less (`cost`), the prompt outgrew its share of the engine's cache (`share`) or its limit (`limit`), or the stored history ends before a memory that was forgotten. Absent: no fresh start.",
          ),
        added_messages: z
          .int()
          .optional()
          .describe("Messages of the conversation that the client did not send; absent: none."),
        epoch: planEpoch.optional(),
        depth: planDepth.optional(),
      })
      .meta({ id: "Plan", description: "The prompt's expected cost. Token counts are estimates." }),
    engine: z
      .object({
        fields: z.record(z.string(), z.unknown()).describe("Fields for the engine's request body."),
        headers: z.record(z.string(), z.string()).describe("Headers for the request to the engine."),
      })
      .describe("What to send to the engine beside the messages."),
    worker: z
      .string()
      .optional()
      .describe(
        "The worker to send it to, whose name the affinity headers in `engine` carry; absent: no workers were named.",
      ),
    warnings: z.array(
      z
        .object({ code: z.string(), message: z.string(), memory_ids: z.array(z.string()).optional() })
        .meta({ id: "Warning" }),
    ),
  })
  .meta({ id: "ComposeAnswer" });

/** Throws `InvalidRequestError` for fields that contradict each other. */
export const readCompose = readerOf(composeOptions, composeRequest);

export const composeWireBody: WireBody<ComposeRequest> = {
  schema: composeBodyWithNulls,
  read: readCompose,
};

/** Messages are read by the service's rules, which know the same roles. */
export const writeCompose = writerOf(composeResult) as (answer: ComposeAnswer) => z.input<typeof composeResult>;
