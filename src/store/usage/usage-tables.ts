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
import type { Columns, Dialect, NamedStatement } from "../database/sql.js";
import type { KeptPrompt, Valued } from "./usage-figures.js";

/** Sends a statement after those sent before, and gives its rows. Its parameters are `$1`, `$2`, … */
export type RunQuery = <R extends object>(statement: NamedStatement, values?: readonly unknown[]) => Promise<R[]>;

/** What a usage log is kept in, with the tables of `usage-tables.ts`. Rejects with the store's faults. */
export interface UsageDatabase {
  readonly dialect: Dialect;
  /** Reads one state of the database. `questions` sends everything before it waits. */
  read<T>(questions: (query: RunQuery) => Promise<T>): Promise<T>;
  /**
   * A transaction beside which no other writes. It is committed when `work` has resolved and everything that it sent has succeeded.
   * `work` runs once more where the connection was lost.
   */
  write<T>(work: (query: RunQuery) => Promise<T>): Promise<T>;
  /** After rows were deleted: nothing of them is left in files. */
  erase(): Promise<void>;
  close(): Promise<void>;
}

/*
 * The usage log's tables, the same in SQLite and PostgreSQL. Numbers of rows are given by the process that writes them, in its transaction,
 * which no other is beside: `usage_state` has the last one. There are no foreign keys: whoever deletes a user writes, too.
 */

interface Index {
  readonly name: string;
  /** Columns, or expressions. */
  readonly on: readonly string[];
  readonly isUnique?: true;
  /** A column: rows where it is null are left out. */
  readonly given?: string;
}

/** A table, its primary key, and its other indexes. */
export interface UsageTable {
  readonly columns: Columns;
  readonly key: readonly string[];
  readonly indexes?: readonly Index[];
}

export const USAGE_TABLES = {
  /** One row: the last number that was given, and how many prompts are kept. */
  usage_state: { columns: { id: "bigint", last_id: "bigint", kept: "bigint" }, key: ["id"] },

  /** Texts that are remembered under a name. */
  usage_marks: { columns: { name: "text", text: "text" }, key: ["name"] },

  /** Batches that were recorded lately: one whose outcome was not heard of is not recorded twice. */
  usage_batches: {
    columns: { id: "text", at: "bigint" },
    key: ["id"],
    indexes: [{ name: "usage_batches_by_time", on: ["at"] }],
  },

  /** Digests of users that were deleted lately: what is recorded of them late is left out. */
  usage_deleted_users: { columns: { digest: "text", at: "bigint" }, key: ["digest"] },

  /** The last numbers of tenants' prompts and notes; of the notes of all tenants, that of the tenant `""`. */
  usage_tenants: { columns: { tenant: "text", prompts: "bigint", notes: "bigint" }, key: ["tenant"] },

  /** What prompts are counted under. */
  usage_groups: {
    columns: { id: "bigint", tenant: "text", model: "text", engine: "text", layout: "text" },
    key: ["id"],
    indexes: [{ name: "usage_groups_by_name", on: ["tenant", "model", "engine", "layout"], isUnique: true }],
  },

  /**
   * Whose prompts are kept: each user with one agent, or none (`""`), and each of their conversations (`""`: the user's own row); with sums
   * over these prompts, named as in `ReuseSums`.
   */
  usage_owners: {
    columns: {
      id: "bigint",
      tenant: "text",
      name: "text",
      agent: "text",
      conversation: "text",
      prompts: "bigint",
      reported_prompts: "bigint",
      prompt_tokens: "bigint",
      uncached_tokens: "bigint",
      missed_tokens: "bigint",
      shared_prompt_tokens: "bigint",
      shared_expected_tokens: "bigint",
      shared_reported_prompt_tokens: "bigint",
      shared_reported_cached_tokens: "bigint",
      shared_reported_expected_tokens: "bigint",
      saved_money: "double precision",
      last_at: "bigint",
    },
    key: ["id"],
    indexes: [{ name: "usage_owners_by_name", on: ["tenant", "name", "agent", "conversation"], isUnique: true }],
  },

  /** Prompts. `id` grows with all tenants' together, `number` with the tenant's own. */
  usage_prompts: {
    columns: {
      id: "bigint",
      tenant: "text",
      number: "bigint",
      user_id: "bigint",
      conversation_id: "bigint?",
      group_id: "bigint",
      policy: "text",
      retention: "text",
      request: "text",
      at: "bigint",
      epoch_began: "text?",
      epoch_prompts: "bigint?",
      prompt_tokens: "bigint",
      expected_tokens: "bigint",
      carried_tokens: "bigint",
      planned_cause: "text?",
      planned_tokens: "bigint?",
      unserved_cause: "text?",
      unserved_tokens: "bigint?",
      reported_prompt_tokens: "bigint?",
      reported_cached_tokens: "bigint?",
      first_token_ms: "double precision?",
      apart: "text?",
      saved_money: "double precision?",
      missed_money: "double precision?",
    },
    key: ["id"],
    indexes: [
      // One text: by two columns, PostgreSQL's planner may look for a request among all of its user's.
      { name: "usage_prompts_by_request", on: ["(cast(user_id as text) || ' ' || request)"], isUnique: true },
      { name: "usage_prompts_by_number", on: ["tenant", "number"], isUnique: true },
      { name: "usage_prompts_by_user", on: ["user_id", "number"] },
      { name: "usage_prompts_by_conversation", on: ["conversation_id", "number"], given: "conversation_id" },
      { name: "usage_prompts_by_group", on: ["group_id", "number"] },
      { name: "usage_prompts_by_planned", on: ["tenant", "planned_cause", "number"], given: "planned_cause" },
      { name: "usage_prompts_by_unserved", on: ["tenant", "unserved_cause", "number"], given: "unserved_cause" },
    ],
  },

  /** Sums over time, by `measuresOf`: of a minute, and, when that is some time ago, of a quarter of an hour and of six hours. */
  usage_sums: {
    columns: { group_id: "bigint", start: "bigint", measure: "text", value: "double precision" },
    key: ["group_id", "start", "measure"],
  },

  /** Notes of a tenant; of all tenants where it is `""`. */
  usage_notes: {
    columns: {
      id: "bigint",
      tenant: "text",
      number: "bigint",
      at: "bigint",
      kind: "text",
      label: "text",
      model: "text?",
    },
    key: ["id"],
    indexes: [
      { name: "usage_notes_by_time", on: ["tenant", "at"] },
      { name: "usage_notes_by_age", on: ["at"] },
    ],
  },
} as const satisfies Readonly<Record<string, UsageTable>>;

export type TableName = keyof typeof USAGE_TABLES;

type ValueOf<C> = C extends `${infer Of}?` ? ValueOf<Of> | null : C extends "text" ? string : number;

/** A row of a table. */
export type RowOf<T extends TableName> = {
  readonly [K in keyof (typeof USAGE_TABLES)[T]["columns"]]: ValueOf<(typeof USAGE_TABLES)[T]["columns"][K]>;
};

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

/** A prompt's row. */
export function promptRow({ id, userId, conversationId, groupId, kept }: NumberedPrompt): RowOf<"usage_prompts"> {
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

/** An agent as rows have it (`""`: none). */
export function agentOf(agent: string): AgentId | null {
  return agent === "" ? null : (agent as AgentId);
}

function missOf(cause: string | null, tokens: number | null): CausedMiss | null {
  return cause === null || tokens === null ? null : { cause: cause as UsageCause, tokens };
}
