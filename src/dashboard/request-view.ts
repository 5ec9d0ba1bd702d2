import { html } from "htm/preact";
import type { ComponentChildren, VNode } from "preact";
import type { UsageRequest, UsageRow } from "../client/index.js";
import { duration, moment, money, percent, shareOf, shortId, whole } from "./format.js";
import { causeChip, rowShare } from "./prompt-bar.js";
import { service } from "./service.js";
import { conversationLink, empty, linkTo, loading, panel, userLink } from "./view.js";

function namedIn(query: URLSearchParams) {
  const [user, agent, id] = [query.get("user_id"), query.get("agent_id"), query.get("request_id")];
  if (user === null || id === null) throw new Error("The address names no request.");
  return { userId: user, agentId: agent || undefined, requestId: id };
}

/** A prompt, with the prompt it continued. */
export const requestView = loading(
  async (query, signal) => service.usageRequest(namedIn(query), { signal }),
  ({ data: { request, explanation, messages, continuedMessages: earlier, hasText }, query }) => {
    const { userId, agentId, requestId } = namedIn(query);
    const { continued } = explanation;
    const id = continued?.requestId ?? null;
    const open =
      id !== null &&
      html`<a class="tag" href=${linkTo("request", { user_id: userId, agent_id: agentId, request_id: id })}>open it</a>`;
    return html`
      <p class="crumbs"><a href=${linkTo("requests")}>Requests</a> / </p>
      <h1>What was cached of request <span class="id">${shortId(requestId, 40)}</span>?</h1>
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

function figures(row: UsageRow): VNode {
  const { text, isExpected } = rowShare(row);
  const item = (name: string, value: ComponentChildren) =>
    html`<div class="tile small"><dt>${name}</dt><dd>${value}</dd></div>`;
  const { conversationId: conversation, agentId: agent, epoch, miss } = row;
  const cause = miss !== null && html`<span class="sub">${causeChip(miss.cause)}</span>`;
  return html`<div>
    <p class="note">
      ${moment(row.at)} · ${userLink(row, 40)}${agent !== null && ` · agent ${shortId(agent)}`} · ${
        conversation === null ? "a single prompt" : conversationLink(row, conversation, 40)
      } · ${row.model} · ${row.engine} · ${row.policy}, ${row.retention}${epoch !== null && ` · prompt ${epoch.prompts} of its epoch`}
    </p>
    <dl class="tiles">
      ${item(isExpected ? "Cached, expected" : "Cached, by the engine", text)}
      ${item("Expected", whole(row.expectedCachedTokens))}
      ${item("Prompt tokens", whole(row.promptTokens))}
      ${item("Missed", html`${whole(miss?.tokens ?? 0)}${cause}`)}
      ${item("The new turn's own", whole(row.newTokens))}
      ${item("First token", duration(row.firstTokenMs))}
      ${row.savedMoney !== null && item("Saved", money(row.savedMoney))}
    </dl>
  </div>`;
}

type Explained = NonNullable<UsageRequest["explanation"]["continued"]>;

function lane(
  title: string,
  prompt: Explained,
  messages: UsageRequest["messages"],
  link: ComponentChildren = null,
): VNode {
  const { at, totalTokens: total, expectedCachedTokens: expected, reportedCachedTokens: reported } = prompt;
  const cached =
    reported === null
      ? `${whole(expected)} expected to be cached`
      : `${whole(reported)} cached by the engine (${percent(shareOf(reported, total))}), ${whole(expected)} expected`;
  const items = (messages ?? []).map(
    ({ role, tokens, isShared, text }) => html`<li class=${isShared ? "piece is-shared" : "piece"}>
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
