import { getJson } from "./api.js";
import { h } from "./dom.js";
import { ago, counted, shortId, whole } from "./format.js";
import { conversationTable } from "./users-view.js";
import { empty, failure, linkTo, panel, showing, type View } from "./view.js";
import type { WireConversations, WireIndex } from "./wire.js";

type Node = WireIndex["nodes"][number];
type NodeLabel = Node["labels"][number];

/** Most nodes that are drawn. */
const MOST_NODES = 400;
/** Levels of the tree that are open at first. */
const OPEN_LEVELS = 3;

/** A user's context index as a tree, and their conversations. */
export const userView: View = ({ root, query, signal }) =>
  showing(root, signal, async () => {
    const [user, agent] = [query.get("user_id"), query.get("agent_id")];
    if (user === null) return [failure(new Error("The address names no user."))];
    const [index, { conversations }] = await Promise.all([
      getJson<WireIndex>("/user/index", { user_id: user, agent_id: agent, limit: MOST_NODES }, signal),
      getJson<WireConversations>("/usage/conversations", { user_id: user, agent_id: agent, limit: 50 }, signal),
    ]);
    const { counts, nodes } = index;
    const most = Math.max(1, ...nodes.map(({ total_tokens: tokens }) => tokens));
    return [
      h("p.crumbs", h("a", { href: linkTo(["users"]) }, "Users"), " / "),
      h(
        "h1",
        "User ",
        h("span.id", shortId(user, 60)),
        agent === null ? null : h("span.tag", `agent ${shortId(agent)}`),
      ),
      h(
        "p.note",
        `${counted(counts.requests, "request")}, ${counted(counts.conversations, "conversation")}, ${whole(counts.blocks)} memories that were sent. `,
        h("a", { href: linkTo(["requests"], { user_id: user, agent_id: agent }) }, "Their requests"),
      ),
      panel(
        "Context index",
        "The prefixes that this user's prompts had: instructions and history, then memories; each branch goes on where its parent ends. A full dot: the engine's cache should still hold it.",
        nodes.length === 0 ? empty("No prefixes are known") : tree(nodes, most),
        nodes.length < counts.nodes
          ? h("p.note", `${whole(nodes.length)} of ${whole(counts.nodes)} prefixes are drawn.`)
          : null,
      ),
      panel(
        "Conversations",
        null,
        conversations.length === 0 ? empty("No conversations") : conversationTable(conversations),
      ),
    ];
  });

/** A node and what continues it. */
interface Branch {
  readonly node: Node;
  readonly children: Branch[];
}

/** Branches by their search paths; parents come before children. */
function branchesOf(nodes: readonly Node[]): readonly Branch[] {
  const roots: Branch[] = [];
  // Each anchor's root has an empty path: its nodes follow it.
  let byPath = new Map<string, Branch>();
  for (const node of nodes) {
    const branch: Branch = { node, children: [] };
    const path = node.search_path;
    if (path.length === 0) byPath = new Map();
    byPath.set(path.join("."), branch);
    const parent = path.length === 0 ? undefined : byPath.get(path.slice(0, -1).join("."));
    if (parent === undefined) roots.push(branch);
    else parent.children.push(branch);
  }
  return roots;
}

function tree(nodes: readonly Node[], most: number): HTMLElement {
  const list = (branches: readonly Branch[], level: number, given: number): HTMLElement =>
    h(
      "ul",
      { class: level === 0 ? "tree" : "" },
      branches.map((branch) => item(branch, level, given)),
    );
  const item = ({ node, children }: Branch, level: number, given: number) => {
    const line = describe(node, node.labels.slice(given), most);
    if (children.length === 0) return h("li", line);
    return h(
      "li",
      h("details", { open: level < OPEN_LEVELS }, h("summary", line), list(children, level + 1, node.labels.length)),
    );
  };
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Context index" }, list(branchesOf(nodes), 0, 0));
}

/** What is shown of a node: what it adds, how large the prefix is, how often and when it was used. */
function describe(node: Node, added: readonly NodeLabel[], most: number): HTMLElement {
  const {
    tokens,
    total_tokens: total,
    uses,
    used_at: at,
    is_expected: isExpected,
    live_requests: live,
    search_path: path,
  } = node;
  return h(
    "span",
    { class: isExpected ? "node is-expected" : "node" },
    h("span.dot", { role: "img", "aria-label": isExpected ? "expected to be cached" : "not expected to be cached" }),
    h("span.node-name", path.length === 0 ? "instructions and history" : namesOf(added)),
    h("span.node-size", { "aria-hidden": true }, h("span", { css: { width: `${(total / most) * 100}%` } })),
    h(
      "span.node-note",
      `${whole(total)} tokens, its own ${whole(tokens)}; used ${uses === 1 ? "once" : `${whole(uses)} times`}${at === 0 ? "" : `, ${ago(at, Date.now())}`}${live === 0 ? "" : `; ${counted(live, "request")} ended here`}`,
    ),
  );
}

/** The labels that a node adds, the first and last of many. */
function namesOf(labels: readonly NodeLabel[]): string {
  const shown = labels.map((label) => `[${label}]`);
  return shown.length <= 8 ? shown.join(" ") : `${shown.slice(0, 5).join(" ")} … ${shown.slice(-2).join(" ")}`;
}
