import { html } from "htm/preact";
import type { VNode } from "preact";
import type { WireConversations, WireUsers } from "./api.js";
import { getJson } from "./api.js";
import { choices, chosen } from "./filters.js";
import { ago, counted, money, percent, shareOf, short, shortId, whole } from "./format.js";
import { type Column, conversationLink, empty, figuresTable, loading, panel, userLink } from "./view.js";

type Reuse = WireUsers["users"][number] | WireConversations["conversations"][number];

const ORDERS = [
  ["missed_tokens", "Most missed tokens"],
  ["cached_share", "Lowest cached share"],
  ["last_at", "Newest"],
] as const;

/** What each order answers. */
const ASKED: Readonly<Record<(typeof ORDERS)[number][0], string>> = {
  missed_tokens: "Whose prompts miss most?",
  cached_share: "Whose prompts hit least?",
  last_at: "Who came last?",
};

/** The users and conversations with the worst reuse. */
export const usersView = loading(
  (query, signal) => {
    const asked = { order: chosen(query, "order", ORDERS), limit: 30 };
    return Promise.all([
      getJson<WireUsers>("/usage/users", asked, signal),
      getJson<WireConversations>("/usage/conversations", asked, signal),
    ]);
  },
  ({ data: [{ users }, { conversations }], query }) => html`
    <div class="row spread"><h1>${ASKED[chosen(query, "order", ORDERS)]}</h1>${choices("Order", "users", query, "order", ORDERS)}</div>
    ${panel(
      "Users",
      "Sums over all prompts that are kept: those of a month.",
      users.length === 0
        ? empty("No users yet")
        : figuresTable({ caption: "Users by reuse", columns: [userColumn, ...REUSE], rows: users }),
    )}
    ${conversationsPanel(conversations, "No conversations yet")}`,
);

/** Conversations, with links to each. @param none said where there are none */
export function conversationsPanel(rows: WireConversations["conversations"], none: string): VNode {
  const columns = [conversationColumn, ...REUSE];
  const table = () => figuresTable({ caption: "Conversations by reuse", columns, rows });
  return panel("Conversations", null, rows.length === 0 ? empty(none) : table());
}

const userColumn: Column<WireUsers["users"][number]> = {
  title: "User",
  isName: true,
  cell: (row) => html`${userLink(row, 32)}
    ${row.agent_id !== null && html`<span class="tag">${shortId(row.agent_id, 20)}</span>`}
    <span class="sub">${counted(row.conversations, "conversation")}</span>`,
};

const conversationColumn: Column<WireConversations["conversations"][number]> = {
  title: "Conversation",
  isName: true,
  cell: (row) => html`${conversationLink(row, row.conversation_id, 32)}
    <span class="sub">${shortId(row.user_id, 32)}${row.agent_id !== null && `, ${shortId(row.agent_id, 20)}`}</span>`,
};

/** Columns of sums over prompts. */
const REUSE: readonly Column<Reuse>[] = [
  {
    title: "Missed",
    isNumber: true,
    cell: ({ missed_tokens: missed, prompt_tokens: all }) =>
      html`<strong>${short(missed)}</strong><span class="sub">${percent(shareOf(missed, all))}</span>`,
  },
  {
    title: "Cached share",
    isNumber: true,
    cell: ({ cached_share: share, prompts, reported_prompts: reported }) =>
      html`${percent(share)}${reported < prompts && html`<span class="sub">${reported === 0 ? "not reported" : `${whole(reported)} reported`}</span>`}`,
  },
  { title: "Expected", isNumber: true, cell: ({ expected_share: share }) => percent(share) },
  { title: "Prompts", isNumber: true, cell: ({ prompts }) => whole(prompts) },
  { title: "Prompt tokens", isNumber: true, cell: ({ prompt_tokens: tokens }) => short(tokens) },
  { title: "Computed", isNumber: true, cell: ({ uncached_tokens: tokens }) => short(tokens) },
  {
    title: "Saved",
    isNumber: true,
    isKnown: ({ saved_money: saved }) => saved !== null,
    cell: ({ saved_money: saved }) => money(saved),
  },
  { title: "Last", isNumber: true, cell: ({ last_at: at }) => ago(at, Date.now()) },
];
