import type {
  AgentId,
  CausedMiss,
  ConversationId,
  EpochReason,
  FixedRetention,
  RequestId,
  UsageCause,
  UserId,
} from "../../core/index.js";
import type { UsageGroup } from "../api/usage-log.js";
import type { KeptPrompt, Valued } from "./usage-figures.js";
import { type RowOf, USAGE_TABLES } from "./usage-tables.js";

/** A prompt that is kept, with the numbers of the rows that it belongs to. */
export interface NumberedPrompt {
  readonly id: number;
  readonly userId: number;
  readonly conversationId: number | null;
  readonly groupId: number;
  readonly kept: KeptPrompt;
}

/** A row of `usage_prompts` with the names that its numbers stand for. */
export interface PromptRow extends RowOf<"usage_prompts">, UsageGroup {
  readonly name: string;
  readonly agent: string;
  readonly conversation: string | null;
}

/** The columns of {@link PromptRow}, of prompts `p`, their users `u`, and what {@link PROMPT_NAMES} joins. */
export const PROMPT_COLUMNS = `${Object.keys(USAGE_TABLES.usage_prompts.columns)
  .map((name) => `p.${name}`)
  .join()}, u.name, u.agent, c.conversation, g.model, g.engine, g.layout`;

/** After `p` and `u`; in an order that SQLite keeps, as it does that of all cross joins. `g.id = p.group_id` has to be among the conditions. */
export const PROMPT_NAMES = `cross join usage_groups g left join usage_owners c on c.id = p.conversation_id`;

/** What a prompt is found by: its user's number and its request's id, as the index has them. */
export const PROMPT_KEY = "(cast(p.user_id as text) || ' ' || p.request)";

/** A prompt of its row. */
export function numberedPrompt(row: PromptRow): NumberedPrompt {
  const { id, user_id: userId, conversation_id: conversationId, group_id: groupId } = row;
  return { id, userId, conversationId, groupId, kept: keptPrompt(row) };
}

export function keptPrompt(row: PromptRow): KeptPrompt {
  return {
    number: row.number,
    tenant: row.tenant,
    userId: row.name as UserId,
    agentId: agentOf(row.agent),
    requestId: row.request as RequestId,
    conversationId: row.conversation as ConversationId | null,
    model: row.model,
    engine: row.engine,
    layout: row.layout,
    at: row.at,
    policy: row.policy,
    retention: row.retention as FixedRetention,
    epoch:
      row.epoch_prompts === null ? null : { began: row.epoch_began as EpochReason | null, prompts: row.epoch_prompts },
    ...valuedPrompt(row),
  };
}

/** A prompt's figures, without what its numbers stand for. */
export function valuedPrompt(row: RowOf<"usage_prompts">): Valued {
  const { reported_prompt_tokens: promptTokens, reported_cached_tokens: cachedTokens } = row;
  return {
    usage: {
      promptTokens: row.prompt_tokens,
      expectedTokens: row.expected_tokens,
      carriedTokens: row.carried_tokens,
      planned: missOf(row.planned_cause, row.planned_tokens),
      unserved: missOf(row.unserved_cause, row.unserved_tokens),
      report: cachedTokens === null ? null : { cachedTokens, promptTokens },
      firstTokenMs: row.first_token_ms,
    },
    apart: row.apart as Valued["apart"],
    savedMoney: row.saved_money,
    missedMoney: row.missed_money,
  };
}

/** A prompt's row. `changed`: the number of the batch. */
export function promptRow(
  { id, userId, conversationId, groupId, kept }: NumberedPrompt,
  changed: number,
): RowOf<"usage_prompts"> {
  const { usage, epoch } = kept;
  return {
    id,
    tenant: kept.tenant,
    number: kept.number,
    changed,
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

/** An agent as rows have it (`""`: none). */
export function agentOf(agent: string): AgentId | null {
  return agent === "" ? null : (agent as AgentId);
}

function missOf(cause: string | null, tokens: number | null): CausedMiss | null {
  return cause === null || tokens === null ? null : { cause: cause as UsageCause, tokens };
}
