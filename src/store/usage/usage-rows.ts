import {
  type AgentId,
  type ConversationId,
  type EpochReason,
  type FixedRetention,
  type Miss,
  type MissCause,
  type RequestId,
  timeBin,
  type UserId,
  uncachedTokens,
} from "../../core/index.js";
import type { UsageGroup } from "../api/usage-log.js";
import type { KeptPrompt } from "./usage-figures.js";
import type { RowOf } from "./usage-tables.js";

export type PromptRow = RowOf<"usage_prompts">;

/** A prompt of its row. */
export function keptPrompt(row: PromptRow): KeptPrompt {
  const { reported_prompt_tokens: promptTokens, reported_cached_tokens: cachedTokens } = row;
  return {
    number: row.number,
    tenant: row.tenant,
    userId: row.user_id as UserId,
    agentId: row.agent_id === "" ? null : (row.agent_id as AgentId),
    requestId: row.request_id as RequestId,
    conversationId: row.conversation_id as ConversationId | null,
    model: row.model,
    engine: row.engine,
    layout: row.layout as UsageGroup["layout"],
    at: row.at,
    policy: row.policy,
    retention: row.retention as FixedRetention,
    epoch:
      row.epoch_prompts === null ? null : { began: row.epoch_began as EpochReason | null, prompts: row.epoch_prompts },
    usage: {
      promptTokens: row.prompt_tokens,
      expectedTokens: row.expected_tokens,
      carriedTokens: row.carried_tokens,
      planned: missOf(row.planned_cause, row.planned_tokens),
      miss: missOf(row.miss_cause, row.miss_tokens),
      report: cachedTokens === null ? null : { cachedTokens, promptTokens },
      firstTokenMs: row.first_token_ms,
    },
    apart: row.apart as KeptPrompt["apart"],
    savedMoney: row.saved_money,
    missedMoney: row.missed_money,
  };
}

/** A prompt's row. */
export function promptRow(kept: KeptPrompt): PromptRow {
  const { usage, epoch } = kept;
  return {
    tenant: kept.tenant,
    number: kept.number,
    user_id: kept.userId,
    agent_id: kept.agentId ?? "",
    request_id: kept.requestId,
    conversation_id: kept.conversationId,
    at: kept.at,
    model: kept.model,
    engine: kept.engine,
    layout: kept.layout,
    policy: kept.policy,
    retention: kept.retention,
    epoch_began: epoch?.began ?? null,
    epoch_prompts: epoch?.prompts ?? null,
    prompt_tokens: usage.promptTokens,
    expected_tokens: usage.expectedTokens,
    uncached_tokens: uncachedTokens(usage),
    carried_tokens: usage.carriedTokens,
    planned_cause: usage.planned?.cause ?? null,
    planned_tokens: usage.planned?.tokens ?? null,
    miss_cause: usage.miss?.cause ?? null,
    miss_tokens: usage.miss?.tokens ?? null,
    reported_prompt_tokens: usage.report?.promptTokens ?? null,
    reported_cached_tokens: usage.report?.cachedTokens ?? null,
    first_token_ms: usage.firstTokenMs,
    first_token_bin: usage.firstTokenMs === null ? null : timeBin(usage.firstTokenMs),
    apart: kept.apart,
    saved_money: kept.savedMoney,
    missed_money: kept.missedMoney,
  };
}

function missOf(cause: string | null, tokens: number | null): Miss | null {
  return cause === null || tokens === null ? null : { cause: cause as MissCause, tokens };
}
