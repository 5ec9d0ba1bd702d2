import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import { explainQuery, explainResult, miss, requestIds } from "./explain-contract.js";

/*
 * `GET /usage/…`: costs of the caller's tenant over time, by cause, by user, one by one. Numbers, ids and names only: no text of memories,
 * messages or instructions. Times are milliseconds since the epoch.
 *
 * Two token counts: fields that begin with `reported_` are the engine's, null where it reported none; all others are memprefix's estimates.
 */

const tokens = z.int();
const at = z.int();
const share = z.number().nullable();
const money = z.number().nullable();

/** Filters of every view. */
const filters = {
  model: field.modelName.optional().describe("Prompts to this model only. `unknown`: none was named."),
};

const window = {
  window: field.usageWindow.default("hour").describe("The last 60 minutes, 24 hours or 31 days, in whole steps."),
};

/** Opaque: an earlier answer's `next`. */
const cursor = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,200}$/, "must be what an answer's next was")
  .optional()
  .describe("An answer's `next`: where its list goes on.");

const sums = {
  prompts: z.int(),
  reported_prompts: z.int().describe("Those whose engine reported cached tokens."),
  prompt_tokens: tokens,
  expected_cached_tokens: tokens.describe("What memprefix expected to hit."),
  reported_prompt_tokens: tokens.describe("Of the reported prompts, by the engine's count, without chats' tools."),
  reported_cached_tokens: tokens.describe("Of those, cached."),
  uncached_tokens: tokens.describe(
    "Of `prompt_tokens`, computed: without those that the engine reported as cached, or that memprefix expected where it did not.",
  ),
  missed_tokens: tokens.describe("Computed beyond the new turns' own text; each prompt's have one cause."),
  by_hand: z
    .object({ uncached_tokens: tokens, in_message_tokens: tokens, in_system_tokens: tokens })
    .describe(
      "Tokens computed, and what the same memories would have cost without memprefix: as a list in the newest message, and in the system prompt as in Mem0's README. As planned; without prompts of windows.",
    ),
  cached_share: share.describe(
    "The engine's word: reported cached of reported prompt tokens. Prompts below a provider's minimum and expired ones are left out (`below_minimum`, `expired`). Null: nothing reported.",
  ),
  expected_share: share.describe(
    "The same as memprefix expected it, of the same prompts; where none was reported, of all.",
  ),
  below_minimum: z
    .object({ prompts: z.int(), tokens })
    .describe("Prompts shorter than what the provider caches: not in the shares."),
  expired: z
    .object({ prompts: z.int(), tokens })
    .describe("Prompts whose prefix was unused for longer than the cache keeps it: not in the shares."),
  first_token_ms: z
    .object({ prompts: z.int(), mean: z.number(), p50: z.number(), p95: z.number() })
    .nullable()
    .describe("Time to the first token. Percentiles from a histogram, within 10 %. Null: none measured."),
  saved_money: money.describe(
    "By the engine's prices, against computing every token: net of what cache writes cost more. May be negative. Null: prompts cost time, not money.",
  ),
  missed_money: money.describe("What the missed tokens cost more than cached ones. Null: as above."),
};

export const usageSums = z.object(sums).meta({ id: "UsageSums" });

export const usageSummaryQuery = z.strictObject({ ...window, ...filters });

