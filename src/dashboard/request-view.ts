import { html } from "htm/preact";
import type { ComponentChildren, VNode } from "preact";
import type { WireBar, WireRequest, WireRow } from "./api.js";
import { getJson } from "./api.js";
import { counted, duration, moment, money, percent, shortId, whole } from "./format.js";
import { causeChip, coloured, PIECES, type Piece, pieceBar, pieceLegend, rowShare } from "./prompt-bar.js";
import { conversationLink, empty, linkTo, loading, panel, userLink } from "./view.js";

type Bars = readonly WireBar[];

/** Of pieces that both prompts have, so many are shown before the first difference; more than a few others are folded. */
const SHOWN_BEFORE = 3;
const FOLDED_FROM = 8;

/** How a piece is painted: of the earlier prompt, only what this one shares with it matters. */
type Painted = (bar: WireBar) => Piece["kind"];
const asItWas: Painted = ({ state }) => state;
const asShared: Painted = ({ is_shared: isShared }) => (isShared ? "same" : "other");

function namedIn(query: URLSearchParams) {
  const [user, agent, id] = [query.get("user_id"), query.get("agent_id"), query.get("request_id")];
  if (user === null || id === null) throw new Error("The address names no request.");
  return { user_id: user, agent_id: agent, request_id: id };
}

/** One prompt as bars, beside the prompt that it should have continued. */
export const requestView = loading(
  async (query, signal) => getJson<WireRequest>("/usage/request", namedIn(query), signal),
  ({ data: { request, bars, nearest, difference, explanation, has_text: hasText }, query }) => {
    const named = namedIn(query);
    const most = Math.max(1, tokensOf(bars), tokensOf(nearest?.bars ?? []));
    const earlier = nearest?.request_id ?? null;
    const here = { bars, painted: asItWas, difference: difference?.here ?? null };
    const there = { bars: nearest?.bars ?? [], painted: asShared, difference: difference?.there ?? null };
    const isOther = earlier !== null && earlier !== named.request_id;
    const other = linkTo("request", { ...named, request_id: earlier });
    const opened = isOther && html`<a class="tag" href=${other}>open it</a>`;
    const kinds = ["cached", "expected", "carried", "annotation", "again", "new", "same", "other"] as const;
    return html`
      <p class="crumbs"><a href=${linkTo("requests")}>Requests</a> / </p>
      <h1>Why did request <span class="id">${shortId(named.request_id, 40)}</span> hit as far as it did?</h1>
      ${request === null ? html`<p class="note">Its figures are no longer kept; the prompt is.</p>` : figures(request)}
      ${panel(
        "In words",
        null,
        html`<ul class="words">${explanation.explanation.map((sentence) => html`<li>${sentence}</li>`)}</ul>`,
      )}
      ${panel(
        nearest === null ? "The prompt" : "The prompt, and the one that it should have continued",
        "As wide as their tokens. The line marks where the two first differ.",
        overview("This prompt", here, most),
        nearest === null
          ? html`<p class="note">There is no earlier prompt that begins like it.</p>`
          : overview(`Earlier prompt ${earlier === null ? "" : shortId(earlier)}`, there, most),
        pieceLegend(nearest === null ? kinds.slice(0, -2) : kinds),
      )}
      ${panel(
        "Piece by piece",
        hasText
          ? "Texts are shown because MEMPREFIX_DASHBOARD_TEXT is on."
          : "Texts are not shown: the operator can let them be with MEMPREFIX_DASHBOARD_TEXT.",
        html`<div class="halves">
          ${lane("This prompt", here)}
          ${nearest === null ? empty("No earlier prompt") : lane("The earlier prompt", there, opened)}
        </div>`,
      )}`;
  },
);

