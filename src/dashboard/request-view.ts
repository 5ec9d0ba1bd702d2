import { html } from "htm/preact";
import type { ComponentChildren, VNode } from "preact";
import type { WireExplained, WireMessages, WireRequest, WireRow } from "./api.js";
import { getJson } from "./api.js";
import { duration, moment, money, percent, shareOf, shortId, whole } from "./format.js";
import { causeChip, rowShare } from "./prompt-bar.js";
import { conversationLink, empty, linkTo, loading, panel, userLink } from "./view.js";

function namedIn(query: URLSearchParams) {
  const [user, agent, id] = [query.get("user_id"), query.get("agent_id"), query.get("request_id")];
  if (user === null || id === null) throw new Error("The address names no request.");
  return { user_id: user, agent_id: agent, request_id: id };
}

/** One prompt beside the prompt that it continued. */
export const requestView = loading(
  async (query, signal) => getJson<WireRequest>("/usage/request", namedIn(query), signal),
  ({ data: { request, explanation, messages, continued_messages: earlier, has_text: hasText }, query }) => {
    const named = namedIn(query);
    const { continued } = explanation;
    const id = continued?.request_id ?? null;
    const open =
      id !== null && html`<a class="tag" href=${linkTo("request", { ...named, request_id: id })}>open it</a>`;
    return html`
      <p class="crumbs"><a href=${linkTo("requests")}>Requests</a> / </p>
      <h1>What was cached of request <span class="id">${shortId(named.request_id, 40)}</span>?</h1>
      ${request === null ? html`<p class="note">Its figures are no longer kept; the prompt is.</p>` : figures(request)}
      ${panel(
        "In words",
        null,
        html`<ul class="words">${explanation.words.map((sentence) => html`<li>${sentence}</li>`)}</ul>`,
      )}
      ${panel(
        "The prompt, and the one that it continued",
        hasText
          ? "Texts are shown because MEMPREFIX_DASHBOARD_TEXT is on."
          : "Texts are not shown: the operator can let them be with MEMPREFIX_DASHBOARD_TEXT.",
        html`<div class="halves">
          ${lane("This prompt", explanation, messages)}
          ${continued === null ? empty("It continues no earlier prompt") : lane("The earlier prompt", continued, earlier, open)}
        </div>`,
      )}`;
  },
);

function figures(row: WireRow): VNode {
  const { text, isExpected } = rowShare(row);
  const item = (name: string, value: ComponentChildren) =>
    html`<div class="tile small"><dt>${name}</dt><dd>${value}</dd></div>`;
  const { conversation_id: conversation, agent_id: agent, epoch, miss } = row;
  const cause = miss !== null && html`<span class="sub">${causeChip(miss.cause)}</span>`;
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
      ${item("Missed", html`${whole(miss?.tokens ?? 0)}${cause}`)}
      ${item("The new turn's own", whole(row.new_tokens))}
      ${item("First token", duration(row.first_token_ms))}
      ${row.saved_money !== null && item("Saved", money(row.saved_money))}
    </dl>
  </div>`;
}

/** A prompt's figures and messages. */
function lane(title: string, prompt: WireExplained, messages: WireMessages, link: ComponentChildren = null): VNode {
  const { at, total_tokens: total, expected_cached_tokens: expected, reported_cached_tokens: reported } = prompt;
  const cached =
    reported === null
      ? `${whole(expected)} expected to be cached`
      : `${whole(reported)} cached by the engine (${percent(shareOf(reported, total))}), ${whole(expected)} expected`;
  const items = (messages ?? []).map(
    ({ role, tokens, is_shared: isShared, text }) => html`<li class=${isShared ? "piece is-shared" : "piece"}>
      <span>${role}<span class="sub">${isShared ? "the same in both prompts" : "after the first difference"}</span></span>
      <span class="piece-tokens">${whole(tokens)}</span>
      ${text !== null && html`<pre>${text}</pre>`}
    </li>`,
  );
  return html`<div>
    <h3>${title}${link}</h3>
    <p class="note">${moment(at)} · ${whole(total)} tokens, ${cached}</p>
    ${messages === null ? html`<p class="note">Some of its text was forgotten.</p>` : html`<ol class="lane" aria-label=${title}>${items}</ol>`}
  </div>`;
}
