/*
 * anthropic/: Anthropic's Messages API as OpenAI's chat completions.
 * In: an OpenAI call of the proxy, and any `Upstream` that reaches Anthropic. Calls of `/v1/messages` itself pass unmodified.
 * Out: a `/v1/messages` request; its answers, streams, errors and list of models in OpenAI's form.
 * The conversions of requests and answers are pure, each in a file of its own; this one connects them to the upstream.
 */

import { randomUUID } from "node:crypto";
import { z } from "zod";
import { digestOf } from "../../core/index.js";
import { LruMap } from "../../core/text/collections.js";
import { type JsonObject, listIn, parsedJson, record, text, withPlainNumbers } from "../../core/text/json.js";
import { ANTHROPIC_BLOCKS, isSealed, mayHoldSealed, REASONING_NAMES } from "../turns/reasoning.js";
import {
  eventsToConvert,
  inOtherForm,
  isComment,
  jsonAnswer,
  KEEP_ALIVE,
  oneChunk,
  wholeOf,
} from "../upstream/answer-body.js";
import {
  type HeaderPair,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamCall,
  UpstreamError,
  withAdded,
} from "../upstream/upstream.js";
import { AnthropicStream, fromAnthropicAnswer } from "./anthropic-answer.js";
import { type ChatBody, toAnthropicMessages } from "./anthropic-request.js";

/** The API version of the conversions. Source: https://platform.claude.com/docs/en/api/versioning */
const API_VERSION = "2023-06-01";
/** Anthropic's maximum page size (default 20); OpenAI's clients expect all models on one page. */
const MOST_MODELS = "1000";

