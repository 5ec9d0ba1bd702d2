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
 * The usage log's tables, the same in SQLite and PostgreSQL. Whoever writes gives the numbers, in a transaction that no other is beside.
 */

interface Index {
  readonly name: string;
  readonly on: readonly string[];
  readonly isUnique?: true;
}

/** A table, its primary key, and its other indexes. */
export interface UsageTable {
  readonly columns: Columns;
  readonly key: readonly string[];
  readonly indexes?: readonly Index[];
}

export const USAGE_TABLES = {
  /** Prompts. `number` grows with the tenant's. An agent that is not named is `""`. */
  usage_prompts: {
    columns: {
      tenant: "text",
      number: "bigint",
      user_id: "text",
      agent_id: "text",
      request_id: "text",
      conversation_id: "text?",
      at: "bigint",
      model: "text",
      engine: "text",
      layout: "text",
      policy: "text",
      retention: "text",
      epoch_began: "text?",
      epoch_prompts: "bigint?",
      prompt_tokens: "bigint",
      expected_tokens: "bigint",
      uncached_tokens: "bigint",
      carried_tokens: "bigint",
      planned_cause: "text?",
      planned_tokens: "bigint?",
      miss_cause: "text?",
      miss_tokens: "bigint?",
      reported_prompt_tokens: "bigint?",
      reported_cached_tokens: "bigint?",
      first_token_ms: "double precision?",
      /** Of `timeBin`: percentiles of a window are those of its bins. */
      first_token_bin: "bigint?",
      apart: "text?",
      saved_money: "double precision?",
      missed_money: "double precision?",
    },
    key: ["tenant", "number"],
    indexes: [
      { name: "usage_prompts_by_request", on: ["tenant", "user_id", "agent_id", "request_id"], isUnique: true },
      { name: "usage_prompts_by_time", on: ["tenant", "at"] },
      { name: "usage_prompts_by_age", on: ["at"] },
    ],
  },

  /** Digests of users that were deleted lately: what is recorded of them late is left out. */
  usage_deleted_users: { columns: { digest: "text", at: "bigint" }, key: ["digest"] },

  /** Texts that are remembered under a name. */
  usage_marks: { columns: { name: "text", text: "text" }, key: ["name"] },

  /** Notes of a tenant; of all tenants where it is `""`. */
  usage_notes: {
    columns: { tenant: "text", number: "bigint", at: "bigint", kind: "text", label: "text", model: "text?" },
    key: ["tenant", "number"],
  },
} as const satisfies Readonly<Record<string, UsageTable>>;

export type TableName = keyof typeof USAGE_TABLES;

type ValueOf<C> = C extends `${infer Of}?` ? ValueOf<Of> | null : C extends "text" ? string : number;

/** A row of a table. */
export type RowOf<T extends TableName> = {
  readonly [K in keyof (typeof USAGE_TABLES)[T]["columns"]]: ValueOf<(typeof USAGE_TABLES)[T]["columns"][K]>;
};
