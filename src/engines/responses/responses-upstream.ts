/*
 * responses/: OpenAI's Responses API over an engine that may have chat completions only.
 * In: an OpenAI call of the proxy, and any `Upstream`.
 * Out: for `/responses` of an engine that has none, a chat completion, and its answer or stream as a response; any other call unmodified.
 * The conversions of items, requests, answers and streams are pure, each in its own file; this one connects them to the upstream.
 */

import { randomUUID } from "node:crypto";
import { MAX_ANSWER_BYTES, namedEvent, wholeBody, wholeOf } from "../upstream/converted-body.js";
import { eventsOf } from "../upstream/event-stream.js";
import { type JsonObject, record } from "../upstream/json-values.js";
import { type Upstream, type UpstreamAnswer, type UpstreamCall, UpstreamError } from "../upstream/upstream.js";
import { NoChatFormError, toChatCompletion } from "./chat-request.js";
import { ResponseEvents } from "./response-events.js";
import { fromChatCompletion, type ResponseHead } from "./response-object.js";

/** Milliseconds for which an engine counts as one without `/responses`: it may be replaced. */
const LACKING_FOR_MS = 10 * 60 * 1_000;
const PATH = "responses";

export interface ResponsesUpstreamOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * The upstream with `/responses`, whether it has that or not. It is found out by a request: an engine that answers 404, 405 or 501 without
 * an error of its API's has none; for ten minutes requests are then sent as chat completions at once.
 */
export function responsesUpstream(upstream: Upstream, { now }: ResponsesUpstreamOptions): Upstream {
  let lackingUntil = 0;
  const send: Upstream["send"] = async (call, signal) => {
    if (call.path !== PATH || call.body === null) return upstream.send(call, signal);
    if (now() >= lackingUntil) {
      const answer = await upstream.send(call, signal);
      const { isLacking, body } = await checkRoute(answer, upstream.name);
      if (!isLacking) return { ...answer, body };
      lackingUntil = now() + LACKING_FOR_MS;
    }
    const head = { id: randomUUID().replaceAll("-", ""), created: Math.floor(now() / 1_000) };
    return sendAsChat(upstream, call, head, signal);
  };
  return { name: upstream.name, send };
}

async function sendAsChat(
  upstream: Upstream,
  call: UpstreamCall,
  { id, created }: Omit<ResponseHead, "asked">,
  signal: AbortSignal,
): Promise<UpstreamAnswer> {
  const asked = record(JSON.parse(String(call.body)));
  let body: JsonObject;
  try {
    body = toChatCompletion(asked);
  } catch (error) {
    if (error instanceof NoChatFormError) return refusal(error);
    throw error;
  }
  const chat = { ...call, path: "chat/completions", body: JSON.stringify(body) };
  const answer = await upstream.send(chat, signal);
  if (answer.status >= 300) return answer;
  const head = { id, created, asked };
  const type = answer.headers.find(([name]) => name === "content-type")?.[1] ?? "";
  const isStream = /^text\/event-stream\b/i.test(type);
  return {
    ...answer,
    body: isStream
      ? responseStream(answer, upstream.name, head)
      : wholeBody(answer, upstream.name, (json) => fromChatCompletion(json, head)),
  };
}

/** Whether an answer says that there is no such route; and its body, to be read. */
async function checkRoute(
  { status, body }: UpstreamAnswer,
  name: string,
): Promise<{ readonly isLacking: boolean; readonly body: AsyncIterable<Uint8Array> }> {
  if (status !== 404 && status !== 405 && status !== 501) return { isLacking: false, body };
  const whole = await wholeOf(body, name);
  return { isLacking: !isOfApi(whole.toString("utf8")), body: oneChunk(whole) };
}

/** The API's own errors with these statuses are for a model, a response or a field: they name it, or have a code, or say so in words. */
const OF_API = /does not exist|response with id|\bmodel\b/i;

function isOfApi(text: string): boolean {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return false;
  }
  const { param, code, message } = record(record(json)["error"] ?? json);
  return typeof param === "string" || typeof code === "string" || OF_API.test(String(message));
}

async function* responseStream({ body }: UpstreamAnswer, name: string, head: ResponseHead): Bytes {
  const stream = new ResponseEvents(head);
  let isOver = false;
  for await (const { data, isLast } of eventsOf(body, MAX_ANSWER_BYTES)) {
    isOver = isLast;
    if (isLast) break;
    if (data === undefined) continue;
    const events = stream.take(data);
    if (events.length > 0) yield eventBytes(events);
    if (record(data)["error"] != null) return;
  }
  // Some engines end without `[DONE]`, others without a reason.
  if (!isOver && !stream.isFinished)
    throw new UpstreamError(name, { kind: "broken", cause: "it ended before the answer did" });
  // Each of them has the whole text: one at a time, so that others are served between them.
  for (const event of stream.end()) yield eventBytes([event]);
}

type Bytes = AsyncGenerator<Uint8Array, void, undefined>;

function eventBytes(events: readonly JsonObject[]): Uint8Array {
  return Buffer.from(events.map(namedEvent).join(""));
}

async function* oneChunk(bytes: Uint8Array): Bytes {
  yield bytes;
}

function refusal({ message, param, code }: NoChatFormError): UpstreamAnswer {
  const error = { message, type: "invalid_request_error", param, code };
  const body = oneChunk(Buffer.from(JSON.stringify({ error })));
  return { status: 400, headers: [["content-type", "application/json"]], body };
}
