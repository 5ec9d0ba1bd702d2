import { getJson } from "./api.js";
import { causeChip } from "./causes.js";
import { type Child, h } from "./dom.js";
import { counted, duration, moment, money, percent, shortId, whole } from "./format.js";
import { PIECES, type Piece, pieceBar, pieceLegend, rowShare } from "./prompt-bar.js";
import { conversationLink, empty, failure, linkTo, panel, showing, userLink, type View } from "./view.js";
import type { WireBar, WireRequest, WireRow } from "./wire.js";

type Bars = readonly WireBar[];

/** Of pieces that both prompts have, so many are shown before the first difference; more than a few others are folded. */
const SHOWN_BEFORE = 3;
const FOLDED_FROM = 8;

/** How a piece is painted: of the earlier prompt, only what this one shares with it matters. */
type Painted = (bar: WireBar) => Piece["kind"];
const asItWas: Painted = ({ state }) => state;
const asShared: Painted = ({ is_shared: isShared }) => (isShared ? "same" : "other");

/** One prompt as bars, beside the prompt that it should have continued. */
export const requestView: View = ({ root, query, signal }) =>
  showing(root, signal, async () => {
    const [user, agent, id] = [query.get("user_id"), query.get("agent_id"), query.get("request_id")];
    if (user === null || id === null) return [failure(new Error("The address names no request."))];
    const found = await getJson<WireRequest>(
      "/usage/request",
      { user_id: user, agent_id: agent, request_id: id },
      signal,
    );
    const { request, bars, nearest, difference, explanation, has_text: hasText } = found;
    return [
      h("p.crumbs", h("a", { href: linkTo(["requests"]) }, "Requests"), " / "),
      h("h1", "Request ", h("span.id", shortId(id, 40))),
      request === null ? h("p.note", "Its figures are no longer kept; the prompt is.") : figures(request),
      panel(
        "Why it hit as far as it did",
        null,
        h(
          "ul.words",
          explanation.explanation.map((sentence) => h("li", sentence)),
        ),
      ),
      panel(
        nearest === null ? "The prompt" : "The prompt, and the one that it should have continued",
        "As wide as their tokens. The line marks where the two first differ.",
        overview("This prompt", bars, asItWas, difference?.here ?? null, widest(bars, nearest?.bars ?? [])),
        nearest === null
          ? h("p.note", "There is no earlier prompt that begins like it.")
          : overview(
              nearest.request_id === null ? "Earlier prompt" : `Earlier prompt ${shortId(nearest.request_id)}`,
              nearest.bars,
              asShared,
              difference?.there ?? null,
              widest(bars, nearest.bars),
            ),
        pieceLegend([
          "cached",
          "expected",
          "carried",
          "annotation",
          "again",
          "new",
          ...(nearest === null ? [] : (["same", "other"] as const)),
        ]),
      ),
      panel(
        "Piece by piece",
        hasText
          ? "Texts are shown because MEMSTEM_DASHBOARD_TEXT is on."
          : "Texts are not shown: the operator can let them be with MEMSTEM_DASHBOARD_TEXT.",
        h(
          "div.halves",
          lane("This prompt", bars, asItWas, difference?.here ?? null),
          nearest === null
            ? empty("No earlier prompt")
            : lane(
                "The earlier prompt",
                nearest.bars,
                asShared,
                difference?.there ?? null,
                nearest.request_id === null || nearest.request_id === id
                  ? null
                  : linkTo(["request"], { user_id: user, agent_id: agent, request_id: nearest.request_id }),
              ),
        ),
      ),
    ];
  });

