import type pg from "pg";
import { type AlertClaim, claimed, type JudgedRule, type KeptAlert } from "../api/alert-claims.js";
import { ask, type NamedStatement } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";

const KEPT: NamedStatement = {
  name: "usage_alert",
  text: `select number, is_firing as "isFiring", changed_at as "changedAt", claimed_until as "claimedUntil"
    from ${SCHEMA}.usage_alerts where rule = $1`,
};
const KEEP: NamedStatement = {
  name: "usage_keep_alert",
  text: `insert into ${SCHEMA}.usage_alerts (rule, number, is_firing, changed_at, claimed_until) values ($1, $2, $3, $4, $5)
    on conflict (rule) do update set number = excluded.number, is_firing = excluded.is_firing,
      changed_at = excluded.changed_at, claimed_until = excluded.claimed_until`,
};
const SETTLE: NamedStatement = {
  name: "usage_settle_alert",
  text: `update ${SCHEMA}.usage_alerts set claimed_until = null where rule = $1 and number = $2`,
};

/** In a transaction of its own, under the log's lock: `lock` is sent first. */
export async function claimAlert(client: pg.ClientBase, lock: NamedStatement, judged: JudgedRule): Promise<AlertClaim> {
  const [, , found] = await Promise.all([
    client.query("begin"),
    ask(client, lock),
    ask<KeptAlert & object>(client, KEPT, [judged.rule]),
  ]);
  const { row, claim } = claimed(found[0] ?? null, judged);
  const { rule } = judged;
  const values = row === null ? [] : [rule, row.number, row.isFiring, row.changedAt, row.claimedUntil];
  await Promise.all([...(row === null ? [] : [ask(client, KEEP, values)]), client.query("commit")]);
  return claim;
}

/** Does nothing where the claim was taken over. */
export async function settleAlert(client: pg.ClientBase, rule: string, claim: number): Promise<void> {
  await ask(client, SETTLE, [rule, claim]);
}
