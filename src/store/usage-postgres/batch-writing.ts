import type pg from "pg";
import { ask, type NamedStatement } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";
import { type GrowingSums, REUSE_NAMES, SUM_COLUMNS, SUM_NAMES } from "../usage/usage-sums.js";
import type { BatchChanges } from "./batch-changes.js";
import { columnsOf, PROMPT_TYPES } from "./prompt-rows.js";

type Types = Readonly<Record<string, "bigint" | "integer" | "text" | "double precision">>;

/** Columns that count money or milliseconds; the others are integers. */
const FRACTIONS = new Set(["firstTokenMs", "savedMoney", "missedMoney"]);
const typesOf = (names: readonly (keyof GrowingSums)[]): Types =>
  Object.fromEntries(names.map((name) => [SUM_COLUMNS[name], FRACTIONS.has(name) ? "double precision" : "bigint"]));

const SUM_TYPES = typesOf(SUM_NAMES);
const REUSE_TYPES = typesOf(REUSE_NAMES);
const STEP_TYPES: Types = { tenant: "text", step: "bigint", start: "bigint", group_id: "bigint" };
const KEPT_TYPES: Types = { ...REUSE_TYPES, last_at: "bigint" };

/** A statement that inserts the rows of its parameter, a JSON array; `then`: what becomes of those that are there. */
function insertion(table: string, types: Types, then: string): NamedStatement {
  const names = Object.keys(types);
  const columns = names.map((name) => `${name} ${types[name]}`).join();
  return {
    name: `insert_${table}`,
    text: `insert into ${SCHEMA}.${table} as t (${names.join()})
      select ${names.join()} from json_to_recordset($1::json) as r (${columns}) ${then}`,
  };
}

/** Adds the columns to those that are there. */
function added(key: string, types: Types, more = ""): string {
  const sums = Object.keys(types).map((name) => `${name} = t.${name} + excluded.${name}`);
  return `on conflict (${key}) do update set ${sums.join()}${more}`;
}
const LATER = ", last_at = greatest(t.last_at, excluded.last_at)";
const STEP_KEY = "tenant, step, start, group_id";

const TENANTS = insertion(
  "usage_tenants",
  { tenant: "text", prompts: "bigint" },
  "on conflict (tenant) do update set prompts = excluded.prompts",
);
const GROUPS = insertion(
  "usage_groups",
  { id: "bigint", tenant: "text", model: "text", engine: "text", layout: "text" },
  "",
);
const USERS = insertion(
  "usage_users",
  { id: "bigint", tenant: "text", name: "text", agent: "text", conversations: "bigint", ...KEPT_TYPES },
  added("id", { conversations: "bigint", ...REUSE_TYPES }, LATER),
);
const CONVERSATIONS = insertion(
  "usage_conversations",
  { id: "bigint", tenant: "text", user_id: "bigint", name: "text", ...KEPT_TYPES },
  added("id", REUSE_TYPES, LATER),
);
/** What a report may change. */
const REPORTED = [
  "group_id",
  "planned_cause",
  "planned_tokens",
  "unserved_cause",
  "unserved_tokens",
  "reported_prompt_tokens",
  "reported_cached_tokens",
  "first_token_ms",
  "apart",
  "saved_money",
  "missed_money",
];
const PROMPTS = insertion(
  "usage_prompts",
  PROMPT_TYPES,
  `on conflict (id) do update set ${REPORTED.map((name) => `${name} = excluded.${name}`).join()}`,
);
const SUMS = insertion("usage_sums", { ...STEP_TYPES, ...SUM_TYPES }, added(STEP_KEY, SUM_TYPES));
const TIMES = insertion(
  "usage_times",
  { ...STEP_TYPES, bin: "integer", prompts: "bigint" },
  added(`${STEP_KEY}, bin`, { prompts: "bigint" }),
);
const CAUSES = insertion(
  "usage_causes",
  { ...STEP_TYPES, cause: "text", prompts: "bigint", tokens: "bigint", money: "double precision" },
  added(`${STEP_KEY}, cause`, { prompts: "bigint", tokens: "bigint", money: "double precision" }),
);
/** `$2`: JSON of tenants and the ids of their prompts. */
const CHANGES: NamedStatement = {
  name: "usage_keep_changes",
  text: `insert into ${SCHEMA}.usage_changes (tenant, at, prompts)
    select tenant, $1::bigint, array(select json_array_elements_text(prompts)::bigint)
    from json_to_recordset($2::json) as r (tenant text, prompts json)`,
};
const STATE: NamedStatement = {
  name: "usage_advance",
  text: `update ${SCHEMA}.usage_state set last_id = $1, kept = $2 where id = 1`,
};
const REMOVE: NamedStatement = {
  name: "usage_remove",
  text: `delete from ${SCHEMA}.usage_prompts where id = any($1::bigint[])`,
};
const DROP_CONVERSATIONS: NamedStatement = {
  name: "usage_drop_conversations",
  text: `with gone as (delete from ${SCHEMA}.usage_conversations where id = any($1::bigint[]) and prompts <= 0 returning user_id)
    update ${SCHEMA}.usage_users u set conversations = u.conversations - g.count
    from (select user_id, count(*) as count from gone group by user_id) g where u.id = g.user_id`,
};
const DROP_USERS: NamedStatement = {
  name: "usage_drop_users",
  text: `delete from ${SCHEMA}.usage_users where id = any($1::bigint[]) and prompts <= 0`,
};