function figures(row: WireRow): HTMLElement {
  const { text, isExpected } = rowShare(row);
  const item = (name: string, ...value: readonly Child[]) => h("div.tile.small", h("dt", name), h("dd", value));
  const { conversation_id: conversation, agent_id: agent, epoch } = row;
  return h(
    "div",
    h(
      "p.note",
      `${moment(row.at)} · `,
      userLink(row, 40),
      agent === null ? null : ` · agent ${shortId(agent)}`,
      " · ",
      conversation === null ? "a single prompt" : conversationLink(row, conversation, 40),
      ` · ${row.model} · ${row.engine} · ${row.policy}, ${row.retention}`,
      epoch === null ? null : ` · prompt ${epoch.prompts} of its epoch`,
    ),
    h(
      "dl.tiles",
      item(isExpected ? "Cached, expected" : "Cached, by the engine", text),
      item("Expected", `${whole(row.expected_cached_tokens)}`),
      item("Prompt tokens", whole(row.prompt_tokens)),
      item(
        "Missed",
        whole(row.missed_tokens),
        h(
          "span.sub",
          row.causes.flatMap(({ cause, tokens }) => [causeChip(cause), ` ${whole(tokens)} `]),
        ),
      ),
      item("New", whole(row.new_tokens)),
      item("First token", duration(row.first_token_ms)),
      row.saved_money === null ? null : item("Saved", money(row.saved_money)),
    ),
  );
}

function widest(...prompts: readonly Bars[]): number {
  return Math.max(1, ...prompts.map(tokensOf));
}

function tokensOf(bars: Bars): number {
  return bars.reduce((sum, { tokens }) => sum + tokens, 0);
}

/** A prompt in one line, and where it first differs. */
function overview(title: string, bars: Bars, painted: Painted, difference: number | null, most: number): HTMLElement {
  const pieces = bars.map((bar) => {
    const kind = painted(bar);
    return { kind, tokens: bar.tokens, title: `${nameOf(bar)}: ${whole(bar.tokens)} tokens, ${PIECES[kind]}` };
  });
  const at = difference === null ? null : tokensOf(bars.slice(0, difference)) / most;
  return h(
    "div.overview",
    h("span.overview-name", title, h("span.sub", `${whole(tokensOf(bars))} tokens`)),
    h(
      "div.track",
      pieceBar(pieces, most),
      at === null ? null : h("span.differs", { css: { left: `${at * 100}%` }, title: "first difference" }),
    ),
  );
}

/** A prompt's pieces, one below the other. Most of a long prefix that both prompts have is folded. */
function lane(
  title: string,
  bars: Bars,
  painted: Painted,
  difference: number | null,
  link: string | null = null,
): HTMLElement {
  const shared = bars.findIndex((bar) => !bar.is_shared);
  const before = (shared < 0 ? bars.length : shared) - SHOWN_BEFORE;
  const folded = before > FOLDED_FROM ? bars.slice(0, before) : [];
  const item = (bar: WireBar, at: number) => piece(bar, painted(bar), at === difference);
  const rest = bars.slice(folded.length).flatMap((bar, from) => {
    const at = folded.length + from;
    return at === difference ? [firstDifference(), item(bar, at)] : [item(bar, at)];
  });
  const ends = difference === bars.length ? [firstDifference(), h("li.piece.ends", "the prompt ends here")] : [];
  return h(
    "div",
    h("h3", title, link === null ? null : h("a.tag", { href: link }, "open it")),
    folded.length === 0
      ? null
      : h(
          "details.folded",
          h(
            "summary.folded-line",
            `${counted(folded.length, "piece")} that both prompts begin with, ${whole(tokensOf(folded))} tokens`,
          ),
          h("ol.lane", { "aria-label": `${title}, its beginning` }, folded.map(item)),
        ),
    h("ol.lane", { "aria-label": title }, rest, ends),
  );
}

function piece(bar: WireBar, kind: Piece["kind"], isDifferent: boolean): HTMLElement {
  const { text, tokens, is_shared: isShared } = bar;
  const words = PIECES[kind] + (isShared && kind !== "same" ? ", in both prompts" : "");
  return h(
    "li",
    { class: `piece ${kind}${isDifferent ? " is-different" : ""}` },
    h("span.piece-name", nameOf(bar), h("span.sub", words)),
    h("span.piece-tokens", whole(tokens), cachedOf(bar)),
    text === null ? null : h("pre", text),
  );
}

function firstDifference(): HTMLElement {
  return h("li.difference", "first difference");
}

function cachedOf({ tokens, cached_tokens: cached }: WireBar): HTMLElement | null {
  return cached === null || tokens === 0 ? null : h("span.sub", `${percent(cached / tokens)} cached`);
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
      return "annotation";
    case "erased":
      return "erased";
  }
}
