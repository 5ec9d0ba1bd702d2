import { html } from "htm/preact";
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { UsageRequests, UsageRequestsOptions, UsageRow } from "../client/index.js";
import { type Filter, filterForm } from "./filters.js";
import { ago, duration, moment, money, shortId, whole } from "./format.js";
import { CAUSES, causeChip, pieceBar, pieceLegend, rowPieces, rowShare } from "./prompt-bar.js";
import { service } from "./service.js";
import { type Column, conversationLink, empty, figuresTable, linkTo, loading, usePolling, userLink } from "./view.js";

const PAGE = 50;
const RELOAD_MS = 3_000;

/** The address of a request's own view. */
function requestLink({ userId, agentId, requestId }: UsageRow): string {
  return linkTo("request", { user_id: userId, agent_id: agentId, request_id: requestId });
}

function filterIn(query: URLSearchParams) {
  const named = (name: string) => query.get(name) || undefined;
  return {
    userId: named("user_id"),
    conversationId: named("conversation_id"),
    agentId: named("agent_id"),
    model: named("model"),
    cause: named("cause") as UsageRequestsOptions["cause"],
  };
}

function readPage(query: URLSearchParams, cursor: string | undefined, signal?: AbortSignal): Promise<UsageRequests> {
  return service.usageRequests({ ...filterIn(query), limit: PAGE, cursor }, { signal });
}

/** Answered prompts, newest first. Reloads until older ones are shown. */
export const requestsView = loading(
  (query, signal) => readPage(query, undefined, signal),
  ({ data, query, reload }) => {
    const [older, setOlder] = useState<UsageRequests | null>(null);
    const [isReload, setReload] = useState(true);
    usePolling(isReload ? RELOAD_MS : null, reload);
    const rows = [...data.requests, ...(older?.requests ?? [])];
    const { next } = older ?? data;
    const readOlder = async () => {
      setReload(false);
      const { requests, next: end } = await readPage(query, next ?? undefined);
      setOlder((now) => ({ requests: [...(now?.requests ?? []), ...requests], next: end }));
    };
    const filters = [
      { name: "user_id", title: "User" },
      { name: "conversation_id", title: "Conversation" },
      { name: "agent_id", title: "Agent" },
      { name: "model", title: "Model" },
      { name: "cause", title: "Cause of miss", options: [["", "any"], ...Object.entries(CAUSES)] },
    ] satisfies readonly Filter[];
    const pause = html`<div class="field">
      <button type="button" aria-pressed=${!isReload} disabled=${older !== null} onClick=${() => setReload(!isReload)}>Pause</button>
    </div>`;
    const keyOf = ({ id }: UsageRow) => id;
    return html`
      <h1>What was cached of each request?</h1>
      <section class="panel">
        ${filterForm("requests", query, filters, pause)}
        <p class="note" role="status">${rows.length} shown, ${isReload ? "read again every 3 seconds" : "paused"}.</p>
        ${
          rows.length === 0
            ? nothingHere(Object.values(filterIn(query)).some(Boolean))
            : figuresTable({ caption: "Requests, newest first", columns: COLUMNS, rows, keyOf })
        }
        ${next !== null && html`<div class="row"><button type="button" onClick=${readOlder}>Older requests</button></div>`}
        ${pieceLegend()}
      </section>`;
  },
);

const COLUMNS: readonly Column<UsageRow>[] = [
  {
    title: "When",
    isName: true,
    cell: (row) => html`<a href=${requestLink(row)} title="${row.requestId}, ${moment(row.at)}">
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
  { title: "Tokens", isNumber: true, cell: (row) => whole(row.promptTokens) },
  {
    title: "User, conversation",
    cell: (row) => html`${userLink(row)}
      ${row.agentId !== null && html`<span class="tag">${shortId(row.agentId, 16)}</span>`}
      <span class="sub">${row.conversationId === null ? "a single prompt" : conversationLink(row, row.conversationId)}</span>`,
  },
  { title: "First token", isNumber: true, cell: (row) => duration(row.firstTokenMs) },
  { title: "Saved", isNumber: true, cell: (row) => money(row.savedMoney) },
  {
    title: "Missed because",
    cell: ({ miss }) => (miss === null ? html`<span class="muted">–</span>` : causeChip(miss.cause)),
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
