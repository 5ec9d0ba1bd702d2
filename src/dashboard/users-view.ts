import { getJson } from "./api.js";
import { h } from "./dom.js";
import { type Column, figuresTable } from "./figures-table.js";
import { ago, counted, money, percent, shareOf, short, shortId, whole } from "./format.js";
import { conversationLink, empty, linkTo, panel, showing, userLink, type View } from "./view.js";
import type { WireConversations, WireUsers } from "./wire.js";

type Reuse = WireUsers["users"][number] | WireConversations["conversations"][number];

const ORDERS = [
  ["missed_tokens", "Most missed tokens"],
  ["cached_share", "Lowest cached share"],
  ["last_at", "Newest"],
] as const;

/** The users and conversations with the worst reuse. */
export const usersView: View = ({ root, query, signal }) =>
  showing(root, signal, async () => {
    const order = ORDERS.find(([name]) => name === query.get("order"))?.[0] ?? "missed_tokens";
    const [{ users }, { conversations }] = await Promise.all([
      getJson<WireUsers>("/usage/users", { order, limit: 30 }, signal),
      getJson<WireConversations>("/usage/conversations", { order, limit: 30 }, signal),
    ]);
    return [
      h(
        "div.row.spread",
        h("h1", "Users and conversations"),
        h(
          "nav.windows",
          { "aria-label": "Order" },
          ORDERS.map(([name, title]) =>
            h(
              "a.button",
              { href: linkTo(["users"], { order: name }), "aria-current": name === order ? "true" : null },
              title,
            ),
          ),
        ),
      ),
      panel(
        "Users",
        "Sums over all prompts that are kept: those of a month.",
        users.length === 0
          ? empty("No users yet")
          : figuresTable("Users by reuse", [userColumn, ...REUSE], users).element,
      ),
      panel(
        "Conversations",
        null,
        conversations.length === 0 ? empty("No conversations yet") : conversationTable(conversations),
      ),
    ];
  });

/** Conversations, with links to each. */
export function conversationTable(conversations: WireConversations["conversations"]): HTMLElement {
  return figuresTable("Conversations by reuse", [conversationColumn, ...REUSE], conversations).element;
}

const userColumn: Column<WireUsers["users"][number]> = {
  title: "User",
  isName: true,
  cell: (row) => [
    userLink(row, 32),
    row.agent_id === null ? null : h("span.tag", shortId(row.agent_id, 20)),
    h("span.sub", counted(row.conversations, "conversation")),
  ],
};

const conversationColumn: Column<WireConversations["conversations"][number]> = {
  title: "Conversation",
  isName: true,
  cell: (row) => [
    conversationLink(row, row.conversation_id, 32),
    h("span.sub", shortId(row.user_id, 32), row.agent_id === null ? null : `, ${shortId(row.agent_id, 20)}`),
  ],
};

/** Columns of sums over prompts. */
const REUSE: readonly Column<Reuse>[] = [
  { title: "Prompts", isNumber: true, cell: ({ prompts }) => whole(prompts) },
  { title: "Prompt tokens", isNumber: true, cell: ({ prompt_tokens: tokens }) => short(tokens) },
  {
    title: "Missed",
    isNumber: true,
    cell: ({ missed_tokens: missed, prompt_tokens: all }) => [
      h("strong", short(missed)),
      h("span.sub", percent(shareOf(missed, all))),
    ],
  },
  { title: "Computed", isNumber: true, cell: ({ uncached_tokens: tokens }) => short(tokens) },
  { title: "Cached share", isNumber: true, cell: ({ cached_share: share }) => percent(share) },
  { title: "Expected", isNumber: true, cell: ({ expected_share: share }) => percent(share) },
  { title: "Saved", isNumber: true, cell: ({ saved_money: saved }) => money(saved) },
  { title: "Last", isNumber: true, cell: ({ last_at: at }) => ago(at, Date.now()) },
];
