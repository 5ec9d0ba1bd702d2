import { z } from "zod";
import { BATCH_PLANNERS, DEFAULT_BATCH_PLANNER } from "../../core/index.js";
import * as field from "./fields.js";
import { givenMessages, messageFormat } from "./given-messages.js";

export const workers = field.workers.describe(
  "Engine replicas with their own prefix cache, by name. A prompt is routed to the one that holds most of it, unless that one is overloaded. Default: those in `MEMPREFIX_ROUTER`.",
);

export const planner = z
  .enum(BATCH_PLANNERS)
  .describe(
    `Who orders blocks and requests. ContextPilot's: Alg. 4 and 5 where a user has no cluster tree yet, else Alg. 2 and 5 on that tree. Default: "${DEFAULT_BATCH_PLANNER}".`,
  );

export const warmStart = z
  .boolean()
  .describe(
    "The prompts of this batch are not sent to an engine: none is expected to be cached, and later requests are ordered by what it retrieved. Default: false.",
  );

export const searchOptions = z.strictObject({
  filters: field.memoryFilters
    .nullish()
    .describe(
      'Conditions in Mem0\'s form, such as `{ "topic": "food", "year": { "gte": 2025 } }`, with `AND`, `OR` and `NOT`; those of `MEMPREFIX_MEM0_SEARCH` apply too.',
    ),
  showExpired: z
    .boolean()
    .nullish()
    .describe("Whether the search gives memories whose `expiration_date` is past. Default: false."),
  rerank: z.boolean().nullish().describe("Whether Mem0's reranker ranks what was found. Default: false."),
  referenceDate: field.referenceDate
    .nullish()
    .describe(
      "The day from which Mem0's platform reads relative times, such as `last week`: `2026-11-26`, or seconds since the epoch. Other sources refuse it.",
    ),
  threshold: z.number().min(0).max(1).nullish().describe("Least similarity to the query, 0 to 1. Default: Mem0's own."),
});