function figures(row: WireRow): VNode {
  const { text, isExpected } = rowShare(row);
  const item = (name: string, value: ComponentChildren) =>
    html`<div class="tile small"><dt>${name}</dt><dd>${value}</dd></div>`;
  const { conversation_id: conversation, agent_id: agent, epoch } = row;
  const causes = row.causes.map(({ cause, tokens }) => [causeChip(cause), ` ${whole(tokens)} `]);
  return html`<div>
    <p class="note">
      ${moment(row.at)} · ${userLink(row, 40)}${agent !== null && ` · agent ${shortId(agent)}`} · ${
        conversation === null ? "a single prompt" : conversationLink(row, conversation, 40)
      } · ${row.model} · ${row.engine} · ${row.policy}, ${row.retention}${epoch !== null && ` · prompt ${epoch.prompts} of its epoch`}
    </p>
    <dl class="tiles">
      ${item(isExpected ? "Cached, expected" : "Cached, by the engine", text)}
      ${item("Expected", whole(row.expected_cached_tokens))}
      ${item("Prompt tokens", whole(row.prompt_tokens))}
      ${item("Missed", html`${whole(row.missed_tokens)}<span class="sub">${causes}</span>`)}
      ${item("New", whole(row.new_tokens))}
      ${item("First token", duration(row.first_token_ms))}
      ${row.saved_money !== null && item("Saved", money(row.saved_money))}
    </dl>
  </div>`;
}

function tokensOf(bars: Bars): number {
  return bars.reduce((sum, { tokens }) => sum + tokens, 0);
}

interface PaintedPrompt {
  readonly bars: Bars;
  readonly painted: Painted;
  /** The piece where the two prompts first differ. */
  readonly difference: number | null;
}

/** A prompt in one line, and where it first differs. */
function overview(title: string, { bars, painted, difference }: PaintedPrompt, most: number): VNode {
  const pieces = bars.map((bar) => {
    const kind = painted(bar);
    return { kind, tokens: bar.tokens, title: `${nameOf(bar)}: ${whole(bar.tokens)} tokens, ${PIECES[kind]}` };
  });
  const left = `${(tokensOf(bars.slice(0, difference ?? 0)) / most) * 100}%`;
  const mark = html`<span class="differs" style=${{ left }} title="first difference"></span>`;
  return html`<div class="overview">
    <span class="overview-name">${title}<span class="sub">${whole(tokensOf(bars))} tokens</span></span>
    <div class="track">${pieceBar(pieces, most)}${difference !== null && mark}</div>
  </div>`;
}

/** A prompt's pieces, one below the other. Most of a long prefix that both prompts have is folded. */
function lane(title: string, { bars, painted, difference }: PaintedPrompt, link: ComponentChildren = null): VNode {
  const shared = bars.findIndex((bar) => !bar.is_shared);
  const before = (shared < 0 ? bars.length : shared) - SHOWN_BEFORE;
  const folded = before > FOLDED_FROM ? before : 0;
  const mark = (at: number) => at === difference && html`<li class="difference">first difference</li>`;
  const items = bars.map((bar, at) => html`${mark(at)}${piece(bar, painted(bar), at === difference)}`);
  const alike = `${counted(folded, "piece")} that both prompts begin with, ${whole(tokensOf(bars.slice(0, folded)))} tokens`;
  return html`<div>
    <h3>${title}${link}</h3>
    ${
      folded > 0 &&
      html`<details>
        <summary class="folded-line">${alike}</summary>
        <ol class="lane" aria-label="${title}, its beginning">${items.slice(0, folded)}</ol>
      </details>`
    }
    <ol class="lane" aria-label=${title}>
      ${items.slice(folded)}${mark(bars.length)}
      ${difference === bars.length && html`<li class="piece ends">the prompt ends here</li>`}
    </ol>
  </div>`;
}

function piece(bar: WireBar, kind: Piece["kind"], isDifferent: boolean): VNode {
  const { text, tokens, cached_tokens: cached, is_shared: isShared } = bar;
  const words = PIECES[kind] + (isShared && kind !== "same" ? ", in both prompts" : "");
  const share = cached !== null && tokens > 0 && html`<span class="sub">${percent(cached / tokens)} cached</span>`;
  return html`<li class="piece ${kind} ${isDifferent && "is-different"}" style=${coloured(kind)}>
    <span>${nameOf(bar)}<span class="sub">${words}</span></span>
    <span class="piece-tokens">${whole(tokens)}${share}</span>
    ${text !== null && html`<pre>${text}</pre>`}
  </li>`;
}

function nameOf({ kind, role, label }: WireBar): string {
  switch (kind) {
    case "block":
      return `memory [${label ?? "?"}]`;
    case "instructions":
      return `instructions (${role ?? "system"})`;
    case "message":
      return `${role ?? "a"} message`;
    case "opening":
      return "memories begin";
    case "closing":
      return "memories end";
    case "annotation":
    case "erased":
      return kind;
  }
}
