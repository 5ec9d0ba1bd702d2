import { z } from "zod";
import type { ChatMessage } from "../../core/index.js";
import type { ComposeAnswer } from "../../service/compose/compose-answer.js";
import { type ComposeRequest, composeRequest, withoutAbsentMemories } from "../../service/compose/compose-request.js";
import * as field from "../../service/fields/fields.js";
import { givenMessages, messageFormat } from "../../service/fields/given-messages.js";
import { planDepth, writeDepth } from "./depth-contract.js";
import { planEpoch, writeEpoch } from "./epoch-contract.js";
import { label } from "./label.js";
import { givenMemories } from "./memory-contract.js";

/*
 * Chat messages, in requests and in answers: the union of OpenAI's message types. Fields that are not named here pass through unmodified.
 */

const contentPart = z
  .looseObject({ type: z.string(), text: z.string().optional() })
  .meta({ description: "One part of the content: text, an image, audio, a file. Only the text of parts is read." });

const toolCall = z.looseObject({
  id: z.string(),
  type: z.string().meta({ description: "`function` or `custom`." }),
  function: z
    .looseObject({ name: z.string(), arguments: z.string().meta({ description: "JSON, as the model wrote it." }) })
    .optional(),
});

/** A chat message, for the OpenAPI document and for answers. */
export const message = z
  .looseObject({
    role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
    content: z.union([z.string(), z.array(contentPart), z.null()]).optional(),
    name: z.string().nullish().meta({ description: "Tells participants of one role apart; of `function`: which one." }),
    tool_calls: z.array(toolCall).nullish().meta({ description: "Calls that the assistant asks for." }),
    tool_call_id: z.string().nullish().meta({ description: "Of `tool`: the call that this is the result of." }),
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

/** Messages as requests give them: checked by the service's rules, described as what they may be. */
const messagesOfAnyFormat = givenMessages.meta({ items: ANY_FORMAT });

/*
 * `POST /compose`.
 */

/** Names of workers, for `/compose` and batches. */
export const workers = field.workers.meta({
  description:
    "Engine replicas with their own prefix cache, by name. A prompt is routed to the one that holds most of it, unless that one is overloaded. Default: `MEMSTEM_WORKERS`.",
});

const annotationsWanted = z
  .union(
    [
      field.annotationSwitch,
      z.strictObject({
        order: field.annotationSwitch.optional().meta({
          description: "Rank the most relevant blocks, where they are not first in the prompt. Default: true.",
        }),
        location: field.annotationSwitch.optional().meta({
          description:
            "Name blocks that an earlier turn gave in a line of their own, and rank only this turn's. Default: false.",
        }),
        top_n: field.annotationTopN.optional().meta({
          description:
            "Most labels that one annotation names: a number, a share of the retrieved blocks (0.5), `all`, or `auto` (the default): a quarter of them, from 3 to 8.",
        }),
        wording: field.wording.optional().meta({ description: "Templates, each with `{labels}` once." }),
      }),
    ],
    field.ANNOTATIONS_WANTED,
  )
  .meta({ description: "Which annotations the prompt gets, how many labels each names, and their wording." });

/** A request as clients send it, nulls aside. */
export const composeBody = z
  .strictObject({
    user_id: field.userId.meta({ description: "Whose memories. Always given, never guessed." }),
    agent_id: field.agentId.nullish().meta({ description: "An agent with its own memories of this user." }),
    conversation_id: field.conversationId
      .nullish()
      .meta({ description: "Names the conversation; its prompts extend each other. Absent: a single prompt." }),
    request_id: field.newRequestId.nullish().meta({
      description: "Names this request for retries, eviction and feedback. A repeated id returns the stored answer.",
    }),
    query: field.query.nullish().meta({ description: "The search query. Default: the last user message." }),
    messages: messagesOfAnyFormat.nullish().meta({
      description:
        "Plain history, ending with the question or a tool's result; without injected memories. Chat messages, items of the Responses API, or Anthropic's messages; the answer's are of the same API.",
    }),
    format: messageFormat.nullish().meta({
      description:
        "The API of `messages`: `chat`, `responses` or `anthropic`. With `anthropic`, the answer has the instructions in `system`, not among its messages. Default: by what only one API has (items, tool blocks), else `chat`.",
    }),
    history: field.history.nullish().meta({
      description:
        "Which messages the prompt has. `exact`: those of `messages`. `extended`: where `messages` is a window (the last n messages of a history), those that were cut too, for as long as the epoch lasts. `auto`: the same where the engine's cost says that it pays. `stored`: those that are stored of the conversation, and `messages` (the assistant's last answer, the new question) behind them. Default: `MEMSTEM_HISTORY`.",
    }),
    history_ratio: field.historyRatio.nullish().meta({
      description:
        "With `extended` and `auto`: average tokens of an epoch's prompts, as a multiple of what the windows alone would come to. Default: 2.",
    }),
    memories: givenMemories.optional(),
    system: field.system
      .nullish()
      .meta({ description: "System instructions, placed before the messages: a text, or text parts." }),
    top_k: field.topK.nullish().meta({ description: "How many memories to search for. Default: `MEMSTEM_TOP_K`." }),
    run_id: field.mem0Name.nullish().meta({
      description:
        "Search only memories of this run of Mem0's; `*`: those of any. Absent: those of no run, so that what belongs to one run is not given in all conversations.",
    }),
    app_id: field.mem0Name
      .nullish()
      .meta({ description: "Search only memories of this application of Mem0's. Default: `MEMSTEM_MEM0_APP_ID`." }),
    filters: field.memoryFilters.nullish().meta({
      description:
        'Further conditions of the search in Mem0\'s form, such as `{ "topic": "food", "year": { "gte": 2025 } }`, with `AND`, `OR` and `NOT`; those of `MEMSTEM_MEM0_FILTERS` apply too. Ids of users, agents, runs and applications are no conditions.',
    }),
    show_expired: z.boolean().nullish().meta({
      description: "Whether the search gives memories whose `expiration_date` is past. Default: false.",
    }),
    memory_budget_tokens: field.memoryBudgetTokens.nullish().meta({
      description:
        "Most memory tokens of this turn. With the policy `carry-over`, what the retrieved memories leave of it goes to cached ones. With other policies it has no effect, and a warning says so.",
    }),
    memory_budget_ratio: field.memoryBudgetRatio.nullish().meta({
      description:
        "The same budget as an average: over all of the user's prompts that give a ratio, memory tokens sent ≤ sum of (ratio × memory tokens retrieved). Later prompts may use what earlier ones left; one prompt gets at most 1.5 times its own share. In a conversation it counts what each turn adds. With `memory_budget_tokens`, both apply.",
    }),
    policy: field.policy.nullish().meta({ description: "The ordering policy. Default: the configured one." }),
    retention: field.retention.nullish().meta({
      description:
        "What later prompts of the conversation keep of this turn's memories. `keep`: all, so prompts are append-only. `volatile`: the memories, not the annotations. `ephemeral`: nothing. `auto`: the cheapest by the engine's cost model.",
    }),
    annotations: annotationsWanted.nullish(),
    engine: field.engine.nullish().meta({
      description:
        "The engine family of the prompt. The answer's `engine` says what to send along; for `anthropic` and `openai-breakpoints` the messages carry the provider's cache breakpoints. Default: the configured one.",
    }),
    max_prompt_tokens: field.maxPromptTokens.nullish().meta({
      description:
        "Most tokens of the prompt, by the engine's count as far as its reported `prompt_tokens` show it; leave room for the answer. Past it the oldest messages are left out (not with `history: exact`), then the least relevant memories (warning `memory_left_out`); 422 if what must stay comes to more. Default: `MEMSTEM_MAX_PROMPT_TOKENS`; where that is not set, what the engine behind `/v1` says that it takes, which messages alone may exceed.",
    }),
    tool_memories: field.toolMemories.nullish().meta({
      description:
        "Where memories go after a tool result. `own_message`: a user message after it. `in_result`: in the result's message, after its text, for chat templates that allow no user message there (Mistral's), or keep thoughts only behind the newest one (Qwen3's, GLM's). Default: `MEMSTEM_TOOL_MEMORIES`, else `in_result` for the engine family `mistral`, in chats for models whose template wants it, and where earlier turns of the conversation have it, else `own_message`.",
    }),
    block_template: field.blockTemplate.nullish().meta({
      description:
        "What a block gives of its memory, as in `[{date}: ]{memory}`: the fields `{memory}`, `{date}`, `{created_at:datetime}`, `{updated_at}`, `{categories}`, `{metadata.key}`; a group in brackets is left out where one of its fields has no value. Part of the block's text: another template or value makes another block. Default: `MEMSTEM_BLOCK_TEMPLATE`.",
    }),
    time_zone: field.timeZone.nullish().meta({
      description: "IANA time zone of the times that `block_template` gives. Default: `MEMSTEM_TIME_ZONE`.",
    }),
    dedupe: field.dedupe.nullish().meta({
      description:
        "Which texts are given once. `contained`: equal ones, also but for case, punctuation at the end and white space, and those whose sentences another memory of the prompt or the question has. `exact`: equal ones only. Default: `MEMSTEM_DEDUPE`.",
    }),
    workers: workers.nullish(),
    prompt: z.boolean().nullish().meta({ description: "Also return the prompt as one text." }),
    dry_run: z.boolean().nullish().meta({
      description:
        "Whether to look only: the answer is what would be composed now, and nothing of it stays. No turn, no answer under its `request_id`, no expectation in the index, no figures. Memories are searched for.",
    }),
    record_usage: z.boolean().nullish().meta({
      description:
        "Whether the prompt counts in usage, metrics and the dashboard. Default: yes. No is for tries with users made up for them.",
    }),
  })
  .meta({ id: "ComposeRequest", description: "`query` or `messages` is required." });

/** `memories: null` counts as absent, like every other null. */
export const composeBodyWithNulls = z.preprocess(withoutAbsentMemories, composeBody);

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
      .meta({ description: "The request's instructions, where its messages are Anthropic's: send them beside these." }),
    prompt: z.string().optional().meta({ description: "The prompt as one text, if requested." }),
    blocks: z
      .array(
        z
          .object({
            label,
            memory_id: z.string(),
            placement: z.enum(["cached_prefix", "new", "carried_over", "earlier_turn"]),
            rank: z.int().nullable().meta({ description: "Rank in the search result, from 0; null if carried over." }),
            replaces: z.array(label).meta({ description: "Blocks in this prompt whose text this one updates." }),
          })
          .meta({ id: "Block" }),
      )
      .meta({ description: "Every distinct memory: this turn's in prompt order, then those that earlier turns gave." }),
    annotations: z.array(z.string()).meta({ description: "This turn's annotation lines, as in the prompt." }),
    plan: z
      .object({
        layout: z.enum(["single", "conversation"]),
        policy: z.string(),
        expected_cached_tokens: z.int().meta({ description: "Prompt tokens expected in the engine's prefix cache." }),
        uncached_tokens: z.int().meta({ description: "Prompt tokens that the engine has to compute." }),
        total_tokens: z.int(),
        search_path: z
          .array(z.int())
          .meta({ description: "The matched node of the context index, as child positions; empty: no match." }),
        order_changed: z.boolean().meta({ description: "Whether the blocks are not in retrieval order." }),
        stable_messages: z
          .int()
          .meta({ description: "Leading messages that are byte-identical to an earlier prompt's." }),
        retention: field.fixedRetention.meta({ description: "What later prompts keep of this turn's memories." }),
        fresh_start: z.boolean().meta({
          description: "Whether the memories of earlier turns were dropped; those still wanted are given again.",
        }),
        added_messages: z
          .int()
          .optional()
          .meta({ description: "Messages of the conversation that the client did not send; absent: none." }),
        epoch: planEpoch.optional(),
        depth: planDepth.optional(),
      })
      .meta({ id: "Plan", description: "The prompt's expected cost. Token counts are estimates." }),
    engine: z
      .object({
        fields: z.record(z.string(), z.unknown()).meta({ description: "Fields for the engine's request body." }),
        headers: z.record(z.string(), z.string()).meta({ description: "Headers for the request to the engine." }),
      })
      .meta({ description: "What to send to the engine beside the messages." }),
    worker: z.string().optional().meta({
      description:
        "The worker to send it to, whose name the affinity headers in `engine` carry; absent: no workers were named.",
    }),
    warnings: z.array(
      z
        .object({ code: z.string(), message: z.string(), memory_ids: z.array(z.string()).optional() })
        .meta({ id: "Warning" }),
    ),
  })
  .meta({ id: "ComposeAnswer" });

