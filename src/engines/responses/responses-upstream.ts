/*
 * responses/: OpenAI's Responses API over an engine that may have chat completions only.
 * In: an OpenAI call of the proxy, and any `Upstream`.
 * Out: for `/responses` of an engine that has none, a chat completion, and its answer or stream as a response; any other call unmodified.
 * The conversions of requests and answers are pure, each in a file of its own; this one connects them to the upstream.
 */

import { randomUUID } from "node:crypto";
import { type JsonObject, listIn, record } from "../../core/text/json.js";
import { isSealed, mayHoldSealed, unsealed } from "../turns/reasoning.js";
import { convertedEvents, inOtherForm, jsonAnswer } from "../upstream/answer-body.js";
import { OptionalRoute } from "../upstream/optional-route.js";
import type { Upstream, UpstreamAnswer, UpstreamCall } from "../upstream/upstream.js";
import { fromChatCompletion, ResponseEvents, type ResponseHead } from "./responses-answer.js";
import { NoChatFormError, toChatCompletion } from "./responses-request.js";

const PATH = "responses";

export interface ResponsesUpstreamOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Whether it is OpenAI's own API. Default: it is not. */
  readonly isOpenAi?: boolean;
}

/**
 * The upstream with `/responses`, whether it has that or not: where it has none, requests are sent as chat completions.
 */
export function responsesUpstream(upstream: Upstream, { now, isOpenAi = false }: ResponsesUpstreamOptions): Upstream {
  const route = new OptionalRoute(upstream, now);
  const send: Upstream["send"] = async (call, signal) => {
    if (call.path !== PATH || call.body === null) return upstream.send(call, signal);
    const answer = await route.send({ ...call, body: bodyFor(call.body, isOpenAi) }, signal);
    if (answer !== null) return answer;
    const head = { id: randomUUID().replaceAll("-", ""), created: Math.floor(now() / 1_000) };
    return sendAsChat(upstream, call, head, signal);
  };
  return { name: upstream.name, send };
}

function bodyFor(body: UpstreamCall["body"], isOpenAi: boolean): UpstreamCall["body"] {
  if (typeof body !== "string" || !mayHoldSealed(body)) return body;
  return JSON.stringify(withoutSealedReasoning(record(JSON.parse(body)), { isOpenAi }));
}

async function sendAsChat(
  upstream: Upstream,
  call: UpstreamCall,
  { id, created }: Omit<ResponseHead, "asked">,
  signal: AbortSignal,
): Promise<UpstreamAnswer> {
  const asked = record(JSON.parse(call.convertible ?? String(call.body)));
  let body: JsonObject;
  try {
    body = toChatCompletion(asked);
  } catch (error) {
    if (error instanceof NoChatFormError) return refusal(error);
    throw error;
  }
  const chat = { ...call, path: "chat/completions", body: JSON.stringify(body), isOnce: false };
  const answer = await upstream.send(chat, signal);
  if (answer.status >= 300) return answer;
  const head = { id, created, asked };
  const stream = () => convertedEvents(answer, upstream.name, new ResponseEvents(head));
  return inOtherForm(answer, upstream.name, (json) => fromChatCompletion(json, head), stream);
}

function refusal({ message, param, code }: NoChatFormError): UpstreamAnswer {
  return jsonAnswer(400, { error: { message, type: "invalid_request_error", param, code } });
}

/**
 * A Responses request for an engine that has the API, without what memprefix sealed in reasoning items while the engine had chat completions
 * only: the engine's own signatures are none of those. The text stays, as content; an item without one goes, and with OpenAI's own API all of
 * them, which it does not know.
 */
function withoutSealedReasoning(body: JsonObject, { isOpenAi }: { readonly isOpenAi: boolean }): JsonObject {
  if (!Array.isArray(body["input"])) return body;
  const input = listIn(body["input"]).flatMap((item) => {
    const { encrypted_content: seal, ...own } = record(item);
    if (!isSealed(seal)) return [item];
    const text = unsealed(seal)?.text;
    const given = listIn(own["content"]);
    const content = given.length > 0 || text === undefined ? given : [{ type: "reasoning_text", text }];
    const isEmpty = content.length === 0 && listIn(own["summary"]).length === 0;
    return isOpenAi || isEmpty ? [] : [{ ...own, content }];
  });
  return { ...body, input };
}