/** Sends the statements that write a batch's changes, without waiting for one of them: a dozen at most, however long it is. */
export function writeChanges(client: pg.ClientBase, changes: BatchChanges, now: number): Promise<unknown>[] {
  const { tenants, groups, users, conversations, written, removed, steps, lastId, kept } = changes;
  const send = (statement: NamedStatement, rows: readonly object[]) =>
    rows.length === 0 ? [] : [ask(client, statement, [JSON.stringify(rows)])];
  const step = ({
    tenant,
    step: ms,
    start,
    groupId,
  }: {
    tenant: string;
    step: number;
    start: number;
    groupId: number;
  }) => ({ tenant, step: ms, start, group_id: groupId });
  const changed = [...changes.changed()].map(([tenant, ids]) => ({ tenant, prompts: ids }));
  const dropped = removed.size === 0 ? [] : [ask(client, REMOVE, [[...removed]])];
  const sent = [
    // First: the request's id may be another row's from now on.
    ...dropped,
    ...send(
      TENANTS,
      [...tenants].map(([tenant, prompts]) => ({ tenant, prompts })),
    ),
    ...send(GROUPS, groups),
    ...send(
      USERS,
      [...users].map(([id, { tenant, name, agent, conversations: more, sums, lastAt }]) => ({
        ...{ id, tenant, name, agent, conversations: more, last_at: lastAt },
        ...reuseColumns(sums),
      })),
    ),
    ...send(
      CONVERSATIONS,
      [...conversations].map(([id, { tenant, userId, name, sums, lastAt }]) => ({
        ...{ id, tenant, user_id: userId, name, last_at: lastAt },
        ...reuseColumns(sums),
      })),
    ),
    ...send(PROMPTS, [...written.values()].map(columnsOf)),
    ...send(
      SUMS,
      [...steps.steps.values()].map((one) => ({ ...step(one), ...sumColumns(one.sums) })),
    ),
    ...send(
      TIMES,
      [...steps.times.values()].map((one) => ({ ...step(one), bin: one.bin, prompts: one.prompts })),
    ),
    ...send(
      CAUSES,
      [...steps.causes.values()].map(({ cause, prompts, tokens, money, ...of }) => ({
        ...step(of),
        ...{ cause, prompts, tokens, money },
      })),
    ),
    ...(changed.length === 0 ? [] : [ask(client, CHANGES, [now, JSON.stringify(changed)])]),
    ask(client, STATE, [lastId, kept]),
  ];
  // A prompt that is removed with the batch that brought it leaves them empty, too.
  const drops = [
    ask(client, DROP_CONVERSATIONS, [[...conversations.keys()]]),
    ask(client, DROP_USERS, [[...users.keys()]]),
  ];
  return [...sent, ...drops];
}

function sumColumns(sums: GrowingSums): object {
  return Object.fromEntries(SUM_NAMES.map((name) => [SUM_COLUMNS[name], sums[name]]));
}

function reuseColumns(sums: GrowingSums): object {
  return Object.fromEntries(REUSE_NAMES.map((name) => [SUM_COLUMNS[name], sums[name]]));
}
