import { randomUUID } from "node:crypto";
import { ReasoningNames, withoutForeignReasoning } from "../turns/sent-reasoning.js";
import {
  inOtherForm,
  jsonAnswer,
  MAX_ANSWER_BYTES,
  namedEvent,
  oneChunk,
  wholeBody,
  wholeOf,
} from "../upstream/converted-body.js";
import { eventsOf } from "../upstream/event-stream.js";
import { listIn, record, text } from "../upstream/json-values.js";
import { OptionalRoute } from "../upstream/optional-route.js";
import { type Upstream, type UpstreamAnswer, type UpstreamCall, UpstreamError } from "../upstream/upstream.js";
import type { HeaderPair } from "../upstream/upstream-headers.js";
import { isMessagesCall } from "./anthropic-upstream.js";
import { type ChatDialect, toChatCompletion } from "./chat-request.js";
import { anthropicError, toAnthropicAnswer } from "./message-answer.js";
import { MessageStream } from "./message-stream.js";

const COUNT_TOKENS = "messages/count_tokens";

export interface MessagesUpstreamOptions {
  readonly dialect: ChatDialect;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * OpenAI's API as Anthropic's: calls of `/v1/messages` are sent as chat completions; answers, streams and errors are returned in
 * Anthropic's form, with status and headers unmodified. Other calls pass unmodified, but for what a chat has of another engine's reasoning.
 * Tokens are counted where the engine has Anthropic's route for that, as vLLM, llama.cpp and gateways do; else 404.
 */
export function messagesUpstream(upstream: Upstream, { dialect, now }: MessagesUpstreamOptions): Upstream {
  const counting = new OptionalRoute(upstream, now);
  const names = new ReasoningNames();
  const chat: Upstream["send"] = async (call, signal) => {
    if (typeof call.body !== "string") return upstream.send(call, signal);
    const body = names.returned(withoutForeignReasoning(call.body, dialect));
    return names.learnedFrom(await upstream.send({ ...call, body }, signal), body);
  };
  return {
    name: upstream.name,
    send: async (call, signal) => {
      if (call.path === "chat/completions") return chat(call, signal);
      if (!isMessagesCall(call)) return upstream.send(call, signal);
      if (call.path === COUNT_TOKENS) return (await countedBy(counting, call, upstream.name, signal)) ?? notThere(call);
      if (call.path !== "messages") return notThere(call);
      const { sent, tools } = toChatCall(call, dialect);
      const answer = await chat(sent, signal);
      const ownId = `msg_${randomUUID().replaceAll("-", "")}`;
      const stream = () => messageEvents(answer, upstream.name, new MessageStream(tools, ownId));
      return inOtherForm(answer, upstream.name, (json) => toAnthropicAnswer(json, answer.status, ownId), stream);
    },
  };
}

/** A count of tokens, or the engine's error in Anthropic's form; null where it counts none. */
async function countedBy(
  route: OptionalRoute,
  call: UpstreamCall,
  name: string,
  signal: AbortSignal,
): Promise<UpstreamAnswer | null> {
  const answer = await route.send({ ...call, headers: chatHeaders(call.headers) }, signal);
  if (answer === null) return null;
  const { status } = answer;
  if (status >= 400) return { ...answer, body: wholeBody(answer, name, (json) => inAnthropicForm(json, status)) };
  const whole = await wholeOf(answer.body, name);
  // Some servers answer any path with 200.
  return holdsCount(whole.toString("utf8")) ? { ...answer, body: oneChunk(whole) } : null;
}

function inAnthropicForm(error: unknown, status: number): unknown {
  return record(error)["type"] === "error" ? error : anthropicError(error, status);
}

function holdsCount(json: string): boolean {
  try {
    return typeof record(JSON.parse(json))["input_tokens"] === "number";
  } catch {
    return false;
  }
}

/** The chat completion, and the names of the client's functions. */
function toChatCall(
  call: UpstreamCall,
  dialect: ChatDialect,
): { readonly sent: UpstreamCall; readonly tools: ReadonlySet<string> } {
  const json = typeof call.body === "string" ? call.body : Buffer.from(call.body ?? "{}").toString();
  const given = JSON.parse(json) as Readonly<Record<string, unknown>>;
  // A body without messages is sent on, for the engine to reject.
  const body = toChatCompletion(given, dialect) ?? given;
  const headers = chatHeaders(call.headers);
  return {
    sent: { ...call, path: "chat/completions", headers, body: JSON.stringify(body) },
    tools: new Set(listIn(record(given)["tools"]).map((tool) => text(record(tool)["name"]))),
  };
}

/** A key in Anthropic's header becomes a bearer token; Anthropic's own headers end here. */
export function chatHeaders(headers: Iterable<HeaderPair>): readonly HeaderPair[] {
  const given = [...headers].map(([name, value]): HeaderPair => [name.toLowerCase(), value]);
  const key = given.find(([name]) => name === "x-api-key")?.[1];
  const isNamed = given.some(([name]) => name === "authorization");
  const others = given.filter(([name]) => name !== "x-api-key" && !name.startsWith("anthropic-"));
  return key === undefined || isNamed ? others : [...others, ["authorization", `Bearer ${key}`]];
}

async function* messageEvents(
  { body }: UpstreamAnswer,
  name: string,
  stream: MessageStream,
): AsyncGenerator<Uint8Array, void, undefined> {
  let isOver = false;
  for await (const { data, isLast } of eventsOf(body, MAX_ANSWER_BYTES)) {
    if (isOver) continue;
    const events = isLast ? stream.end() : data === undefined ? [] : stream.take(data);
    isOver = isLast || events.some(({ type }) => type === "error");
    if (events.length > 0) yield Buffer.from(events.map(namedEvent).join(""));
  }
  if (isOver) return;
  // Some engines end without `[DONE]`.
  if (!stream.isFinished) throw new UpstreamError(name, { kind: "broken", cause: "it ended before the message did" });
  yield Buffer.from(stream.end().map(namedEvent).join(""));
}

function notThere({ path }: UpstreamCall): UpstreamAnswer {
  const message = `the engine speaks OpenAI's API, which has no ${path}`;
  return jsonAnswer(404, { type: "error", error: { type: "not_found_error", message } });
}
