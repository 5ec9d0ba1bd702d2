import type {
  AgentId,
  CausedMiss,
  ConversationId,
  EpochReason,
  FixedRetention,
  RequestId,
  UsageCause,
  UsageNoteKind,
  UserId,
} from "../../core/index.js";
import type { KeptNote, ReuseSums, UsageKey } from "../api/usage-log.js";
import type { KeptRow, Valued } from "./usage-sums.js";

/** A row of `prompts`, with the names that its numbers stand for. */
export interface PromptRow {
  readonly id: number;
  readonly number: number;
  readonly tenant: string;
  readonly user: string;
  readonly agent: string;
  readonly conversation: string | null;
  readonly model: string;
  readonly engine: string;
  readonly layout: "single" | "conversation";
  readonly policy: string;
  readonly retention: string;
  readonly request: string;
  readonly at: number;
  readonly epoch_began: string | null;
  readonly epoch_prompts: number | null;
  readonly prompt_tokens: number;
  readonly expected_tokens: number;
  readonly carried_tokens: number;
  readonly planned_cause: string | null;
  readonly planned_tokens: number | null;
  readonly unserved_cause: string | null;
  readonly unserved_tokens: number | null;
  readonly reported_prompt_tokens: number | null;
  readonly reported_cached_tokens: number | null;
  readonly first_token_ms: number | null;
  readonly apart: string | null;
  readonly saved_money: number | null;
  readonly missed_money: number | null;
  /** Ids of the rows that it counts in. */
  readonly tenant_id: number;
  readonly user_id: number;
  readonly conversation_id: number | null;
  readonly group_id: number;
}

/** Prompts with the names that their numbers stand for. */
export const PROMPT_ROWS = `select p.id, p.number, t.name as tenant, u.name as user, u.agent, c.name as conversation, g.model, g.engine, g.layout,
    s.policy, s.retention, p.request, p.at, p.epoch_began, p.epoch_prompts, p.prompt_tokens, p.expected_tokens,
    p.carried_tokens, p.planned_cause, p.planned_tokens, p.unserved_cause, p.unserved_tokens, p.reported_prompt_tokens,
    p.reported_cached_tokens, p.first_token_ms, p.apart, p.saved_money, p.missed_money,
    p.tenant as tenant_id, p.user as user_id, p.conversation as conversation_id, p.grp as group_id
  from prompts p cross join users u on u.id = p.user cross join groups g on g.id = p.grp cross join shapes s on s.id = p.shape
    cross join tenants t on t.id = p.tenant left join conversations c on c.id = p.conversation`;

/** A request's prompt; its parameters are {@link keyOf}'s. */
export const PROMPT_OF = `${PROMPT_ROWS} where p.request = ? and p.user = (select id from users where name = ? and agent = ?
  and tenant = (select id from tenants where name = ?))`;

export function keyOf({ tenant, userId, agentId, requestId }: UsageKey): readonly string[] {
  return [requestId, userId, agentId ?? "", tenant];
}

/** A prompt of a row of any database; what its numbers are of, each has its own way. */
export function keptRow(
  row: Omit<PromptRow, "id" | "tenant_id" | "user_id" | "conversation_id" | "group_id">,
): KeptRow {
  const report =
    row.reported_cached_tokens === null
      ? null
      : { cachedTokens: row.reported_cached_tokens, promptTokens: row.reported_prompt_tokens };
  return {
    number: row.number,
    tenant: row.tenant,
    userId: row.user as UserId,
    agentId: row.agent === "" ? null : (row.agent as AgentId),
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
    usage: {
      promptTokens: row.prompt_tokens,
      expectedTokens: row.expected_tokens,
      carriedTokens: row.carried_tokens,
      planned: missOf(row.planned_cause, row.planned_tokens),
      unserved: missOf(row.unserved_cause, row.unserved_tokens),
      report,
      firstTokenMs: row.first_token_ms,
    },
    apart: row.apart as Valued["apart"],
    savedMoney: row.saved_money,
    missedMoney: row.missed_money,
  };
}

function missOf(cause: string | null, tokens: number | null): CausedMiss | null {
  return cause === null || tokens === null ? null : { cause: cause as UsageCause, tokens };
}

/** Columns of `prompts` that an engine's report may change. */
const VALUES = [
  ...["planned_cause", "planned_tokens", "unserved_cause", "unserved_tokens"],
  ...["reported_prompt_tokens", "reported_cached_tokens", "first_token_ms", "apart", "saved_money", "missed_money"],
];

/** The values of those columns, in their order. */
export function valuesOf({ usage, apart, savedMoney, missedMoney }: Valued): readonly (string | number | null)[] {
  const { planned, unserved, report, firstTokenMs } = usage;
  return [
    ...[planned?.cause ?? null, planned?.tokens ?? null, unserved?.cause ?? null, unserved?.tokens ?? null],
    ...[report?.promptTokens ?? null, report?.cachedTokens ?? null, firstTokenMs, apart, savedMoney, missedMoney],
  ];
}

const INSERTED = [
  ...["tenant", "number", "user", "conversation", "grp", "shape", "request", "at", "epoch_began", "epoch_prompts"],
  ...["prompt_tokens", "expected_tokens", "carried_tokens", ...VALUES],
];

/** Does nothing where the user has a prompt of this request. */
export const INSERT_PROMPT = `insert into prompts (${INSERTED.join()}) values (${INSERTED.map(() => "?").join()})
  on conflict (user, request) do nothing`;

/** Its parameters: the group, {@link valuesOf}, the id. */
export const UPDATE_PROMPT = `update prompts set grp = ?, ${VALUES.map((name) => `${name} = ?`).join()} where id = ?`;

/** A row of `users` or `conversations`, with its user's name. */
export interface ReuseRow {
  readonly user: string;
  readonly agent: string;
  readonly conversation: string;
  readonly conversations: number;
  readonly prompts: number;
  readonly prompt_tokens: number;
  readonly uncached_tokens: number;
  readonly missed_tokens: number;
  readonly shared_prompt_tokens: number;
  readonly shared_expected_tokens: number;
  readonly shared_reported_prompt_tokens: number;
  readonly shared_reported_cached_tokens: number;
  readonly saved_money: number;
  readonly last_at: number;
}

export function reuseOf(row: ReuseRow): ReuseSums & { readonly userId: UserId; readonly agentId: AgentId | null } {
  return {
    userId: row.user as UserId,
    agentId: row.agent === "" ? null : (row.agent as AgentId),
    prompts: row.prompts,
    promptTokens: row.prompt_tokens,
    uncachedTokens: row.uncached_tokens,
    missedTokens: row.missed_tokens,
    sharedPromptTokens: row.shared_prompt_tokens,
    sharedExpectedTokens: row.shared_expected_tokens,
    sharedReportedPromptTokens: row.shared_reported_prompt_tokens,
    sharedReportedCachedTokens: row.shared_reported_cached_tokens,
    savedMoney: row.saved_money,
    lastAt: row.last_at,
  };
}

/** A row of `notes`. */
export interface NoteRow {
  readonly number: number;
  readonly at: number;
  readonly kind: string;
  readonly label: string;
  readonly model: string | null;
}

export function noteOf({ kind, ...row }: NoteRow, tenant: string | null): KeptNote {
  return { ...row, tenant, kind: kind as UsageNoteKind };
}