export interface AnthropicUpstreamOptions {
  /** Sent as `x-api-key` in place of the client's key. */
  readonly apiKey?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * Anthropic's API as OpenAI's: chat completions are sent as `/v1/messages`; answers, streams, errors and the list of models are returned
 * in OpenAI's form, with status and headers unmodified. `upstream` must not set a key.
 * Source: https://platform.claude.com/docs/en/api/messages, https://platform.claude.com/docs/en/api/models-list
 */
export function anthropicUpstream(upstream: Upstream, { apiKey, now }: AnthropicUpstreamOptions): Upstream {
  const thinking = new SignedThinking();
  return {
    name: upstream.name,
    send: async (call, signal) => {
      const headers = [...call.headers];
      if (isMessagesCall(call)) {
        const own = { ...call, headers: withKey(headers, apiKey) };
        const asked = readMessages(call.body);
        const answer = await thinking.taken(asked, (body) => upstream.send({ ...own, body }, signal));
        return call.path === "messages" ? thinking.learnedFrom(answer, asked) : answer;
      }
      if (!CONVERTED.has(call.path)) return noRoute(call.path);
      const { sent, asked, asksUsage } = toAnthropicCall(call, thinking);
      const model = asked.model();
      const own = { ...sent, headers: withKey(headers, apiKey ?? keyIn(headers)) };
      const given = await thinking.taken(asked, (body) => upstream.send({ ...own, body }, signal));
      const answer = { ...given, headers: chatHeaders(given.headers) };
      const created = Math.floor(now() / 1_000);
      const convert = (json: unknown): unknown => {
        const read = () => fromAnthropicAnswer(json, { created, seed: randomUUID(), status: answer.status });
        if (call.path === "models") return fromAnthropicModels(json) ?? read();
        const chat = read();
        thinking.answered(model, record(record(listIn(chat["choices"])[0])["message"]));
        return chat;
      };
      const converter = () => new AnthropicStream(created, randomUUID());
      const stream = () => chatStream(answer, upstream.name, converter(), { asksUsage, model, thinking });
      return inOtherForm(answer, upstream.name, convert, stream);
    },
  };
}

/** OpenAI's paths that are converted. */
const CONVERTED: ReadonlySet<string> = new Set(["chat/completions", "models"]);

function noRoute(path: string): UpstreamAnswer {
  const message = `Anthropic's API has no /v1/${path} that memprefix converts: use /v1/chat/completions.`;
  return jsonAnswer(404, { error: { message, type: "invalid_request_error", param: null, code: null } });
}

/** Whether a call is of Anthropic's own API: `/v1/messages`, or what stands below it. */
export function isMessagesCall({ path }: Pick<UpstreamCall, "path">): boolean {
  return path === "messages" || path.startsWith("messages/");
}

/** A client's headers with the API's version, and with this key in place of its own; undefined: with its own. */
function withKey(headers: readonly HeaderPair[], key: string | undefined): HeaderPair[] {
  const added = { "anthropic-version": API_VERSION };
  if (key === undefined) return withAdded(headers, added);
  const others = headers.filter(([name]) => !["authorization", "x-api-key"].includes(name.toLowerCase()));
  return withAdded(others, { ...added, "x-api-key": key });
}

const BEARER = /^Bearer\s+(.+)$/i;

/** The key of a client that speaks OpenAI's API. */
function keyIn(headers: readonly HeaderPair[]): string | undefined {
  const named = (wanted: string) => headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
  return named("x-api-key") ?? BEARER.exec(named("authorization") ?? "")?.[1];
}

/** Checked as far as the conversion needs it. */
const chatBody = z.looseObject({
  messages: z
    .array(
      z.looseObject({
        role: z.string(),
        content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
      }),
    )
    .min(1),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish().catch(null),
});

/** A request, of whose body the thinking depends on its model. */
interface AskedMessages {
  readonly model: () => string;
  /** Whether there may be thinking in it; where there is none, its model need not be known. */
  readonly mayThink: boolean;
  readonly body: (takesUnsigned: boolean) => UpstreamCall["body"];
}

/** A body of Anthropic's own form, without thinking that the API refuses. */
function readMessages(body: UpstreamCall["body"]): AskedMessages {
  const json = body === null || typeof body === "string" ? (body ?? "") : Buffer.from(body).toString();
  const mayThink = holdsThinking(json);
  const given = mayThink ? record(parsedJson(json)) : null;
  const taken = (takesUnsigned: boolean) => {
    const accepted = given && withAcceptedThinking(given, { mayLackThinking: false, takesUnsigned });
    return accepted === given ? body : JSON.stringify(accepted);
  };
  return { model: () => text((given ?? record(parsedJson(json)))["model"]), mayThink, body: taken };
}

function holdsThinking(json: string): boolean {
  return mayHoldSealed(json) || json.includes('"thinking"');
}

function toAnthropicCall(
  call: UpstreamCall,
  thinking: SignedThinking,
): { readonly sent: UpstreamCall; readonly asked: AskedMessages; readonly asksUsage: boolean } {
  if (call.path === "models") {
    const query = new URLSearchParams(call.query);
    if (!query.has("limit")) query.set("limit", MOST_MODELS);
    const asked = { model: () => "", mayThink: false, body: () => call.body };
    return { sent: { ...call, query: `?${query}` }, asked, asksUsage: false };
  }
  const json = String(call.body);
  const given: unknown = call.body === null ? null : JSON.parse(json);
  const read = chatBody.safeParse(given);
  // A body that is no chat completion is sent on, for the API to reject.
  const body = (takesUnsigned: boolean) =>
    JSON.stringify(read.success ? messagesOfChat(given as ChatBody, thinking, takesUnsigned) : given);
  const asked = { model: () => text(record(given)["model"]), mayThink: holdsThinking(json), body };
  const asksUsage = read.success && read.data.stream_options?.include_usage === true;
  return { sent: { ...call, path: "messages" }, asked, asksUsage };
}

function messagesOfChat(chat: ChatBody, thinking: SignedThinking, takesUnsigned: boolean): JsonObject {
  const messages = chat.messages.map((message) => thinking.returned(message));
  return withAcceptedThinking(toAnthropicMessages({ ...chat, messages }), { mayLackThinking: true, takesUnsigned });
}

/** Adds the request's id under OpenAI's name for it. */
function chatHeaders(headers: readonly HeaderPair[]): readonly HeaderPair[] {
  const id = headers.find(([name]) => name === "request-id")?.[1];
  const isNamed = headers.some(([name]) => name === "x-request-id");
  return id === undefined || isNamed ? headers : [...headers, ["x-request-id", id]];
}

async function* chatStream(
  answer: UpstreamAnswer,
  name: string,
  stream: AnthropicStream,
  {
    asksUsage,
    model,
    thinking,
  }: { readonly asksUsage: boolean; readonly model: string; readonly thinking: SignedThinking },
): AsyncGenerator<Uint8Array, void, undefined> {
  let isOver = false;
  const eventsFor = (data: unknown): Uint8Array => {
    const { type, error } = record(data);
    const taken = stream.take(data);
    isOver ||= type === "message_stop" || error != null;
    // Before the client has the end, and sends its next request.
    if (type === "message_delta") thinking.answered(model, stream.thoughts);
    // The usage is the last chunk; the reason may stand before it, where the server gave none.
    const chunks = type === "message_stop" && !asksUsage ? taken.slice(0, -1) : taken;
    const events = chunks.map((chunk) => `data: ${withPlainNumbers(JSON.stringify(chunk))}\n\n`);
    if (type === "message_stop") events.push("data: [DONE]\n\n");
    return Buffer.from(events.join(""));
  };
  let isBegun = false;
  for await (const event of eventsToConvert(answer, () => isOver)) {
    const bytes = eventsFor(event.data);
    if (bytes.length > 0) yield bytes;
    else if (isBegun && (isComment(event) || record(event.data)["type"] === "ping")) yield Buffer.from(KEEP_ALIVE);
    isBegun ||= bytes.length > 0;
  }
  if (isOver) return;
  if (!stream.isFinished) throw new UpstreamError(name, { kind: "broken", cause: "it ended before the message did" });
  // Some servers end after the reason.
  yield eventsFor({ type: "message_stop" });
}

/** `GET /v1/models` in OpenAI's form, with Anthropic's other fields beside it; null: it is no list. */
function fromAnthropicModels(answer: unknown): unknown {
  const { data, ...rest } = record(answer);
  if (!Array.isArray(data)) return null;
  const models = (data as readonly unknown[]).map((model) => {
    const { created_at, ...more } = record(model);
    const at = Date.parse(text(created_at));
    return {
      ...more,
      object: "model",
      created: Number.isNaN(at) ? 0 : Math.floor(at / 1_000),
      owned_by: "anthropic",
    };
  });
  return { ...rest, object: "list", data: models };
}

/** The status with which the API refuses thinking. */
const REFUSED = 400;
/** Answers that are remembered, and models of which it is known whether they sign. */
const MOST_ANSWERS = 1_000;
const MOST_KNOWN = 1_000;
/** Characters of one answer's blocks, as JSON; longer ones are not. */
const MOST_CHARACTERS = 64 * 1_024;

/**
 * The signed thinking of answers that call tools, for clients of chat completions that return the reasoning's text but drop fields that they
 * do not know; and which models sign theirs: those of other makers that speak the API mostly do not. In memory only: after a restart a loop whose
 * client dropped the signatures goes on without its thinking. A client gets back what it returns: the blocks are found by the call's id and the text together.
 */
class SignedThinking {
  readonly #blocks = new LruMap<string, readonly unknown[]>(MOST_ANSWERS);
  readonly #signing = new LruMap<string, boolean>(MOST_KNOWN);

