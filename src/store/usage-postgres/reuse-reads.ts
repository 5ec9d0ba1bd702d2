import type { AgentId, ConversationId, UserId } from "../../core/index.js";
import type { ConversationReuse, ReuseOrder, ReuseSums, UsageFilter, UsageKey, UserReuse } from "../api/usage-log.js";
import type { Connections, NamedStatement } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";
import { REUSE_NAMES, SUM_COLUMNS } from "../usage/usage-sums.js";
import { agentIdOf } from "./prompt-rows.js";

const SUMS = [...REUSE_NAMES.map((name) => `r.${SUM_COLUMNS[name]} as "${name}"`), `r.last_at as "lastAt"`].join();

/** Which rows, and which of them come first. */
const ORDERS: Readonly<Record<ReuseOrder, string>> = {
  missed_tokens: "order by r.missed_tokens desc",
  cached_share: "and r.share is not null order by r.share",
  last_at: "order by r.last_at desc",
};

function perOrder(make: (order: ReuseOrder) => NamedStatement): Readonly<Record<ReuseOrder, NamedStatement>> {
  return { missed_tokens: make("missed_tokens"), cached_share: make("cached_share"), last_at: make("last_at") };
}

const USERS = perOrder((order) => ({
  name: `usage_users_${order}`,
  text: `select r.name as "userId", r.agent, r.conversations, ${SUMS} from ${SCHEMA}.usage_users r
    where r.tenant = $1 ${ORDERS[order]} limit $2`,
}));
const CONVERSATION_COLUMNS = `u.name as "userId", u.agent, r.name as "conversationId", ${SUMS}`;
const CONVERSATIONS = perOrder((order) => ({
  name: `usage_conversations_${order}`,
  text: `select ${CONVERSATION_COLUMNS} from ${SCHEMA}.usage_conversations r join ${SCHEMA}.usage_users u on u.id = r.user_id
    where r.tenant = $1 ${ORDERS[order]} limit $2`,
}));
const CONVERSATIONS_OF = perOrder((order) => ({
  name: `usage_conversations_of_${order}`,
  text: `select ${CONVERSATION_COLUMNS} from ${SCHEMA}.usage_users u join ${SCHEMA}.usage_conversations r on r.user_id = u.id
    where u.tenant = $1 and u.name = $3 and ($4::text is null or u.agent = $4) ${ORDERS[order]} limit $2`,
}));
const CONVERSATION: NamedStatement = {
  name: "usage_conversation",
  text: `select ${CONVERSATION_COLUMNS} from ${SCHEMA}.usage_users u join ${SCHEMA}.usage_conversations r on r.user_id = u.id
    where u.tenant = $1 and u.name = $2 and u.agent = $3 and r.name = $4`,
};

type ReuseRow = ReuseSums & { readonly userId: UserId; readonly agent: string };
type ConversationRow = ReuseRow & { readonly conversationId: ConversationId };

function withAgent<T extends ReuseRow>({ agent, ...row }: T): Omit<T, "agent"> & { readonly agentId: AgentId | null } {
  return { ...row, agentId: agentIdOf(agent) };
}

/** See `UsageLog.users`. Rejects with the store's faults, as all of these. */
export async function readUsers(
  connections: Connections,
  tenant: string,
  order: ReuseOrder,
  limit: number,
): Promise<readonly UserReuse[]> {
  type UserRow = ReuseRow & { readonly conversations: number };
  return (await connections.read<UserRow & object>(USERS[order], [tenant, limit])).map(withAgent);
}

export async function readConversations(
  connections: Connections,
  { tenant, userId, agentId }: Pick<UsageFilter, "tenant" | "userId" | "agentId">,
  order: ReuseOrder,
  limit: number,
): Promise<readonly ConversationReuse[]> {
  const agent = agentId === undefined ? null : (agentId ?? "");
  const rows = await (userId === undefined
    ? connections.read<ConversationRow & object>(CONVERSATIONS[order], [tenant, limit])
    : connections.read<ConversationRow & object>(CONVERSATIONS_OF[order], [tenant, limit, userId, agent]));
  return rows.map(withAgent);
}

/** Null: nothing is kept of it. */
export async function readConversation(
  connections: Connections,
  of: Omit<UsageKey, "requestId"> & { readonly conversationId: ConversationId },
): Promise<ConversationReuse | null> {
  const { tenant, userId, agentId, conversationId } = of;
  const values = [tenant, userId, agentId ?? "", conversationId];
  const [row] = await connections.read<ConversationRow & object>(CONVERSATION, values);
  return row === undefined ? null : withAgent(row);
}
