import { z } from "zod";
import type { Eviction, Feedback, Forgetting, IndexDescription } from "../../service/base/answers.js";
import type { ComposeAnswer } from "../../service/compose/compose-answer.js";
import { type ComposeRequest, composeRequest, withoutAbsentMemories } from "../../service/compose/compose-request.js";
import * as field from "../../service/fields/fields.js";
import { answerForm } from "./answer-form.js";
import { planDepth, writeDepth } from "./depth-contract.js";

/*
 * What goes over the wire: snake_case, strict in. The fields themselves are the service's; here they get their names, their words in
 * the OpenAPI document, and their way to the service's types and back.
 */

const memoriesInAnyShape = field.memories.meta({
  description:
    "Mem0's answer as it is: an array, `{ results }`, `{ results, relations }` or a page. Items need `id` and `memory`; best first. " +
    "Absent: the configured source is searched.",
  anyOf: [
    { type: "array", items: { $ref: "#/components/schemas/Memory" } },
    {
      type: "object",
      required: ["results"],
      properties: { results: { type: "array", items: { $ref: "#/components/schemas/Memory" } } },
    },
    { type: "null" },
  ],
});

const annotationsWanted = z
  .union(
    [
      field.annotationSwitch,
      z.strictObject({
        order: field.annotationSwitch.optional(),
        location: field.annotationSwitch.optional(),
        top_n: field.annotationTopN.optional(),
        wording: field.wording.optional(),
      }),
    ],
    field.ANNOTATIONS_WANTED,
  )
  .meta({ description: "Which annotations to give, how many labels each may name, and in which words." });

export const composeBody = z
  .strictObject({
    user_id: field.userId.meta({ description: "Whose memories; always given, never guessed." }),
    agent_id: field.agentId.nullish().meta({ description: "An agent with memories of its own for this user." }),
    conversation_id: field.conversationId
      .nullish()
      .meta({ description: "Names the conversation: its prompts only grow. Absent: one single prompt." }),
    request_id: field.newRequestId.nullish().meta({
      description: "Names this request for retries, eviction and feedback. A repeated one gets the stored answer.",
    }),
    query: field.query.nullish().meta({ description: "What to search for. Default: the last user message." }),
    messages: field.messages
      .nullish()
      .meta({ description: "Plain chat history, ending with the question; no injected memories." }),
    memories: memoriesInAnyShape.optional(),
    system: field.system.nullish().meta({ description: "Instructions to stand before the messages." }),
    top_k: field.topK.nullish().meta({ description: "How many memories to search for. Default 20." }),
    memory_budget_tokens: field.memoryBudgetTokens.nullish().meta({
      description:
        "Tokens that this turn's memories may come to. The policy `carry-over` uses what the retrieved ones leave of it for cached ones; with any other a warning says that it changes nothing.",
    }),
    memory_budget_ratio: field.memoryBudgetRatio.nullish().meta({
      description:
        "The same as a rate: over all of the user's prompts that say one, memory tokens sent never exceed the sum of this × memory tokens retrieved. What a prompt leaves unused, later ones may use; a single one holds at most one and a half times its own share. With `memory_budget_tokens` both hold. In a conversation it is about what each turn adds.",
    }),
    policy: field.policy.nullish(),
    retention: field.retention.nullish().meta({
      description:
        "What later prompts of the conversation keep of the memories that this one gives: `keep` all (prompts only grow), `volatile` the memories but not what points at them, `ephemeral` nothing, `auto` what the engine's cost model says is cheapest.",
    }),
    annotations: annotationsWanted.nullish(),
    engine: field.engine.nullish().meta({
      description:
        "The engine family that the prompt goes to; the answer's `engine` says what to send along, and for `anthropic` and `openai-breakpoints` the messages carry the provider's cache marks. Default: the configured one.",
    }),
    tool_memories: field.toolMemories.nullish().meta({
      description:
        "Where memories stand behind a tool's result: `own_message`, a user's message behind it, or `in_result`, inside the result's message behind its text, for engines and chat templates that take no user's message there (Mistral's). Default: `in_result` for the engine family `mistral` and where the conversation's earlier turns have it so, else `own_message`.",
    }),
    prompt: z.boolean().nullish().meta({ description: "Also give the prompt as one text." }),
  })
  .meta({ id: "ComposeRequest" });

export const message = z
  .looseObject({ role: z.string() })
  .meta({ id: "Message", description: "A chat message, as OpenAI has it." });
