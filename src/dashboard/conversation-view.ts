import { getJson } from "./api.js";
import { causeChip } from "./causes.js";
import { h } from "./dom.js";
import { ago, counted, duration, moment, percent, shortId, whole } from "./format.js";
import { pieceBar, pieceLegend, rowPieces, rowShare } from "./prompt-bar.js";
import { requestLink } from "./requests-view.js";
import { failure, linkTo, showing, userLink, type View } from "./view.js";
import type { WireConversation, WireRow } from "./wire.js";

/** A conversation's turns, by epoch. */
export const conversationView: View = ({ root, query, signal }) =>
  showing(root, signal, async () => {
    const [user, agent, id] = [query.get("user_id"), query.get("agent_id"), query.get("conversation_id")];
    if (user === null || id === null) return [failure(new Error("The address names no conversation."))];
    const asked = { user_id: user, agent_id: agent, conversation_id: id };
    const { total, epochs, next } = await getJson<WireConversation>(
      "/usage/conversation",
      { ...asked, cursor: query.get("cursor") },
      signal,
    );
    const turns = epochs.flatMap((epoch) => epoch.turns);
    const most = Math.max(1, ...turns.map(({ prompt_tokens: tokens }) => tokens));
    return [
      h(
        "p.crumbs",
        h("a", { href: linkTo(["users"]) }, "Users"),
        " / ",
        userLink({ user_id: user, agent_id: agent }, 40),
        " / ",
      ),
      h("h1", "Conversation ", h("span.id", shortId(id, 60))),
      h(
        "p.note",
        `${counted(total.prompts, "turn")}, ${whole(total.prompt_tokens)} prompt tokens: ${percent(total.cached_share ?? total.expected_share)} cached${total.cached_share === null ? " as expected" : " by the engine"}, ${whole(total.missed_tokens)} missed; last ${ago(total.last_at, Date.now())}.`,
      ),
      next === null
        ? null
        : h("p", h("a.button", { href: linkTo(["conversation"], { ...asked, cursor: next }) }, "Older turns")),
      ...epochs.map((epoch, at) => epochPanel(epoch, at, epochs.length, most)),
      pieceLegend(["cached", "expected", "again", "new"]),
    ];
  });

function epochPanel(
  { began, turns }: WireConversation["epochs"][number],
  at: number,
  all: number,
  most: number,
): HTMLElement {
  const title = all === 1 && began === null ? "Turns" : `Epoch ${at + 1}`;
  return h(
    "section.panel",
    h("h2", title, h("span.tag", began === null ? "from the beginning" : `began: ${began.replaceAll("_", " ")}`)),
    h(
      "ol.turns-list",
      turns.map((row) => turn(row, most)),
    ),
  );
}

function turn(row: WireRow, most: number): HTMLElement {
  const { text, isExpected } = rowShare(row);
  return h(
    "li",
    h(
      "a.turn",
      { href: requestLink(row), title: moment(row.at) },
      h("span.turn-when", ago(row.at, Date.now())),
      pieceBar(rowPieces(row), most),
      h(
        "span.turn-figures",
        `${whole(row.prompt_tokens)} tokens, ${isExpected ? "~" : ""}${text} cached${row.first_token_ms === null ? "" : `, ${duration(row.first_token_ms)}`}`,
      ),
    ),
    h(
      "span",
      row.causes.map(({ cause }) => causeChip(cause)),
    ),
  );
}
