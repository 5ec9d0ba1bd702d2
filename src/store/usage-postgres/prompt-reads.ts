import type { UserId } from "../../core/index.js";
import type { KeptUsage, UsageFilter, UsageKey, UsagePage } from "../api/usage-log.js";
import type { Connections, NamedStatement } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";
import { keptRow } from "../usage/usage-rows.js";
import { type NamedPrompt, PROMPT_COLUMNS, PROMPT_KEY, PROMPT_NAMES } from "./prompt-rows.js";
import { groupValues } from "./window-reads.js";

/** Most prompts that a page of a rare filter looks at. */
const MAX_SCANNED = 10_000;

const PROMPT: NamedStatement = {
  name: "usage_prompt",
  text: `select ${PROMPT_COLUMNS} from ${SCHEMA}.usage_users u
    join ${SCHEMA}.usage_prompts p on ${PROMPT_KEY} = u.id::text || ' ' || $4 ${PROMPT_NAMES}
    where u.tenant = $1 and u.name = $2 and u.agent = $3`,
};
const OF_USER: NamedStatement = {
  name: "usage_export",
  text: `select ${PROMPT_COLUMNS} from ${SCHEMA}.usage_users u
    join ${SCHEMA}.usage_prompts p on p.user_id = u.id ${PROMPT_NAMES} where u.tenant = $1 and u.name = $2 order by p.id`,
};

/** The newest of some prompts, in front of a number. */
const newest = (where: string) =>
  `(select p.* from ${SCHEMA}.usage_prompts p where ${where} and p.number < $8 order by p.number desc limit $11) p`;
const USERS_OF = `${SCHEMA}.usage_users u`;
const IS_USER = "u.tenant = $1 and u.name = $2 and ($3::text is null or u.agent = $3)";
const GROUPS_OF = `${SCHEMA}.usage_groups g`;
const IS_GROUP = `g.tenant = $1 and ($5::text is null or g.model = $5) and ($6::text is null or g.engine = $6)
  and ($7::text is null or g.layout = $7)`;

/** Where a page looks for prompts: one index serves each filter; what it finds (`$11` at most) is compared with the rest. */
const SOURCES = {
  user: `${USERS_OF} cross join lateral ${newest("p.user_id = u.id")} where ${IS_USER}`,
  conversation: `${USERS_OF} join ${SCHEMA}.usage_conversations c on c.user_id = u.id and c.name = $4
    cross join lateral ${newest("p.conversation_id = c.id")} where ${IS_USER}`,
  cause: `(select * from ${newest("p.tenant = $1 and p.planned_cause = $9")} union all
    select * from ${newest("p.tenant = $1 and p.unserved_cause = $9 and p.planned_cause is distinct from $9")}) p where true`,
  group: `${GROUPS_OF} cross join lateral ${newest("p.group_id = g.id")} where ${IS_GROUP}`,
  tenant: `${newest("p.tenant = $1")} where true`,
} as const;

/** One row for each prompt of the page and the one behind it, with how many were looked at; one without a prompt where there is none. */
function pageOf(source: keyof typeof SOURCES): NamedStatement {
  return {
    name: `usage_page_${source}`,
    text: `with scanned as materialized (
        select p.id, p.number, p.group_id, p.planned_cause, p.unserved_cause from ${SOURCES[source]}
        order by p.number desc limit $11),
      found as materialized (
        select s.id from scanned s where ($9::text is null or s.planned_cause = $9 or s.unserved_cause = $9)
          and (($5::text is null and $6::text is null and $7::text is null)
            or s.group_id = any(array(select g.id from ${GROUPS_OF} where ${IS_GROUP})))
          and ($2::text is null or true) and ($3::text is null or true) and ($4::text is null or true)
        order by s.number desc limit $10::bigint + 1),
      looked as (select count(*) as scanned, min(number) as last from scanned)
      select l.scanned, l.last, q.* from looked l left join (
        select ${PROMPT_COLUMNS} from found f join ${SCHEMA}.usage_prompts p on p.id = f.id
        join ${USERS_OF} on u.id = p.user_id ${PROMPT_NAMES}) q on true
      order by q.number desc`,
  };
}

const PAGES = {
  user: pageOf("user"),
  conversation: pageOf("conversation"),
  cause: pageOf("cause"),
  group: pageOf("group"),
  tenant: pageOf("tenant"),
};

function sourceOf({ userId, conversationId, cause, model, engine, layout }: UsageFilter): keyof typeof SOURCES {
  if (userId !== undefined) return conversationId === undefined ? "user" : "conversation";
  if (cause !== undefined) return "cause";
  return model !== undefined || engine !== undefined || layout !== undefined ? "group" : "tenant";
}

/** Whether a filter has conditions that its source does not meet by itself. */
function hasOthers(source: keyof typeof SOURCES, { cause, model, engine, layout }: UsageFilter): boolean {
  const hasGroup = model !== undefined || engine !== undefined || layout !== undefined;
  if (source === "cause") return hasGroup;
  return (source === "user" || source === "conversation") && (hasGroup || cause !== undefined);
}

/** See `UsageLog.prompts`. Rejects with the store's faults. */
export async function readPage(
  connections: Connections,
  filter: UsageFilter,
  before: number | null,
  limit: number,
): Promise<UsagePage> {
  const { tenant, userId, agentId, conversationId, cause } = filter;
  const ofUser = [userId ?? null, agentId === undefined ? null : (agentId ?? ""), conversationId ?? null];
  const values = [tenant, ...ofUser, ...groupValues(filter), before ?? Number.MAX_SAFE_INTEGER, cause ?? null];
  const source = sourceOf(filter);
  const mostScanned = hasOthers(source, filter) ? MAX_SCANNED : limit + 1;
  type PageRow = NamedPrompt & { readonly scanned: number; readonly last: number | null };
  const rows = await connections.read<PageRow & object>(PAGES[source], [...values, limit, mostScanned]);
  const prompts = rows.filter(({ id }) => id !== null);
  const page = prompts.slice(0, limit);
  const [first] = rows;
  const hasMore = prompts.length > limit;
  const mayHaveMore = first !== undefined && first.scanned >= MAX_SCANNED && mostScanned === MAX_SCANNED;
  const next = hasMore ? (page.at(-1)?.number ?? null) : mayHaveMore ? first.last : null;
  return { rows: page.map(keptRow), next };
}

/** Null: it is not kept. */
export async function readPrompt(connections: Connections, key: UsageKey): Promise<KeptUsage | null> {
  const { tenant, userId, agentId, requestId } = key;
  const [row] = await connections.read<NamedPrompt & object>(PROMPT, [tenant, userId, agentId ?? "", requestId]);
  return row === undefined ? null : keptRow(row);
}

/** A user's, oldest first. */
export async function readUser(connections: Connections, tenant: string, userId: UserId): Promise<KeptUsage[]> {
  const rows = await connections.read<NamedPrompt & object>(OF_USER, [tenant, userId]);
  return rows.map(keptRow);
}