const label = z.int().meta({ description: "The block's label; it stands in the prompt as `[12]`." });

export const composeResult = z
  .object({
    request_id: z.string(),
    messages: z.array(message).meta({ description: "Send these to the engine." }),
    prompt: z.string().optional(),
    blocks: z.array(
      z
        .object({
          label,
          memory_id: z.string(),
          placement: z.enum(["cached_prefix", "new", "carried_over", "earlier_turn"]),
          rank: z
            .int()
            .nullable()
            .meta({ description: "Place in the retrieval order, from 0; null where carried over." }),
          replaces: z.array(label),
        })
        .meta({ id: "Block" }),
    ),
    annotations: z
      .array(z.string())
      .meta({ description: "This turn's annotation lines, as they stand in the prompt." }),
    plan: z
      .object({
        layout: z.enum(["single", "conversation"]),
        policy: z.string(),
        expected_cached_tokens: z.int(),
        uncached_tokens: z.int(),
        total_tokens: z.int(),
        search_path: z.array(z.int()),
        order_changed: z.boolean(),
        stable_messages: z
          .int()
          .meta({ description: "Messages from the front that are byte for byte those of an earlier prompt." }),
        retention: field.fixedRetention.meta({ description: "What later prompts keep of this turn's memories." }),
        fresh_start: z.boolean().meta({
          description: "Nothing that earlier turns gave stands any more; what is still wanted is given again.",
        }),
        depth: planDepth.optional(),
      })
      .meta({ id: "Plan", description: "What the prompt should cost; token figures are estimates." }),
    engine: z
      .object({ fields: z.record(z.string(), z.unknown()), headers: z.record(z.string(), z.string()) })
      .meta({ description: "What to put into the engine's request body, and on it as headers." }),
    warnings: z.array(
      z
        .object({ code: z.string(), message: z.string(), memory_ids: z.array(z.string()).optional() })
        .meta({ id: "Warning" }),
    ),
  })
  .meta({ id: "ComposeAnswer" });

export const memoryItem = z
  .looseObject({ id: z.union([z.string(), z.int()]), memory: z.string() })
  .meta({ id: "Memory", description: "A memory as Mem0 gives it." });

export const addBody = z
  .strictObject({
    user_id: field.userId,
    agent_id: field.agentId.nullish(),
    memories: field.memoryTexts.meta({ description: "One text each; kept as they are." }),
    metadata: field.memoryMetadata.optional(),
  })
  .meta({ id: "AddRequest" });

export const addResult = z.object({ results: z.array(memoryItem) }).meta({ id: "AddAnswer" });

export const evictBody = z.strictObject({ request_ids: field.requestIds }).meta({ id: "EvictRequest" });
export const evictResult = z
  .object({ evicted: z.array(z.string()), unknown: z.array(z.string()) })
  .meta({ id: "EvictAnswer" });

export const feedbackBody = z
  .strictObject({
    user_id: field.userId,
    agent_id: field.agentId.nullish(),
    request_id: field.requestId,
    prompt_tokens: field.tokenCount.nullish().meta({
      description:
        "As the engine counted the prompt; scales its figures to memstem's estimates, so give it with `cached_tokens`.",
    }),
    cached_tokens: field.tokenCount
      .nullish()
      .meta({ description: "As the engine reported; absent means unknown, not zero." }),
    ttft_ms: field.milliseconds.nullish().meta({ description: "Time to the first token, in milliseconds." }),
  })
  .meta({ id: "FeedbackRequest" });
export const feedbackResult = z
  .object({
    request_id: z.string(),
    expected_cached_tokens: z.int(),
    observed_cached_tokens: z.int().nullable(),
    difference: z.int().nullable(),
    corrected: z.object({ tokens_removed: z.int() }).meta({
      description:
        "Tokens that are not expected to be cached any more, because this report showed that they are gone; estimated.",
    }),
  })
  .meta({ id: "FeedbackAnswer" });

export const indexQuery = z.strictObject({
  ...answerForm,
  agent_id: field.agentId.optional(),
  limit: z.coerce.number().int().min(1).max(10_000).default(1_000),
});
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
    nodes: z.array(
      z.object({
        search_path: z.array(z.int()),
        labels: z.array(label),
        uses: z.int(),
        live_requests: z.int(),
        last_used: z.int(),
        request_ids: z.array(z.string()),
      }),
    ),
  })
  .meta({ id: "Index" });

