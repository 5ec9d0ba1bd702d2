import { html } from "htm/preact";
import type { VNode } from "preact";
import type { WireConversations, WireIndex } from "./api.js";
import { getJson } from "./api.js";
import { ago, counted, shortId, whole } from "./format.js";
import { conversationsPanel } from "./users-view.js";
import { empty, linkTo, loading, panel, scrolling } from "./view.js";

type Node = WireIndex["nodes"][number];
type NodeLabel = Node["labels"][number];

/** Most nodes that are drawn. */
const MOST_NODES = 400;
/** Levels of the tree that are open at first. */
const OPEN_LEVELS = 3;

/** A user's context index as a tree, and their conversations. */
export const userView = loading(
  async (query, signal) => {
    const named = { user_id: query.get("user_id"), agent_id: query.get("agent_id") };
    if (named.user_id === null) throw new Error("The address names no user.");
    return Promise.all([
      getJson<WireIndex>("/user/index", { ...named, limit: MOST_NODES }, signal),
      getJson<WireConversations>("/usage/conversations", { ...named, limit: 50 }, signal),
    ]);
  },
  ({ data: [{ counts, nodes }, { conversations }], query }) => {
    const [user, agent] = [query.get("user_id") ?? "", query.get("agent_id")];
    const most = Math.max(1, ...nodes.map(({ total_tokens: tokens }) => tokens));
    const all = html`<a href=${linkTo("requests", { user_id: user, agent_id: agent })}>Their requests</a>`;
    return html`
      <p class="crumbs"><a href=${linkTo("users")}>Users</a> / </p>
      <h1>
        What should be cached of user <span class="id">${shortId(user, 60)}</span>?${agent !== null && html`<span class="tag">agent ${shortId(agent)}</span>`}
      </h1>
      <p class="note">
        ${counted(counts.requests, "request")}, ${counted(counts.conversations, "conversation")}, ${whole(counts.blocks)} memories that were sent. ${all}
      </p>
      ${panel(
        "Context index",
        "The prefixes that this user's prompts had: instructions and history, then memories; each branch goes on where its parent ends. A full dot: the engine's cache should still hold it.",
        nodes.length === 0
          ? empty("No prefixes are known")
          : scrolling("Context index", branches(branchesOf(nodes), 0, 0, most)),
        nodes.length < counts.nodes &&
          html`<p class="note">${whole(nodes.length)} of ${whole(counts.nodes)} prefixes are drawn.</p>`,
      )}
      ${conversationsPanel(conversations, "No conversations")}`;
  },
);

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
    (parent?.children ?? roots).push(branch);
  }
  return roots;
}

/** @param given how many labels the parent has */
function branches(of: readonly Branch[], level: number, given: number, most: number): VNode {
  const items = of.map(({ node, children }) => {
    const line = nodeLine(node, node.labels.slice(given), most);
    if (children.length === 0) return html`<li>${line}</li>`;
    const below = branches(children, level + 1, node.labels.length, most);
    return html`<li><details open=${level < OPEN_LEVELS}><summary>${line}</summary>${below}</details></li>`;
  });
  return html`<ul class=${level === 0 && "tree"}>${items}</ul>`;
}

/** What is shown of a node: what it adds, how large the prefix is, how often and when it was used. */
function nodeLine(node: Node, added: readonly NodeLabel[], most: number): VNode {
  const { total_tokens: total, uses, used_at: at, is_expected: isExpected, live_requests: live } = node;
  const used = `used ${uses === 1 ? "once" : `${whole(uses)} times`}${at === 0 ? "" : `, ${ago(at, Date.now())}`}`;
  const ended = live === 0 ? "" : `; ${counted(live, "request")} ended here`;
  return html`<span class=${isExpected ? "node is-expected" : "node"}>
    <span class="dot" role="img" aria-label=${isExpected ? "expected to be cached" : "not expected to be cached"}></span>
    <span class="node-name">${node.search_path.length === 0 ? "instructions and history" : namesOf(added)}</span>
    <span class="node-size" aria-hidden="true"><span style=${{ width: `${(total / most) * 100}%` }}></span></span>
    <span class="node-note">${whole(total)} tokens, its own ${whole(node.tokens)}; ${used}${ended}</span>
  </span>`;
}

/** The labels that a node adds, the first and last of many. */
function namesOf(labels: readonly NodeLabel[]): string {
  const shown = labels.map((label) => `[${label}]`);
  return shown.length <= 8 ? shown.join(" ") : `${shown.slice(0, 5).join(" ")} … ${shown.slice(-2).join(" ")}`;
}
