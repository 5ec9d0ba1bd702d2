import type pg from "pg";
import type { UsageBounds, UsageEntry } from "../api/usage-log.js";
import { ask, type NamedStatement } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";
import { digestOf, type GroupRow, type KnownUsage, nameOf, type UserName } from "./batch-changes.js";
import { type NamedPrompt, PROMPT_COLUMNS, PROMPT_KEY, PROMPT_NAMES, usagePrompt } from "./prompt-rows.js";

/** Most prompts that one batch removes; more than are recorded in it, so that the bound is reached. */
const REMOVED_AT_ONCE = 4_000;

/** A user, and what a batch names of it. */
interface NamedUser {
  readonly user: UserName;
  readonly requests: Set<string>;
  readonly conversations: Set<string>;
}

const USER_TYPES = "tenant text, name text, agent text";
const OF_USER = "u.tenant = k.tenant and u.name = k.name and u.agent = k.agent";

const STATE: NamedStatement = {
  name: "usage_state",
  text: `select last_id as "lastId", kept from ${SCHEMA}.usage_state where id = 1`,
};
const TENANTS: NamedStatement = {
  name: "usage_tenants",
  text: `select tenant, prompts from ${SCHEMA}.usage_tenants where tenant = any($1::text[])`,
};
const GROUPS: NamedStatement = {
  name: "usage_groups",
  text: `select id, tenant, model, engine, layout from ${SCHEMA}.usage_groups where tenant = any($1::text[])`,
};
const USERS: NamedStatement = {
  name: "usage_users",
  text: `select u.id, u.tenant, u.name, u.agent from json_to_recordset($1::json) as k (${USER_TYPES})
    join ${SCHEMA}.usage_users u on ${OF_USER}`,
};
/** Here and for prompts, a user is looked for once, and then what stands behind its number. */
const CONVERSATIONS: NamedStatement = {
  name: "usage_conversations",
  text: `select c.id, c.user_id as "userId", c.name from json_to_recordset($1::json) as k (${USER_TYPES}, conversations text[])
    join ${SCHEMA}.usage_users u on ${OF_USER} cross join unnest(k.conversations) as named (name)
    join ${SCHEMA}.usage_conversations c on c.user_id = u.id and c.name = named.name`,
};
const PROMPTS: NamedStatement = {
  name: "usage_prompts",
  text: `select ${PROMPT_COLUMNS} from json_to_recordset($1::json) as k (${USER_TYPES}, requests text[])
    join ${SCHEMA}.usage_users u on ${OF_USER} cross join unnest(k.requests) as named (request)
    join ${SCHEMA}.usage_prompts p on ${PROMPT_KEY} = u.id::text || ' ' || named.request ${PROMPT_NAMES}`,
};
/** `$1`: prompts that the batch may add; `$3`: those that are looked at for their age alone. */
const OLDEST: NamedStatement = {
  name: "usage_oldest",
  text: `select ${PROMPT_COLUMNS} from (select * from ${SCHEMA}.usage_prompts order by id limit (
      select least(${REMOVED_AT_ONCE}, greatest(kept + $1::bigint - $2::bigint, $3::bigint, 0))
      from ${SCHEMA}.usage_state where id = 1)) p
    join ${SCHEMA}.usage_users u on u.id = p.user_id ${PROMPT_NAMES} order by p.id`,
};
const DELETED: NamedStatement = {
  name: "usage_deleted",
  text: `select digest, at from ${SCHEMA}.usage_deleted_users where digest = any($1::text[])`,
};

/** Asks for what is stored of what a batch names, in the transaction that is under way; where it is due, for what may be too old. */
export async function readKnown(
  client: pg.ClientBase,
  batch: readonly UsageEntry[],
  bounds: UsageBounds,
  isSweepDue: boolean,
): Promise<KnownUsage> {
  const users = new Map<string, NamedUser>();
  for (const entry of batch) {
    const user = userOf(entry);
    const name = nameOf(user);
    const named = users.get(name) ?? { user, requests: new Set(), conversations: new Set() };
    users.set(name, named);
    named.requests.add(entry.requestId);
    if (entry.kind === "composed" && entry.conversationId !== null) named.conversations.add(entry.conversationId);
  }
  const named = [...users.values()];
  const tenants = [...new Set(batch.map(({ tenant }) => tenant))];
  const composed = batch.reduce((count, { kind }) => count + (kind === "composed" ? 1 : 0), 0);
  const digests = [...new Set(named.map(({ user: { tenant, name } }) => digestOf(tenant, name)))];
  const json = (rowOf: (one: NamedUser) => object) => [JSON.stringify(named.map(rowOf))];
  const [[state], ofTenants, groups, ofUsers, ofConversations, prompts, oldest, deleted] = await Promise.all([
    ask<{ lastId: number; kept: number }>(client, STATE),
    ask<{ tenant: string; prompts: number }>(client, TENANTS, [tenants]),
    ask<GroupRow & object>(client, GROUPS, [tenants]),
    ask<UserName & { id: number }>(
      client,
      USERS,
      json(({ user }) => user),
    ),
    ask<{ id: number; userId: number; name: string }>(
      client,
      CONVERSATIONS,
      json(({ user, conversations }) => ({ ...user, conversations: [...conversations] })),
    ),
    ask<NamedPrompt & object>(
      client,
      PROMPTS,
      json(({ user, requests }) => ({ ...user, requests: [...requests] })),
    ),
    ask<NamedPrompt & object>(client, OLDEST, [composed, bounds.prompts, isSweepDue ? REMOVED_AT_ONCE : 0]),
    ask<{ digest: string; at: number }>(client, DELETED, [digests]),
  ]);
  const { lastId = 0, kept = 0 } = state ?? {};
  return {
    lastId,
    kept,
    tenants: new Map(ofTenants.map(({ tenant, prompts: number }) => [tenant, number])),
    groups,
    users: ofUsers,
    conversations: ofConversations,
    prompts: prompts.map(usagePrompt),
    oldest: oldest.map(usagePrompt),
    isOldestAll: oldest.length >= kept,
    deleted: new Map(deleted.map(({ digest, at }) => [digest, at])),
  };
}

function userOf({ tenant, userId, agentId }: UsageEntry): UserName {
  return { tenant, name: userId, agent: agentId ?? "" };
}