  /**
   * The answer to a request with the thinking that its model takes. One of which it is not known whether it signs is asked: with what nobody
   * signed, and without that where it refuses it. After a restart no model is known.
   */
  async taken(
    { model, mayThink, body }: AskedMessages,
    send: (body: UpstreamCall["body"]) => Promise<UpstreamAnswer>,
  ): Promise<UpstreamAnswer> {
    const signs = mayThink ? this.#signing.get(model()) : true;
    const whole = body(signs !== true);
    const answer = await send(whole);
    if (signs !== undefined || answer.status !== REFUSED) return answer;
    const without = body(false);
    if (without === whole) return answer;
    const said = await wholeOf(answer.body, "the upstream");
    if (!/signature|thinking/i.test(said.toString("utf8"))) return { ...answer, body: oneChunk(said) };
    this.#signing.set(model(), true);
    return send(without);
  }

  /** Passes an answer of the API on unmodified, and learns whether its thinking is signed. */
  learnedFrom(answer: UpstreamAnswer, { model }: AskedMessages): UpstreamAnswer {
    if (answer.status >= 300) return answer;
    return { ...answer, body: withThinkingRead(answer.body, (isSigned) => this.#signing.set(model(), isSigned)) };
  }

  /** Remembers a chat message that was answered. */
  answered(model: string, message: JsonObject): void {
    const key = keyOf(message);
    const blocks = message[ANTHROPIC_BLOCKS];
    const thoughts = listIn(blocks)
      .map(record)
      .filter(({ type }) => type === "thinking");
    if (thoughts.length > 0) this.#signing.set(model, thoughts.some(isSigned));
    if (key === null || !Array.isArray(blocks) || JSON.stringify(blocks).length > MOST_CHARACTERS) return;
    this.#blocks.set(key, blocks);
  }

  /** The message with its blocks, where its client dropped them and nothing else of its thinking. */
  returned<T extends JsonObject>(message: T): T {
    if (message["role"] !== "assistant" || message[ANTHROPIC_BLOCKS] != null) return message;
    const key = keyOf(message);
    const blocks = key === null ? undefined : this.#blocks.get(key);
    return blocks === undefined ? message : { ...message, [ANTHROPIC_BLOCKS]: blocks };
  }
}

/** Null: a message without calls, or without a text of reasoning. */
function keyOf(message: JsonObject): string | null {
  const id = text(record(listIn(message["tool_calls"])[0])["id"]);
  const said = REASONING_NAMES.map((name) => text(message[name])).find((given) => given !== "");
  return id === "" || said === undefined ? null : `${id} ${digestOf(said)}`;
}

/**
 * A body of `/v1/messages` without thinking that the API refuses: blocks without a signature, where the model gives signatures, and those in which memprefix sealed another engine's. Where a running tool loop has none left in front of its calls, a budget of thinking goes too, as the API requires a thinking
 * block there. The same object where there is nothing of that.
 * Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Preserving thinking blocks", "Toggling thinking modes"
 *
 * @param terms.mayLackThinking whether the client's API may have lost the thinking of the running loop: a chat's
 * @param terms.takesUnsigned whether the model may take thinking without signatures
 */
function withAcceptedThinking<T extends JsonObject>(
  body: T,
  { mayLackThinking, takesUnsigned }: { readonly mayLackThinking: boolean; readonly takesUnsigned: boolean },
): T {
  const given = listIn(body["messages"]);
  const accepted = given.map((message) => withoutRefused(message, takesUnsigned));
  const hasDropped = accepted.some((message, at) => message !== given[at]);
  if (!hasDropped && !mayLackThinking) return body;
  const left = accepted.filter((message) => !isEmptied(message));
  const isBudgeted = record(body["thinking"])["type"] === "enabled";
  const { thinking: _thinking, ...bare } = body;
  const own = isBudgeted && runningLoop(left).some(callsUnthought) ? (bare as unknown as T) : body;
  return hasDropped ? { ...own, messages: left } : own;
}

function withoutRefused(message: unknown, takesUnsigned: boolean): unknown {
  const { role, content } = record(message);
  if (role !== "assistant" || !Array.isArray(content)) return message;
  const blocks = (content as readonly unknown[]).filter((block) => !isRefused(record(block), takesUnsigned));
  return blocks.length === content.length ? message : { ...record(message), content: blocks };
}

function isRefused(block: JsonObject, takesUnsigned: boolean): boolean {
  const { type, signature, data } = block;
  if (type === "thinking") return isSealed(signature) || !(takesUnsigned || isSigned(block));
  return type === "redacted_thinking" && (text(data) === "" || isSealed(data));
}

function isSigned({ signature }: JsonObject): boolean {
  return text(signature) !== "";
}

/** The type of a message's first block, a signature that is not empty, and the end of a streamed block, outside of texts. */
const FIRST_BLOCK = /"type"\s*:\s*"(thinking|redacted_thinking|text|tool_use)"/;
const SIGNATURE = /"signature"\s*:\s*"[^"]/;
const BLOCK_END = /"type"\s*:\s*"content_block_stop"/;
/** More characters than any of them has. */
const LONGEST = 100;

/**
 * The same bytes of a message's answer, streamed or not.
 *
 * @param onRead called once it is known whether its thinking is signed; not where it has none in front
 */
async function* withThinkingRead(
  body: UpstreamAnswer["body"],
  onRead: (isSigned: boolean) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let first: string | undefined;
  let read: string | null = "";
  for await (const bytes of body) {
    if (read !== null) {
      read += Buffer.from(bytes).toString("latin1");
      first ??= FIRST_BLOCK.exec(read)?.[1];
      const isThought: boolean = first === "thinking";
      const isSigned: boolean = isThought && SIGNATURE.test(read);
      if (isSigned || (isThought && BLOCK_END.test(read))) onRead(isSigned);
      const isKnown: boolean = isSigned || !(first === undefined || isThought) || BLOCK_END.test(read);
      read = isKnown ? null : read.slice(-LONGEST);
    }
    yield bytes;
  }
  // Whole, it says nothing of a block's end.
  if (read !== null && first === "thinking") onRead(false);
}

function isEmptied(message: unknown): boolean {
  const { role, content } = record(message);
  return role === "assistant" && Array.isArray(content) && content.length === 0;
}

/** The assistant's messages after the last words of the user's: between them stand results of tools alone. */
function runningLoop(messages: readonly unknown[]): readonly JsonObject[] {
  const asked = messages.findLastIndex((message) => {
    const { role, content } = record(message);
    return role === "user" && !listIn(content).some((block) => record(block)["type"] === "tool_result");
  });
  return messages
    .slice(asked + 1)
    .map(record)
    .filter(({ role }) => role === "assistant");
}

function callsUnthought({ content }: JsonObject): boolean {
  const types = listIn(content).map((block) => record(block)["type"]);
  const isThought = types[0] === "thinking" || types[0] === "redacted_thinking";
  return types.includes("tool_use") && !isThought;
}
