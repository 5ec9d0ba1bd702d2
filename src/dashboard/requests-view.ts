import { html } from "htm/preact";
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { WireRow, WireRows } from "./api.js";
import { getJson } from "./api.js";
import { type Filter, filterForm } from "./filters.js";
import { ago, duration, moment, money, shortId, whole } from "./format.js";
import { followOnly, onUsage } from "./live.js";
import { CAUSES, causeChip, pieceBar, pieceLegend, rowPieces, rowShare } from "./prompt-bar.js";
import { type Column, conversationLink, empty, figuresTable, linkTo, loading, userLink } from "./view.js";

const PAGE = 50;
/** Rows that stay in the page while prompts come. */
const MOST_ROWS = 500;
/** Ages are written again this often. */
const AGES_MS = 10_000;

/** The address of a request's own view. */
export function requestLink(of: Pick<WireRow, "user_id" | "agent_id" | "request_id">): string {
  return linkTo("request", { user_id: of.user_id, agent_id: of.agent_id, request_id: of.request_id });
}

const FILTERED = ["user_id", "conversation_id", "agent_id", "model", "cause", "engine", "layout"] as const;

function filterIn(query: URLSearchParams) {
  return Object.fromEntries(FILTERED.map((name) => [name, query.get(name)]));
}

function readPage(query: URLSearchParams, cursor: string | null, signal?: AbortSignal): Promise<WireRows> {
  return getJson<WireRows>("/usage/requests", { ...filterIn(query), limit: PAGE, cursor }, signal);
}

/** The rows that are shown, newest first. */
interface Shown {
  readonly rows: readonly WireRow[];
  /** Rows that came while the page was open. */
  readonly arrived: ReadonlySet<number>;
  /** Where older ones begin; null: there are none. */
  readonly next: string | null;
}

/** With rows that came: new ones, and those that are shown already, as they are now. */
function withNews({ rows, arrived, next }: Shown, news: readonly WireRow[]): Shown {
  const known = new Map(rows.map((row) => [row.id, row]));
  // One that is older than all that are shown comes with them, when they are asked for.
  const oldest = next === null ? 0 : (rows.at(-1)?.id ?? 0);
  const taken = news.filter(({ id }) => id > oldest || known.has(id));
  const added = taken.filter(({ id }) => !known.has(id)).map(({ id }) => id);
  for (const row of taken) known.set(row.id, row);
  const all = [...known.values()].sort((a, b) => b.id - a.id);
  return { rows: all.slice(0, MOST_ROWS), arrived: new Set([...arrived, ...added]), next };
}

/** Answered prompts, newest first, as they come. */
export const requestsView = loading(
  (query, signal) => readPage(query, null, signal),
  ({ data, query }) => {
    const [shown, setShown] = useState<Shown>({ rows: data.requests, arrived: new Set(), next: data.next });
    const [isLive, setLive] = useState(true);
    const [leftOut, setLeftOut] = useState(0);
    const [, writeAges] = useState(0);
    const { rows, arrived, next } = shown;
    const take = (news: readonly WireRow[]) => setShown((now) => withNews(now, news));
    useEffect(() => {
      if (!isLive) return;
      const ending = new AbortController();
      const catchUp = async () => take((await readPage(query, null, ending.signal)).requests);
      onUsage(ending.signal, (event) => {
        if (event.kind === "missed") void catchUp().catch(() => {});
        if (event.kind !== "requests") return;
        setLeftOut((sum) => sum + event.more);
        take(event.rows);
      });
      // It begins with what was missed.
      followOnly({ ...filterIn(query), limit: PAGE }, ending.signal);
      const ages = setInterval(() => writeAges(Date.now()), AGES_MS);
      return () => {
        clearInterval(ages);
        ending.abort();
      };
    }, [isLive]);
    const readOlder = async () => {
      const { requests, next: end } = await readPage(query, next);
      setShown((now) => {
        const known = new Set(now.rows.map(({ id }) => id));
        return { ...now, rows: [...now.rows, ...requests.filter(({ id }) => !known.has(id))], next: end };
      });
    };
    const filters = [
      { name: "user_id", title: "User" },
      { name: "conversation_id", title: "Conversation" },
      { name: "agent_id", title: "Agent" },
      { name: "model", title: "Model" },
      { name: "cause", title: "Cause of miss", options: [["", "any"], ...Object.entries(CAUSES)] },
    ] satisfies readonly Filter[];
    const pause = html`<div class="field">
      <button type="button" aria-pressed=${!isLive} onClick=${() => setLive(!isLive)}>Pause</button>
    </div>`;
    const besides = leftOut > 0 && ` ${whole(leftOut)} more came faster than they can be shown.`;
    const keyOf = ({ id }: WireRow) => id;
    const classOf = ({ id }: WireRow) => (arrived.has(id) ? "arrived" : undefined);
    return html`
      <h1>What was cached of each request?</h1>
      <section class="panel">
        ${filterForm("requests", query, filters, pause)}
        <p class="note" role="status">${rows.length} shown${isLive ? ", new ones as they come" : ", paused"}.${besides}</p>
        ${
          rows.length === 0
            ? nothingHere(Object.values(filterIn(query)).some(Boolean))
            : figuresTable({ caption: "Requests, newest first", columns: COLUMNS, rows, keyOf, classOf })
        }
        ${next !== null && html`<div class="row"><button type="button" onClick=${readOlder}>Older requests</button></div>`}
        ${pieceLegend(["cached", "expected", "again", "new"])}
      </section>`;
  },
);

const COLUMNS: readonly Column<WireRow>[] = [
  {
    title: "When",
    isName: true,
    cell: (row) => html`<a href=${requestLink(row)} title="${row.request_id}, ${moment(row.at)}">
      <time datetime=${new Date(row.at).toISOString()}>${ago(row.at, Date.now())}</time>
    </a>`,
  },
  {
    title: "Cached",
    isNumber: true,
    cell: (row) => {
      const { text, isExpected } = rowShare(row);
      return isExpected ? html`<span class="muted" title="expected; the engine did not report">~${text}</span>` : text;
    },
  },
  { title: "Prompt", cell: (row) => pieceBar(rowPieces(row)) },
  { title: "Tokens", isNumber: true, cell: (row) => whole(row.prompt_tokens) },
  {
    title: "User, conversation",
    cell: (row) => html`${userLink(row)}
      ${row.agent_id !== null && html`<span class="tag">${shortId(row.agent_id, 16)}</span>`}
      <span class="sub">${row.conversation_id === null ? "a single prompt" : conversationLink(row, row.conversation_id)}</span>`,
  },
  { title: "First token", isNumber: true, cell: (row) => duration(row.first_token_ms) },
  {
    title: "Saved",
    isNumber: true,
    isKnown: ({ saved_money: saved }) => saved !== null,
    cell: (row) => money(row.saved_money),
  },
  {
    title: "Missed because",
    cell: ({ causes }) =>
      causes.length === 0
        ? html`<span class="muted">–</span>`
        : causes.slice(0, 2).map(({ cause }) => causeChip(cause)),
  },
  {
    title: "Model",
    cell: ({ model, policy, retention }) =>
      html`<span class="id">${shortId(model, 22)}</span><span class="sub">${policy}, ${retention}</span>`,
  },
];

function nothingHere(isFiltered: boolean): VNode {
  const sample = html`<a href=${linkTo("try")}>Try it with a sample</a>`;
  return isFiltered
    ? empty("No request matches", html`<p><a href=${linkTo("requests")}>Show all requests</a></p>`)
    : empty("No requests yet", html`<p>New ones appear here by themselves. ${sample}.</p>`);
}
