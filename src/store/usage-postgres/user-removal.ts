import type pg from "pg";
import { ask, type NamedStatement } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";

/** Most prompts that are deleted at once. */
export const MOST_IN_PIECE = 5_000;

const MARK: NamedStatement = {
  name: "usage_mark_deleted",
  text: `insert into ${SCHEMA}.usage_deleted_users as d (digest, at) values ($1, $2)
    on conflict (digest) do update set at = greatest(d.at, excluded.at)`,
};
const USER = `select id from ${SCHEMA}.usage_users where tenant = $1 and name = $2`;
const PIECE: NamedStatement = {
  name: "usage_delete_piece",
  text: `with gone as (delete from ${SCHEMA}.usage_prompts where id in
      (select p.id from ${SCHEMA}.usage_prompts p where p.user_id = any(array(${USER})) limit ${MOST_IN_PIECE}) returning 1)
    update ${SCHEMA}.usage_state set kept = kept - (select count(*) from gone) where id = 1
    returning (select count(*) from gone) as count`,
};
const CONVERSATIONS: NamedStatement = {
  name: "usage_delete_conversations",
  text: `delete from ${SCHEMA}.usage_conversations where user_id = any(array(${USER}))`,
};
const USERS: NamedStatement = {
  name: "usage_delete_users",
  text: `delete from ${SCHEMA}.usage_users where tenant = $1 and name = $2`,
};

/** Has what was composed up to `at` left out when it is recorded late. */
export function markDeleted(client: pg.ClientBase, digest: string, at: number): Promise<unknown> {
  return ask(client, MARK, [digest, at]);
}

/** Deletes some of a user's prompts; gives how many. */
export async function deletePiece(client: pg.ClientBase, tenant: string, userId: string): Promise<number> {
  const [row] = await ask<{ count: number }>(client, PIECE, [tenant, userId]);
  return row?.count ?? 0;
}

/** Sends the deletion of what has the user's name, once no prompt is left of it. */
export function endDeletion(client: pg.ClientBase, tenant: string, userId: string): Promise<unknown>[] {
  return [ask(client, CONVERSATIONS, [tenant, userId]), ask(client, USERS, [tenant, userId])];
}