/** Options of `compose`; in snake_case, the body of `POST /compose`, whose names the descriptions use for OpenAPI. `null` counts as absent. */
export const composeOptions = z.strictObject({
  userId: field.userId.describe("Whose memories. Always given, never guessed."),
  agentId: field.agentId.nullish().describe("An agent with its own memories of this user."),
  conversationId: field.conversationId
    .nullish()
    .describe("Names the conversation; its prompts extend each other. Absent: a single prompt."),
  requestId: field.newRequestId
    .nullish()
    .describe("Names this request for retries, eviction and feedback. A repeated id returns the stored answer."),
  query: field.query.nullish().describe("The search query. Default: the last user message."),
  messages: givenMessages
    .nullish()
    .describe(
      "Plain history, ending with the question or a tool's result; without injected memories. Chat messages, items of the Responses API, or Anthropic's messages; the answer's are of the same API.",
    ),
  format: messageFormat
    .nullish()
    .describe(
      "The API of `messages`: `chat`, `responses` or `messages` (Anthropic's). With `messages`, the answer has the instructions in `system`, not among its messages. Default: by what only one API has (items, tool blocks), else `chat`.",
    ),
  history: field.history
    .nullish()
    .describe(
      "Which messages the prompt has. `exact`: those of `messages`. `extended`: where `messages` is a window (the last n messages of a history), those that were cut too, for as long as the epoch lasts. `auto`: the same where the engine's cost says that it pays. `stored`: those that are stored of the conversation, and `messages` (the assistant's last answer, the new question) after them. Default: `auto`.",
    ),
  historyRatio: field.historyRatio
    .nullish()
    .describe(
      "With `extended` and `auto`: average tokens of an epoch's prompts, as a multiple of what the windows alone would come to. Default: 2.",
    ),
  memories: field.memories
    .optional()
    .describe(
      "Mem0's search result, unmodified: an array, `{ results }`, `{ results, relations }` or a page. Each item needs `id` and `memory`; most relevant first. An item that is no memory is left out, and the warning `memory_unusable` names it; one that no longer holds (its `expiration_date` is past, it was superseded, archived or deleted) is left out with the warning `memory_ended`. `origin`, or `origin` in its `metadata`, names what wrote it, such as a tool; texts of the operator's untrusted origins are given at most once. Absent: memprefix searches the configured source.",
    ),
  tools: field.tools
    .nullish()
    .describe(
      "The tools that you send to the engine, in its API's form. A prompt continues only prompts with the same tools; the answer's `tools` are in the order that the conversation sent first. Default: none.",
    ),
  system: field.system.nullish().describe("System instructions, placed before the messages: a text, or text parts."),
  topK: field.topK.nullish().describe("How many memories to search for. Default: `MEMPREFIX_TOP_K`."),
  search: searchOptions
    .nullish()
    .describe(
      "Mem0's own options of the search. Ids of users, agents, runs and applications are refused: memories that belong to a run are never found. Default: `MEMPREFIX_MEM0_SEARCH`, option by option.",
    ),
  memoryBudgetTokens: field.memoryBudgetTokens
    .nullish()
    .describe(
      "Most memory tokens of this turn. With the policy `carry-over`, what the retrieved memories leave of it goes to cached ones. With other policies it has no effect, and a warning says so.",
    ),
  memoryBudgetRatio: field.memoryBudgetRatio
    .nullish()
    .describe(
      "The same budget as an average: over all of the user's prompts that give a ratio, memory tokens sent ≤ sum of (ratio × memory tokens retrieved). Later prompts may use what earlier ones left; one prompt gets at most 1.5 times its own share. In a conversation it counts what each turn adds. With `memory_budget_tokens`, both apply.",
    ),
  policy: field.policy.nullish().describe("The ordering policy. Default: the configured one."),
  retention: field.retention
    .nullish()
    .describe(
      "What later prompts of the conversation keep of this turn's memories. `keep`: all, so prompts are append-only. `volatile`: the memories, not the annotations. `ephemeral`: nothing. `auto`: the cheapest by the engine's cost model.",
    ),
  annotations: field.annotations
    .nullish()
    .describe(
      'What is said of memories after them. `true`: a line that quotes the most relevant one, where it is not the first. `false`: nothing. `"paper"`: ContextPilot\'s words, with labels, for evaluations. Default: true.',
    ),
  engine: field.engine
    .nullish()
    .describe(
      "The engine family of the prompt. The answer's `engine` says what to send along; for `anthropic` and `openai-breakpoints` the messages carry the provider's cache breakpoints. Default: the configured one.",
    ),
  maxPromptTokens: field.maxPromptTokens
    .nullish()
    .describe(
      "Most tokens of the prompt, by the engine's count as far as its reported `prompt_tokens` show it; leave room for the answer. Past it the oldest messages are left out (not with `history: exact`), then the least relevant memories (warning `memory_left_out`); 422 if what must stay comes to more. Default: `MEMPREFIX_MAX_PROMPT_TOKENS`; where that is not set, what the engine behind `/v1` says that it takes, which messages alone may exceed.",
    ),
  model: field.modelName
    .nullish()
    .describe(
      "The model that the prompt is for. Memories after a tool result go into the result's message where the model's template takes no user message there (Mistral's), or drops thoughts before one (Qwen3's, GLM's). `/usage` counts the prompt under it.",
    ),
  dates: z
    .boolean()
    .nullish()
    .describe(
      "Whether each memory has its date before its text, in UTC: `2026-11-29: Ana likes tea.` Where `created_at` is missing, it has none. The date is part of the block's text. Default: false.",
    ),
  dedupe: field.dedupe
    .nullish()
    .describe(
      "Which texts are given once. `contained`: equal ones, also but for case, punctuation at the end and white space, and those whose sentences another memory of the prompt or the question has. `exact`: equal ones only. `spans`: as `contained`, and of a tool's result each longer part that a message before it has word for word. Default: `contained`.",
    ),
  workers: workers.nullish(),
  dryRun: z
    .boolean()
    .nullish()
    .describe(
      "Whether to look only: the answer is what would be composed now, and nothing of it stays. No turn, no answer under its `request_id`, no expectation in the index, no figures. Memories are searched for.",
    ),
});