export const usageSummaryResult = z
  .object({
    window: field.usageWindow,
    from: at,
    to: at,
    step_ms: z.int().describe("Between two points: 1 minute, 15 minutes or 6 hours."),
    has_prices: z.boolean().describe("Whether the engine's cost model has prices, so that money is not null."),
    cache: z
      .object({
        capacity_tokens: z
          .int()
          .nullable()
          .describe("Tokens of all users that it is taken to hold now; null: not known, as nothing was missed yet."),
        capacity_from: z
          .enum(["setting", "engine", "reports"])
          .nullable()
          .describe(
            "`setting`: `MEMPREFIX_CACHE_SIZE`; `engine`: its metrics; `reports`: learned from what was reported of prompts. Null: not known.",
          ),
        block_tokens: z.int().nullable().describe("The engine's block, in its own tokens; null: not known."),
      })
      .nullable()
      .describe("The engine's prefix cache, which all users share; null: prompts are planned as if it had no end."),
    total: usageSums,
    writes: usageSums.describe("Mem0's calls of its own model, through `/plain/v1`: in no other figure."),
    points: z
      .array(z.object({ at: at.describe("Where the step begins."), ...sums }))
      .describe("Every step of the window, oldest first; those without prompts have zeros."),
    by_model: z.array(z.object({ model: z.string(), ...sums })).describe("Most prompt tokens first."),
    misses: z
      .array(
        z.object({
          cause: field.missCause,
          title: z.string().describe("The cause in a few words."),
          advice: z.string().describe("What to do about it."),
          prompts: z.int(),
          tokens,
          share: z.number().describe("Of all missed tokens."),
          money,
        }),
      )
      .describe("Every cause, most tokens first; those without prompts have zeros."),
  })
  .meta({ id: "WindowSums" });

export const usageRow = z
  .object({
    id: z.int().describe("Grows with time; unique within the tenant."),
    at,
    request_id: z.string(),
    user_id: z.string(),
    agent_id: z.string().nullable(),
    conversation_id: z.string().nullable(),
    model: z.string().describe("As the client named it; `unknown` where it did not."),
    engine: field.engine,
    layout: z.enum(["single", "conversation"]),
    policy: z.string(),
    retention: field.fixedRetention,
    epoch: z
      .object({ began: field.epochReason.nullable(), prompts: z.int() })
      .nullable()
      .describe("Why its epoch began with it, and how many prompts it has. Null: its history was not cut."),
    prompt_tokens: tokens,
    expected_cached_tokens: tokens,
    carried_tokens: tokens.describe("Of memories that were not retrieved, so that those after them hit."),
    new_tokens: tokens.describe("Of the new turn's own text: no cache could have them."),
    miss,
    reported_prompt_tokens: tokens.nullable(),
    reported_cached_tokens: tokens.nullable(),
    uncached_tokens: tokens,
    first_token_ms: z.number().nullable(),
    saved_money: money,
  })
  .meta({ id: "UsageRow" });

/** Filters of a list of prompts. */
const promptFilters = {
  ...filters,
  user_id: field.userId.optional().describe("Prompts of this user only."),
  agent_id: field.agentId.optional().describe("And of this agent; with `user_id`."),
  conversation_id: field.conversationId.optional().describe("And of this conversation; with `user_id`."),
  cause: field.missCause.optional().describe("Prompts that missed for this reason only."),
};

export const usageRequestsQuery = z.strictObject({
  ...promptFilters,
  cursor,
  limit: z.coerce.number().int().min(1).max(200).default(50).describe("Most entries in the answer."),
});

export const usageRequestsResult = z
  .object({
    requests: z.array(usageRow).describe("Newest first."),
    next: z.string().nullable().describe("The `cursor` of the next page; null: this is the last."),
  })
  .meta({ id: "UsageRequests" });

/*
 * `GET /usage/request`: a prompt, with the prompt it continued.
 */

export const usageRequestQuery = explainQuery.extend(requestIds.shape);

const message = z.object({
  role: z.string(),
  tokens: tokens.describe("Estimated."),
  is_shared: z.boolean().describe("Whether both prompts have the same messages up to this one."),
  text: z.string().nullable().describe("Null unless MEMPREFIX_DASHBOARD_TEXT is on."),
});

export const usageRequestResult = z
  .object({
    request: usageRow.nullable().describe("Null: its figures were deleted, as old ones are."),
    has_text: z.boolean().describe("Whether the operator lets memory text be shown."),
    explanation: explainResult,
    messages: z.array(message).nullable().describe("The prompt's; null: some of them were forgotten."),
    continued_messages: z
      .array(message)
      .nullable()
      .describe("Those of the prompt that it continued; null: none, or forgotten."),
  })
  .meta({ id: "UsageRequest" });
