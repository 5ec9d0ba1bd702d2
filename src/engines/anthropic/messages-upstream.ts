import { randomUUID } from "node:crypto";
import { LruMap } from "../../core/text/collections.js";
import { type JsonObject, listIn, parsedJson, record, text } from "../../core/text/json.js";
import { ANTHROPIC_BLOCKS, isOfReasoning, REASONING_NAMES, type ReasoningName } from "../turns/reasoning.js";
import {
  convertedEvents,
  errorIn,
  isEventStream,
  jsonAnswer,
  oneChunk,
  wholeBody,
  wholeOf,
} from "../upstream/answer-body.js";
import { OptionalRoute } from "../upstream/optional-route.js";
import type { HeaderPair, Upstream, UpstreamAnswer, UpstreamCall } from "../upstream/upstream.js";
import { isMessagesCall } from "./anthropic-upstream.js";
import { anthropicError, MessageStream, toAnthropicAnswer } from "./messages-answer.js";
import { type ChatDialect, toChatCompletion } from "./messages-request.js";

const COUNT_TOKENS = "messages/count_tokens";
const BAD_GATEWAY = 502;

export interface MessagesUpstreamOptions {
  readonly dialect: ChatDialect;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * OpenAI's API as Anthropic's: calls of `/v1/messages` are sent as chat completions; answers, streams and errors are returned in
 * Anthropic's form, with headers unmodified, and the status too, but for errors that come with 200. Other calls pass unmodified, but for what a
 * chat has of another engine's reasoning. Tokens are counted where the engine has Anthropic's route for that, as vLLM, llama.cpp and gateways
 * do; else 404.
 */
export function messagesUpstream(upstream: Upstream, { dialect, now }: MessagesUpstreamOptions): Upstream {
  const counting = new OptionalRoute(upstream, now);
  const names = new ReasoningNames(dialect.takesAllNames === true ? REASONING_NAMES : null);
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
      if (!isEventStream(answer)) return wholeMessage(answer, upstream.name, ownId);
      return { ...answer, body: convertedEvents(answer, upstream.name, new MessageStream(tools, ownId)) };
    },
  };
}

/** An unstreamed answer. Anthropic's clients know an error by its status, and OpenRouter and others give some with 200: these get one. */
async function wholeMessage(answer: UpstreamAnswer, name: string, ownId: string): Promise<UpstreamAnswer> {
  const whole = await wholeOf(answer.body, name);
  const error = answer.status < 300 ? errorIn(parsedJson(whole.toString("utf8"))) : null;
  const status = error === null ? answer.status : statusOf(error);
  const read = { ...answer, status, body: oneChunk(whole) };
  return { ...read, body: wholeBody(read, name, (json) => toAnthropicAnswer(json, status, ownId)) };
}

/** The status that an error names as its code; else that of a gateway whose engine failed. */
function statusOf(error: unknown): number {
  const code = Number(record(error)["code"]);
  return Number.isInteger(code) && code >= 400 && code <= 599 ? code : BAD_GATEWAY;
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
  const { input_tokens: count } = record(parsedJson(whole.toString("utf8")));
  return typeof count === "number" ? { ...answer, body: oneChunk(whole) } : null;
}

function inAnthropicForm(error: unknown, status: number): unknown {
  return record(error)["type"] === "error" ? error : anthropicError(error, status);
}

/** The chat completion, and the names of the client's functions. */
function toChatCall(
  call: UpstreamCall,
  dialect: ChatDialect,
): { readonly sent: UpstreamCall; readonly tools: ReadonlySet<string> } {
  const json = typeof call.body === "string" ? call.body : Buffer.from(call.body ?? "{}").toString();
  const given = JSON.parse(json) as JsonObject;
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

function notThere({ path }: UpstreamCall): UpstreamAnswer {
  const message = `the engine speaks OpenAI's API, which has no ${path}`;
  return jsonAnswer(404, { type: "error", error: { type: "not_found_error", message } });
}

/** Fields that OpenAI's own API rejects; it gives none of them. */
const NOT_OPENAIS = /"(?:(?:reasoning|thinking|thought)(?!_effort)\w*|extra_content)"\s*:/;

/** What the engine takes. */
interface Dialect {
  /** Whether it is OpenAI's own API. */
  readonly isOpenAi: boolean;
}

/**
 * A chat completion's body, as JSON, without what its engine would not take of reasoning: signed blocks of Anthropic's, which were given by
 * another engine; with OpenAI's own API all of it. The same text where there is nothing of that.
 */
function withoutForeignReasoning(json: string, { isOpenAi }: Dialect): string {
  if (!json.includes(`"${ANTHROPIC_BLOCKS}"`) && !(isOpenAi && NOT_OPENAIS.test(json))) return json;
  const isDropped = (field: string) =>
    field === ANTHROPIC_BLOCKS || (isOpenAi && (field === "extra_content" || isOfReasoning(field)));
  const body = record(JSON.parse(json));
  const messages = listIn(body["messages"]).map((message) => {
    if (record(message)["role"] !== "assistant") return message;
    const said = without(record(message), isDropped);
    const calls = said["tool_calls"];
    if (!Array.isArray(calls)) return said;
    return { ...said, tool_calls: calls.map((call) => without(record(call), isDropped)) };
  });
  return JSON.stringify({ ...body, messages });
}

function without(given: JsonObject, isDropped: (field: string) => boolean): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([field]) => !isDropped(field)));
}

