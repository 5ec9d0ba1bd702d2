import type pg from "pg";
import type { FollowedUsage, UsageChanges, UsageCursor } from "../api/usage-log.js";
import { ask, type Connections, type NamedStatement } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";
import { keptRow, type NoteRow, noteOf } from "../usage/usage-rows.js";
import { type NamedPrompt, PROMPT_COLUMNS, PROMPT_NAMES } from "./prompt-rows.js";
import { groupValues } from "./window-reads.js";

/** Both are numbered under the log's lock: what is committed later has a higher number. Null: the table is empty. */
const CURSOR: NamedStatement = {
  name: "usage_cursor",
  text: `select (select max(id) from ${SCHEMA}.usage_changes) as change, (select max(id) from ${SCHEMA}.usage_notes) as note`,
};
/** One row for each of the newest that fit, oldest first, each with how many fit; one without a prompt where none is read. */
const CHANGED: NamedStatement = {
  name: "usage_changed",
  text: `with changed as (
      select distinct unnest(c.prompts) as id from ${SCHEMA}.usage_changes c where c.tenant = $1 and c.id > $2),
    fits as materialized (
      select p.id, p.number from changed d
      cross join lateral (select * from ${SCHEMA}.usage_prompts r where r.id = d.id limit 1) p
      join ${SCHEMA}.usage_users u on u.id = p.user_id ${PROMPT_NAMES}
      where p.tenant = $1 and ($3::text is null or u.name = $3) and ($4::text is null or u.agent = $4)
        and ($5::text is null or c.name = $5) and ($6::text is null or g.model = $6) and ($7::text is null or g.engine = $7)
        and ($8::text is null or g.layout = $8) and ($9::text is null or p.planned_cause = $9 or p.unserved_cause = $9))
    select counted.fitting, q.* from (select count(*) as fitting from fits) counted left join (
      select ${PROMPT_COLUMNS} from (select id from fits order by number desc limit $10) f
      join ${SCHEMA}.usage_prompts p on p.id = f.id join ${SCHEMA}.usage_users u on u.id = p.user_id ${PROMPT_NAMES}) q on true
    order by q.number`,
};
const NOTES: NamedStatement = {
  name: "usage_new_notes",
  text: `select n.number, n.at, n.kind, n.label, n.model, n.tenant from ${SCHEMA}.usage_notes n
    where n.id > $1 and (n.tenant is null or n.tenant = $2) order by n.id`,
};

/** See `UsageLog.changes`: of one state of the database. Rejects with the store's faults. */
export function readChanges(
  connections: Connections,
  since: UsageCursor | null,
  followed: readonly FollowedUsage[],
): Promise<{ readonly cursor: UsageCursor; readonly changes: readonly UsageChanges[] }> {
  return connections.readTogether(async (client) => {
    const asked = since === null ? [] : followed.map((one) => readOf(client, one, since));
    const [[last], ...read] = await Promise.all([
      ask<{ change: number | null; note: number | null }>(client, CURSOR),
      ...asked,
    ]);
    const cursor = { change: last?.change ?? since?.change ?? 0, note: last?.note ?? since?.note ?? 0 };
    return { cursor, changes: since === null ? followed.map(() => NOTHING) : read };
  });
}

const NOTHING: UsageChanges = { rows: [], leftOut: 0, notes: [] };

async function readOf(
  client: pg.ClientBase,
  { filter, limit }: FollowedUsage,
  since: UsageCursor,
): Promise<UsageChanges> {
  const { tenant, userId, agentId, conversationId, cause } = filter;
  const ofUser = [userId ?? null, agentId === undefined ? null : (agentId ?? ""), conversationId ?? null];
  const values = [tenant, since.change, ...ofUser, ...groupValues(filter), cause ?? null, limit];
  type ChangedRow = NamedPrompt & { readonly fitting: number };
  type TenantNote = NoteRow & { readonly tenant: string | null };
  const [found, notes] = await Promise.all([
    ask<ChangedRow & object>(client, CHANGED, values),
    ask<TenantNote & object>(client, NOTES, [since.note, tenant]),
  ]);
  const rows = found.filter(({ id }) => id !== null).map(keptRow);
  return {
    rows,
    leftOut: (found[0]?.fitting ?? 0) - rows.length,
    notes: notes.map(({ tenant: owner, ...row }) => noteOf(row, owner)),
  };
}
