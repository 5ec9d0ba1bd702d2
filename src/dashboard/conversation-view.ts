import { html } from "htm/preact";
import type { VNode } from "preact";
import type { WireConversation, WireRow } from "./api.js";
import { getJson } from "./api.js";
import { ago, counted, duration, moment, percent, shortId, whole } from "./format.js";
import { causeChip, pieceBar, pieceLegend, rowPieces, rowShare } from "./prompt-bar.js";
import { requestLink } from "./requests-view.js";
import { linkTo, loading, userLink } from "./view.js";

function namedIn(query: URLSearchParams) {
  const [user, agent, id] = [query.get("user_id"), query.get("agent_id"), query.get("conversation_id")];
  if (user === null || id === null) throw new Error("The address names no conversation.");
  return { user_id: user, agent_id: agent, conversation_id: id };
}

/** A conversation's turns, by epoch. */
export const conversationView = loading(
  async (query, signal) =>
    getJson<WireConversation>("/usage/conversation", { ...namedIn(query), cursor: query.get("cursor") }, signal),
  ({ data: { total, epochs, next }, query }) => {
    const named = namedIn(query);
    const most = Math.max(1, ...epochs.flatMap(({ turns }) => turns.map(({ prompt_tokens: tokens }) => tokens)));
    const share = percent(total.cached_share ?? total.expected_share);
    const { prompts, reported_prompts: reported } = total;
    const by =
      total.cached_share === null
        ? "as expected"
        : `by the engine${reported < prompts ? `, which reported ${whole(reported)} of them` : ""}`;
    const older = next !== null && linkTo("conversation", { ...named, cursor: next });
    const panels = epochs.map(({ began, turns }, at) => {
      const title = epochs.length === 1 && began === null ? "Turns" : `Epoch ${at + 1}`;
      const tag = began === null ? "from the beginning" : `began: ${began.replaceAll("_", " ")}`;
      return html`<section class="panel">
        <h2>${title}<span class="tag">${tag}</span></h2>
        <ol class="turns-list">${turns.map((row) => turn(row, most))}</ol>
      </section>`;
    });
    return html`
      <p class="crumbs"><a href=${linkTo("users")}>Users</a> / ${userLink(named, 40)} / </p>
      <h1>What was cached of each turn of <span class="id">${shortId(named.conversation_id, 60)}</span>?</h1>
      <p class="note">
        ${counted(total.prompts, "turn")}, ${whole(total.prompt_tokens)} prompt tokens: ${share} cached ${by}, ${whole(total.missed_tokens)} missed; last ${ago(total.last_at, Date.now())}.
      </p>
      ${older && html`<p><a class="button" href=${older}>Older turns</a></p>`}
      ${panels}
      ${pieceLegend(["cached", "expected", "again", "new"])}`;
  },
);

function turn(row: WireRow, most: number): VNode {
  const { text, isExpected } = rowShare(row);
  const time = row.first_token_ms === null ? "" : `, ${duration(row.first_token_ms)}`;
  const figures = `${whole(row.prompt_tokens)} tokens, ${isExpected ? "~" : ""}${text} cached${time}`;
  return html`<li>
    <a class="turn" href=${requestLink(row)} title=${moment(row.at)}>
      <span class="turn-when">${ago(row.at, Date.now())}</span>
      ${pieceBar(rowPieces(row), most)}
      <span class="turn-figures">${figures}</span>
    </a>
    <span>${row.causes.map(({ cause }) => causeChip(cause))}</span>
  </li>`;
}
