import type { AgentId } from "../../core/index.js";
import { SCHEMA } from "../postgres/schema.js";
import { keptRow } from "../usage/usage-rows.js";
import type { KeptRow } from "../usage/usage-sums.js";

/** A prompt that is kept, with the numbers of the rows that it counts in. */
export interface UsagePrompt {
  readonly id: number;
  readonly userId: number;
  readonly conversationId: number | null;
  readonly groupId: number;
  readonly kept: KeptRow;
}

/** The columns of `usage_prompts`, and their types. */
export const PROMPT_TYPES = {
  id: "bigint",
  tenant: "text",
  number: "bigint",
  user_id: "bigint",
  conversation_id: "bigint",
  group_id: "bigint",
  policy: "text",
  retention: "text",
  request: "text",
  at: "bigint",
  epoch_began: "text",
  epoch_prompts: "bigint",
  prompt_tokens: "bigint",
  expected_tokens: "bigint",
  carried_tokens: "bigint",
  planned_cause: "text",
  planned_tokens: "bigint",
  unserved_cause: "text",
  unserved_tokens: "bigint",
  reported_prompt_tokens: "bigint",
  reported_cached_tokens: "bigint",
  first_token_ms: "double precision",
  apart: "text",
  saved_money: "double precision",
  missed_money: "double precision",
} as const;

type ColumnType = "bigint" | "text" | "double precision";
type ColumnValue<T extends ColumnType> = T extends "text" ? string : number;
/** Those that may be null. */
type Optional =
  | "conversation_id"
  | "epoch_began"
  | "epoch_prompts"
  | "planned_cause"
  | "planned_tokens"
  | "unserved_cause"
  | "unserved_tokens"
  | "reported_prompt_tokens"
  | "reported_cached_tokens"
  | "first_token_ms"
  | "apart"
  | "saved_money"
  | "missed_money";

/** A row of `usage_prompts`. */
export type PromptColumns = {
  readonly [K in keyof typeof PROMPT_TYPES]:
    | ColumnValue<(typeof PROMPT_TYPES)[K]>
    | (K extends Optional ? null : never);
};

/** A row with the names that its numbers stand for. */
export interface NamedPrompt extends PromptColumns {
  readonly user: string;
  readonly agent: string;
  readonly conversation: string | null;
  readonly model: string;
  readonly engine: string;
  readonly layout: "single" | "conversation";
}

/** What is read of `p`, `u`, `g` and `c`. */
export const PROMPT_COLUMNS = `${Object.keys(PROMPT_TYPES)
  .map((name) => `p.${name}`)
  .join()}, u.name as "user", u.agent, c.name as conversation, g.model, g.engine, g.layout`;

/** Joins behind `p` and `u`. */
export const PROMPT_NAMES = `join ${SCHEMA}.usage_groups g on g.id = p.group_id
  left join ${SCHEMA}.usage_conversations c on c.id = p.conversation_id`;

/** What a prompt is found by: its user's number and its request's id, as the index has them. */
export const PROMPT_KEY = "(p.user_id::text || ' ' || p.request)";

export function usagePrompt(row: NamedPrompt): UsagePrompt {
  const { id, user_id: userId, conversation_id: conversationId, group_id: groupId } = row;
  return { id, userId, conversationId, groupId, kept: keptRow(row) };
}

/** A prompt's row. */
export function columnsOf({ id, userId, conversationId, groupId, kept }: UsagePrompt): PromptColumns {
  const { usage, epoch } = kept;
  return {
    id,
    tenant: kept.tenant,
    number: kept.number,
    user_id: userId,
    conversation_id: conversationId,
    group_id: groupId,
    policy: kept.policy,
    retention: kept.retention,
    request: kept.requestId,
    at: kept.at,
    epoch_began: epoch?.began ?? null,
    epoch_prompts: epoch?.prompts ?? null,
    prompt_tokens: usage.promptTokens,
    expected_tokens: usage.expectedTokens,
    carried_tokens: usage.carriedTokens,
    planned_cause: usage.planned?.cause ?? null,
    planned_tokens: usage.planned?.tokens ?? null,
    unserved_cause: usage.unserved?.cause ?? null,
    unserved_tokens: usage.unserved?.tokens ?? null,
    reported_prompt_tokens: usage.report?.promptTokens ?? null,
    reported_cached_tokens: usage.report?.cachedTokens ?? null,
    first_token_ms: usage.firstTokenMs,
    apart: kept.apart,
    saved_money: kept.savedMoney,
    missed_money: kept.missedMoney,
  };
}

/** Empty in the table: no agent. */
export function agentIdOf(agent: string): AgentId | null {
  return agent === "" ? null : (agent as AgentId);
}