export const metricsText = z.string().meta({ description: "Prometheus' text format; numbers, routes and codes only." });

/** Of a user whose id does not stand in the path. */
export const userIndexQuery = indexQuery.extend({ user_id: field.userId });
export const userPath = z.strictObject({ user_id: field.userId });
export const memoryPath = z.strictObject({ user_id: field.userId, memory_id: field.memoryId });
export const userQuery = userPath.extend(answerForm);
export const memoryQuery = memoryPath.extend(answerForm);
export const forgetUserResult = z.object({ user_id: z.string(), scopes: z.int() }).meta({ id: "ForgottenUser" });
export const forgetMemoryResult = z
  .object({
    memory_id: z.string(),
    labels: z.array(label).meta({ description: "Blocks whose text is gone." }),
    deleted_from_source: z
      .boolean()
      .nullable()
      .meta({ description: "Null where another system owns the memory; delete it there too." }),
  })
  .meta({ id: "ForgottenMemory" });
export const health = z
  .object({ status: z.enum(["ok", "stopping"]), version: z.string(), source: z.string().nullable() })
  .meta({ id: "Health" });

/** `memories: null` counts as absent, like every other null. */
export const composeBodyWithNulls = z.preprocess(withoutAbsentMemories, composeBody);

export function readCompose(body: z.output<typeof composeBody>): ComposeRequest {
  const { annotations } = body;
  return composeRequest({
    userId: body.user_id,
    agentId: body.agent_id,
    conversationId: body.conversation_id,
    requestId: body.request_id,
    query: body.query,
    messages: body.messages,
    memories: body.memories,
    system: body.system,
    topK: body.top_k,
    memoryBudgetTokens: body.memory_budget_tokens,
    memoryBudgetRatio: body.memory_budget_ratio,
    policy: body.policy,
    retention: body.retention,
    annotations:
      typeof annotations === "object" && annotations !== null
        ? {
            order: annotations.order,
            location: annotations.location,
            topN: annotations.top_n,
            wording: annotations.wording,
          }
        : annotations,
    engine: body.engine,
    toolMemories: body.tool_memories,
    prompt: body.prompt,
  });
}

export function writeCompose(answer: ComposeAnswer): z.input<typeof composeResult> {
  const { plan } = answer;
  return {
    request_id: answer.requestId,
    messages: [...answer.messages],
    ...(answer.prompt === undefined ? {} : { prompt: answer.prompt }),
    blocks: answer.blocks.map((block) => ({
      label: block.label,
      memory_id: block.memoryId,
      placement: block.placement,
      rank: block.rank,
      replaces: [...block.replaces],
    })),
    annotations: [...answer.annotations],
    plan: {
      layout: plan.layout,
      policy: plan.policy,
      expected_cached_tokens: plan.expectedCachedTokens,
      uncached_tokens: plan.uncachedTokens,
      total_tokens: plan.totalTokens,
      search_path: [...plan.searchPath],
      order_changed: plan.orderChanged,
      stable_messages: plan.stableMessages,
      retention: plan.retention,
      fresh_start: plan.freshStart,
      ...(plan.depth === undefined ? {} : { depth: writeDepth(plan.depth) }),
    },
    engine: { fields: { ...answer.engine.fields }, headers: { ...answer.engine.headers } },
    warnings: answer.warnings.map(({ code, message: text, memoryIds }) => ({
      code,
      message: text,
      ...(memoryIds === undefined ? {} : { memory_ids: [...memoryIds] }),
    })),
  };
}

export function writeEviction({ evicted, unknown }: Eviction): z.input<typeof evictResult> {
  return { evicted: [...evicted], unknown: [...unknown] };
}

export function writeFeedback(feedback: Feedback): z.input<typeof feedbackResult> {
  return {
    request_id: feedback.requestId,
    expected_cached_tokens: feedback.expectedCachedTokens,
    observed_cached_tokens: feedback.observedCachedTokens,
    difference: feedback.difference,
    corrected: { tokens_removed: feedback.corrected.tokensRemoved },
  };
}

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
      request_ids: [...node.requestIds],
    })),
  };
}

export function writeForgetting({
  memoryId,
  labels,
  deletedFromSource,
}: Forgetting): z.input<typeof forgetMemoryResult> {
  return { memory_id: memoryId, labels: [...labels], deleted_from_source: deletedFromSource };
}