/** A body's fields; the proxy's messages are chat messages. */
type ComposeFields = Omit<z.output<typeof composeBody>, "messages"> & {
  readonly messages?: z.output<typeof composeBody>["messages"] | readonly ChatMessage[];
};

/** The request as the service takes it. */
export function readCompose(body: ComposeFields): ComposeRequest {
  const { annotations } = body;
  return composeRequest({
    userId: body.user_id,
    agentId: body.agent_id,
    conversationId: body.conversation_id,
    requestId: body.request_id,
    query: body.query,
    messages: body.messages,
    format: body.format,
    history: body.history,
    historyRatio: body.history_ratio,
    memories: body.memories,
    system: body.system,
    topK: body.top_k,
    runId: body.run_id,
    appId: body.app_id,
    filters: body.filters,
    showExpired: body.show_expired,
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
    maxPromptTokens: body.max_prompt_tokens,
    blockTemplate: body.block_template,
    timeZone: body.time_zone,
    dedupe: body.dedupe,
    workers: body.workers,
    prompt: body.prompt,
    dryRun: body.dry_run,
    recordUsage: body.record_usage,
  });
}

/** The JSON of {@link composeResult}. */
export function writeCompose(answer: ComposeAnswer): z.input<typeof composeResult> {
  const { plan } = answer;
  return {
    request_id: answer.requestId,
    // Read by the service's rules, which know the same roles.
    messages: answer.messages as z.input<typeof message>[],
    ...(answer.system === undefined ? {} : { system: answer.system }),
    ...(answer.prompt === undefined ? {} : { prompt: answer.prompt }),
    blocks: answer.blocks.map((block) => ({
      label: block.label,
      memory_id: block.memoryId,
      placement: block.placement,
      rank: block.rank,
      replaces: block.replaces.slice(),
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
      ...(plan.addedMessages === undefined ? {} : { added_messages: plan.addedMessages }),
      ...(plan.epoch === undefined ? {} : { epoch: writeEpoch(plan.epoch) }),
      ...(plan.depth === undefined ? {} : { depth: writeDepth(plan.depth) }),
    },
    engine: { fields: { ...answer.engine.fields }, headers: { ...answer.engine.headers } },
    ...(answer.worker === undefined ? {} : { worker: answer.worker }),
    warnings: answer.warnings.map(({ code, message: text, memoryIds }) => ({
      code,
      message: text,
      ...(memoryIds === undefined ? {} : { memory_ids: [...memoryIds] }),
    })),
  };
}
