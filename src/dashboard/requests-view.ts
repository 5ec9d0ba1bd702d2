import { getJson } from "./api.js";
import { CAUSES, causeChip } from "./causes.js";
import { h } from "./dom.js";
import { type Column, figuresTable } from "./figures-table.js";
import { filterForm } from "./filters.js";
import { ago, duration, moment, money, shortId, whole } from "./format.js";
import { followOnly, onUsage } from "./live.js";
import { pieceBar, pieceLegend, rowPieces, rowShare } from "./prompt-bar.js";
import { conversationLink, empty, linkTo, showing, userLink, type View } from "./view.js";
import type { WireRow, WireRows } from "./wire.js";

const PAGE = 50;
/** Rows that stay in the page while prompts come. */
const MOST_ROWS = 500;
/** Ages are written again this often. */
const AGES_MS = 10_000;

/** The address of a request's own view. */
export function requestLink({
  user_id: user,
  agent_id: agent,
  request_id: id,
}: Pick<WireRow, "user_id" | "agent_id" | "request_id">): string {
  return linkTo(["request"], { user_id: user, agent_id: agent, request_id: id });
}

/** Answered prompts, newest first, as they come. */
export const requestsView: View = async ({ root, query, signal }) => {
  const filter = Object.fromEntries(FILTERED.map((name) => [name, query.get(name)]));
  const rows = new Map<number, HTMLTableRowElement>();
  const { element, body, rowOf } = figuresTable("Requests, newest first", COLUMNS, []);
  const status = h("p.note", { role: "status" });
  const nothing = h("div");
  const more = h("button", { type: "button" }, "Older requests");
  let next: string | null = null;
  let isLive = true;
  let leftOut = 0;

  const says = () => {
    const besides = leftOut === 0 ? "" : ` ${whole(leftOut)} more came faster than they can be shown.`;
    status.replaceChildren(`${rows.size} shown${isLive ? ", new ones as they come" : ", paused"}.${besides}`);
    nothing.replaceChildren(...(rows.size === 0 ? [nothingHere(Object.values(filter).some(Boolean))] : []));
    element.hidden = rows.size === 0;
    more.hidden = next === null;
  };
  const read = async () => {
    const page = await getJson<WireRows>("/usage/requests", { ...filter, limit: PAGE, cursor: next }, signal);
    for (const row of page.requests) {
      if (rows.has(row.id)) continue;
      const made = rowOf(row);
      rows.set(row.id, made);
      made.dataset["id"] = String(row.id);
      body.append(made);
    }
    next = page.next;
    says();
  };
  more.addEventListener("click", () => void read());
  const pause = h("button", { type: "button", "aria-pressed": "false" }, "Pause");
  pause.addEventListener("click", () => {
    isLive = !isLive;
    if (isLive) void catchUp().catch(() => {});
    pause.setAttribute("aria-pressed", String(!isLive));
    says();
  });

  const take = (row: WireRow) => {
    const known = rows.get(row.id);
    const behind = known ?? rowBehind(body, row.id);
    // One that is older than all that are shown comes with them, when they are asked for.
    if (behind === null && next !== null) return;
    const made = rowOf(row);
    rows.set(row.id, made);
    made.dataset["id"] = String(row.id);
    if (known !== undefined) return known.replaceWith(made);
    made.classList.add("arrived");
    body.insertBefore(made, behind);
    for (let last = body.rows[MOST_ROWS]; last !== undefined; last = body.rows[MOST_ROWS]) {
      rows.delete(Number(last.dataset["id"]));
      last.remove();
    }
  };
  const takeAll = (of: readonly WireRow[]) => {
    for (const row of of) take(row);
    says();
  };
  const catchUp = async () => {
    const page = await getJson<WireRows>("/usage/requests", { ...filter, limit: PAGE }, signal);
    takeAll(page.requests.toReversed());
  };
  onUsage(signal, (event) => {
    if (!isLive) return;
    if (event.kind === "missed") void catchUp().catch(() => {});
    if (event.kind !== "requests") return;
    leftOut += event.more;
    takeAll(event.rows);
  });
  followOnly({ ...filter, limit: PAGE }, signal);
  const ages = setInterval(() => {
    for (const time of body.querySelectorAll("time")) time.textContent = ago(Date.parse(time.dateTime), Date.now());
  }, AGES_MS);
  signal.addEventListener("abort", () => clearInterval(ages));

  await showing(root, signal, async () => {
    await read();
    return [
      h("h1", "Requests"),
      h(
        "section.panel",
        filterForm(
          ["requests"],
          query,
          [
            { name: "user_id", title: "User" },
            { name: "conversation_id", title: "Conversation" },
            { name: "agent_id", title: "Agent" },
            { name: "model", title: "Model" },
            { name: "cause", title: "Cause of miss", options: [["", "any"], ...Object.entries(CAUSES)] },
          ],
          h("div.field", pause),
        ),
        status,
        nothing,
        element,
        h("div.row", more),
        pieceLegend(["cached", "expected", "again", "new"]),
      ),
    ];
  });
};

const FILTERED = ["user_id", "conversation_id", "agent_id", "model", "cause", "engine", "layout"] as const;

/** The first row, from the top, that is older than a prompt; null: none is. */
function rowBehind(body: HTMLTableSectionElement, id: number): HTMLTableRowElement | null {
  for (const row of body.rows) if (Number(row.dataset["id"]) < id) return row;
  return null;
}

/** The columns of a table of prompts. */
const COLUMNS: readonly Column<WireRow>[] = [
  {
    title: "When",
    isName: true,
    cell: (row) =>
      h(
        "a",
        { href: requestLink(row), title: `${row.request_id}, ${moment(row.at)}` },
        h("time", { datetime: new Date(row.at).toISOString() }, ago(row.at, Date.now())),
      ),
  },
  {
    title: "User, conversation",
    cell: (row) => [
      userLink(row),
      row.agent_id === null ? null : h("span.tag", shortId(row.agent_id, 16)),
      h("span.sub", row.conversation_id === null ? "a single prompt" : conversationLink(row, row.conversation_id)),
    ],
  },
  {
    title: "Model",
    cell: ({ model, policy, retention }) => [
      h("span.id", shortId(model, 22)),
      h("span.sub", `${policy}, ${retention}`),
    ],
  },
  { title: "Prompt", cell: (row) => pieceBar(rowPieces(row)) },
  { title: "Tokens", isNumber: true, cell: (row) => whole(row.prompt_tokens) },
  {
    title: "Cached",
    isNumber: true,
    cell: (row) => {
      const { text, isExpected } = rowShare(row);
      return isExpected ? h("span.muted", { title: "expected; the engine did not report" }, `~${text}`) : text;
    },
  },
  { title: "First token", isNumber: true, cell: (row) => duration(row.first_token_ms) },
  { title: "Saved", isNumber: true, cell: (row) => money(row.saved_money) },
  {
    title: "Missed because",
    cell: ({ causes }) =>
      causes.length === 0 ? h("span.muted", "–") : causes.slice(0, 2).map(({ cause }) => causeChip(cause)),
  },
];

function nothingHere(isFiltered: boolean): HTMLElement {
  return isFiltered
    ? empty("No request matches", h("p", h("a", { href: linkTo(["requests"]) }, "Show all requests")))
    : empty(
        "No requests yet",
        h("p", "New ones appear here by themselves. ", h("a", { href: linkTo(["try"]) }, "Try it with a sample"), "."),
      );
}