/** Models whose names are known at a time. */
const MOST_MODELS = 1_000;
/** Bytes of an answer that are looked at: reasoning comes first. */
const MOST_BYTES = 16 * 1_024;

/**
 * By which names each model's engine gives its reasoning: an engine reads it by those alone (newer vLLM: `reasoning`), and clients return it
 * by another (the AI SDK: `reasoning_content`). Learned from answers, in memory.
 */
class ReasoningNames {
  readonly #names = new LruMap<string, readonly ReasoningName[]>(MOST_MODELS);

  /** @param first the names of a model that has not answered yet; null: the client's */
  constructor(private readonly first: readonly ReasoningName[] | null) {}

  /** A chat completion's body, as JSON, with reasoning by its engine's names. The same text where it is, or where they are not known. */
  returned(json: string): string {
    if (this.#names.size === 0 && this.first === null) return json;
    if (!REASONING_NAMES.some((name) => json.includes(`"${name}"`))) return json;
    const body = record(JSON.parse(json));
    const names = this.#names.get(text(body["model"])) ?? this.first;
    if (names === null) return json;
    const given = listIn(body["messages"]);
    const messages = given.map((message) => named(record(message), names));
    return messages.every((message, at) => message === given[at]) ? json : JSON.stringify({ ...body, messages });
  }

  /** Passes an answer on unmodified, and learns from its first bytes. */
  learnedFrom(answer: UpstreamAnswer, sent: string): UpstreamAnswer {
    const isEncoded = answer.headers.some(([header]) => header === "content-encoding");
    return answer.status >= 300 || isEncoded ? answer : { ...answer, body: this.#read(answer.body, sent) };
  }

  async *#read(body: AsyncIterable<Uint8Array>, sent: string): AsyncGenerator<Uint8Array, void, undefined> {
    let head: string | null = "";
    for await (const bytes of body) {
      if (head !== null) {
        head += Buffer.from(bytes).toString("latin1");
        const isWhole = head.length > MOST_BYTES || /"reasoning(_content)?"\s*:\s*"[^"][\s\S]*\n\r?\n/.test(head);
        if (isWhole) this.#learn(head, sent);
        if (isWhole) head = null;
      }
      yield bytes;
    }
    if (head !== null) this.#learn(head, sent);
  }

  #learn(head: string, sent: string): void {
    const names = REASONING_NAMES.filter((name) => GIVEN[name].test(head));
    if (names.length > 0) this.#names.set(text(record(JSON.parse(sent))["model"]), names);
  }
}

/** A field with a text that is not empty, outside of other texts, where quotes are escaped. */
const GIVEN: Readonly<Record<ReasoningName, RegExp>> = {
  reasoning_content: /(?<!\\)"reasoning_content"\s*:\s*"[^"]/,
  reasoning: /(?<!\\)"reasoning"\s*:\s*"[^"]/,
};

/** The message with its reasoning by these names; the same object where it has it by all of them, or has none. */
function named(message: JsonObject, names: readonly ReasoningName[]): JsonObject {
  const said = REASONING_NAMES.map((name) => text(message[name])).find((given) => given !== "");
  const isByAll = names.every((name) => message[name] != null);
  if (message["role"] !== "assistant" || said === undefined || isByAll) return message;
  const others = Object.entries(message).filter(([field]) => !REASONING_NAMES.some((name) => name === field));
  const own = names.map((name) => [name, message[name] ?? said]);
  return { ...Object.fromEntries(others), ...Object.fromEntries(own) };
}
