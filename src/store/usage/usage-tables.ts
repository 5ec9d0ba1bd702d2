import type { Columns, Dialect, NamedStatement } from "../database/sql.js";

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

  /** Prompts. `id` grows with all tenants' together, `number` with the tenant's own, `changed` with every batch. */
  usage_prompts: {
    columns: {
      id: "bigint",
      tenant: "text",
      number: "bigint",
      changed: "bigint",
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
      { name: "usage_prompts_by_change", on: ["tenant", "changed"] },
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
