import { z } from "zod";
import { type ChatMessage, type ConversationId, type RequestId, withoutProviderMemories } from "../../core/index.js";
import { isRecord } from "../../core/text/json.js";
import { withoutPastMarks } from "../../engines/adapters/cache-breakpoints.js";
import { readOpenAiUsage } from "../../engines/adapters/reported-usage.js";
import {
  inputOf,
  isInstructions,
  messagesOf,
  NoChatFormError,
  toChatCompletion,
} from "../../engines/responses/responses-request.js";
import type { HeaderPair } from "../../engines/upstream/upstream.js";
import type { ComposeAnswer } from "../base/call-types.js";
import {
  type AnswerReader,
  type ChatFormat,
  forShortAnswer,
  MAX_ANSWER_CHARACTERS,
  type ProbeRequest,
  type ProxiedBody,
} from "../chat/chat-format.js";
import type { ChatComposer } from "../chat/chat-request.js";
import type { DeletionWatch } from "../scopes/working-scopes.js";
import {
  continues,
  type KnownResponse,
  NOTHING_SENT,
  type RememberedResponse,
  type RememberedResponses,
  type ResponseKey,
  sentWith,
} from "./remembered-responses.js";

/** Least `max_output_tokens` that OpenAI's API takes. */
const LEAST_OUTPUT = 16;

/** A request as a turn of its conversation. */
export interface ResponseTurn {
  /** The key of one of the user's responses. */
  readonly key: (id: string) => ResponseKey;
  /** The response that it continues; null: none, or one of which not everything is remembered. */
  readonly previous: (KnownResponse & { readonly history: readonly ChatMessage[] }) | null;
  readonly previousKey: ResponseKey | null;
  /** Whether it names what it continues: a response, or a conversation of the engine's. */
  readonly isContinued: boolean;
  /** The engine's conversation that it names; null also where it names no user. */
  readonly held: string | null;
  /** What its input adds. */
  readonly added: readonly ChatMessage[];
  readonly conversationId: ConversationId | null;
  /** Null where the store fails. */
  readonly watch: DeletionWatch | null;
}

/** The wire format of one request. */
export class ResponsesFormat implements ChatFormat {
  readonly path = "responses";
  readonly isChat = false;
  readonly readUsage = readOpenAiUsage;

  constructor(
    private readonly stored: ChatComposer["responses"],
    private readonly turn: ResponseTurn,
    private readonly remembered: RememberedResponses,
    /** Whether the client wants it kept nowhere. */
    private readonly isUnstored: boolean,
    private readonly onFault: (error: unknown) => void,
  ) {}

  bodyOf(own: ProxiedBody, messages: readonly ChatMessage[] | null): ProxiedBody {
    const { previous, isContinued, added } = this.turn;
    const prompt = messages?.filter((message) => !isInstructions(message)) ?? null;
    if (!isContinued) return prompt === null ? own : { ...own, input: inputOf(prompt, own["input"]) };
    if (previous !== null && !previous.isHeld) {
      return { ...withoutIds(own), input: inputOf(prompt ?? unmarked(previous.history, added), null) };
    }
    if (prompt === null) return own;
    if (previous !== null) {
      if (continues(prompt, previous.sent)) return withTail(own, prompt.slice(previous.sent.count));
      // The prompt does not continue the last one, say because it grew too long: so it is sent without the id.
      if (this.turn.held === null) return { ...withoutIds(own), input: inputOf(prompt, null) };
    }
    return withTail(own, tailOf(prompt, withoutProviderMemories(added).messages));
  }

  /** A conversation's whole history, as far as it is known: what is converted names none. */
  convertibleOf(own: ProxiedBody, messages: readonly ChatMessage[] | null): ProxiedBody | null {
    const { previous, held, added } = this.turn;
    if (held === null || previous?.isHeld === false) return null;
    const { conversation: _conversation, ...alone } = own;
    const prompt = messages ?? (previous === null ? null : unmarked(previous.history, added));
    return prompt === null ? alone : { ...alone, input: inputOf(prompt, own["input"]) };
  }

  /** What adds to a conversation, or runs with nobody connected. A response that is stored twice is found by one id: the first is nobody's. */
  isOnce({ conversation, background }: ProxiedBody): boolean {
    return conversation != null || background === true;
  }

  /** Not where the engine keeps the prefix: it is what it was, and is named by an id. */
  warmUpOf(own: ProxiedBody, prefix: readonly ChatMessage[]): ProxiedBody | null {
    const { previous, isContinued } = this.turn;
    if (isContinued && previous?.isHeld !== false) return null;
    const { background: _background, ...same } = withoutIds(forShortAnswer(own));
    return { ...same, input: inputOf(prefix, null), store: false, max_output_tokens: LEAST_OUTPUT };
  }

  probeOf(own: ProxiedBody, messages: readonly ChatMessage[], headers: readonly HeaderPair[]): ProbeRequest | null {
    const { previous, isContinued } = this.turn;
    // What the engine has is not known here.
    if (isContinued && previous === null) return null;
    try {
      const asked = { ...withoutIds(forShortAnswer(own)), input: inputOf(messages, null) };
      return { body: toChatCompletion(asked), headers };
    } catch (error) {
      if (error instanceof NoChatFormError) return null;
      throw error;
    }
  }

  answerReader(): ResponsesAnswer {
    return new ResponsesAnswer();
  }

  /** Remembers the response for requests that continue it. */
  answered(reader: AnswerReader, composed: Pick<ComposeAnswer, "requestId" | "messages"> | null): void {
    const response = reader instanceof ResponsesAnswer ? reader.finished : null;
    const { key, previous, previousKey, isContinued, held, added, conversationId, watch } = this.turn;
    if (!response?.id || this.isUnstored) return;
    const isWhole = response.status === "completed" || response.status === "incomplete";
    // What led to it is not known: the engine alone can continue it. A conversation is known from here on.
    const isOrphan = isContinued && previous === null && held === null;
    if (!isWhole || watch === null || isOrphan) return;
    const output = messagesOf(response.output) ?? [];
    const prompt = composed?.messages.filter((message) => !isInstructions(message)) ?? null;
    const before = prompt === null ? sentWith(previous?.sent ?? NOTHING_SENT, added) : sentWith(NOTHING_SENT, prompt);
    // A conversation that was found in the store has its history by itself.
    const history = previousKey === null ? (previous?.history ?? []) : [];
    const remembered: RememberedResponse = {
      conversationId,
      previous: previousKey,
      messages: [...history, ...added, ...output],
      isHeld: response.store === true || response.conversation != null,
      sent: sentWith(before, output),
      watch,
    };
    this.remembered.set(key(response.id), remembered);
    const names = held === null ? [response.id] : [response.id, conversationKey(held)];
    if (composed !== null) for (const id of names) this.#store(id, composed.requestId, remembered, output);
    if (!remembered.isHeld) this.#rememberItems(remembered, response.output);
    // The conversation's name stands for its newest response.
    const newest = { ...remembered, messages: [], previous: key(response.id) };
    if (held !== null) this.remembered.set(key(conversationKey(held)), newest);
  }

  #store(
    id: string,
    requestId: RequestId,
    { isHeld, sent, watch }: RememberedResponse,
    output: readonly ChatMessage[],
  ): void {
    const { key, previousKey } = this.turn;
    const { userId, agentId } = key(id);
    const response = { id, requestId, isHeld, sent, output, continued: previousKey?.id ?? null };
    this.stored.keep(userId, agentId, response, watch).catch(this.onFault);
  }

  /** Clients may name an item by its id where the engine would keep it. */
  #rememberItems(response: RememberedResponse, output: readonly Readonly<Record<string, unknown>>[]): void {
    for (const item of output) {
      if (typeof item["id"] !== "string") continue;
      const messages = messagesOf([item]) ?? [];
      this.remembered.set(this.turn.key(itemKey(item["id"])), { ...response, previous: null, messages });
    }
  }
}

/** The body with the new end of a prompt whose beginning the engine keeps. */
function withTail(own: ProxiedBody, tail: readonly ChatMessage[]): ProxiedBody {
  return { ...own, input: inputOf(tail, own["input"]) };
}

/** What was said before, without its cache marks of then, and what is said now. */
function unmarked(history: readonly ChatMessage[], added: readonly ChatMessage[]): readonly ChatMessage[] {
  return withoutPastMarks([...history, ...added], added, "cache_control");
}

function withoutIds({
  previous_response_id: _previous,
  conversation: _conversation,
  ...own
}: ProxiedBody): ProxiedBody {
  return own;
}

/** The end of a prompt that holds the added messages, and the memories after a tool's result. */
function tailOf(prompt: readonly ChatMessage[], added: readonly ChatMessage[]): readonly ChatMessage[] {
  const hasOwnMessage = added.at(-1)?.role === "tool" && prompt.at(-1)?.role === "user";
  return prompt.slice(-(added.length + (hasOwnMessage ? 1 : 0)));
}

/** Under which an item of an answer is remembered. */
export function itemKey(id: string): string {
  return `item ${id}`;
}

/** Under which a conversation of the engine's is remembered: its newest response. */
export function conversationKey(id: string): string {
  return `conversation ${id}`;
}

const parts = z.array(z.looseObject({ type: z.string() })).catch([]);
const outputItem = z.looseObject({ type: z.string(), content: parts.optional() });
const response = z.looseObject({
  id: z.string().nullish().catch(null),
  status: z.string().nullish().catch(null),
  store: z.unknown().optional(),
  conversation: z.unknown().optional(),
  output: z.array(outputItem).catch([]),
  usage: z.unknown().optional(),
});
const event = z.looseObject({ type: z.string(), delta: z.unknown().optional(), response: z.unknown().optional() });

/** A finished answer of the Responses API, as far as it is read. */
export type FinishedResponse = z.output<typeof response>;

/** Events that end a stream, with the whole answer in them. */
const ENDS = new Set(["response.completed", "response.incomplete", "response.failed"]);
/** With other statuses the text is not the whole answer. */
const TEXT_IS_WHOLE = new Set<unknown>(["completed", "incomplete"]);
/** Calls that the client answers: the text beside them is not the answer. */
const CALLS = new Set([
  "function_call",
  "custom_tool_call",
  "computer_call",
  "local_shell_call",
  "mcp_approval_request",
]);

/**
 * Reads an answer of the Responses API: the object, or its stream, whose last event has the object.
 * Source: https://platform.openai.com/docs/api-reference/responses/object, …/responses-streaming
 */
export class ResponsesAnswer implements AnswerReader {
  #finished: FinishedResponse | null = null;

  isOver = false;
  firstTokenAt: number | null = null;
  reported: unknown = null;

  take(given: unknown, at: number): void {
    if (isRecord(given) && given["object"] === "response") {
      this.#finish(given);
      return;
    }
    const read = event.safeParse(given);
    if (!read.success) return;
    const { type, delta } = read.data;
    if (type.endsWith(".delta") && delta !== "" && delta != null) this.firstTokenAt ??= at;
    if (!ENDS.has(type)) return;
    this.isOver = true;
    this.#finish(read.data.response);
  }

  /** Null until the answer was read to its end. */
  get finished(): FinishedResponse | null {
    return this.#finished;
  }

  get text(): string | null {
    const { status, output } = this.#finished ?? { status: null, output: [] };
    if (!TEXT_IS_WHOLE.has(status) || output.some(({ type }) => CALLS.has(type))) return null;
    const said = output.filter(({ type }) => type === "message").flatMap(({ content = [] }) => content);
    if (said.some(({ type }) => type !== "output_text")) return null;
    const text = said.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("");
    return text === "" || text.length > MAX_ANSWER_CHARACTERS ? null : text;
  }

  #finish(given: unknown): void {
    const read = response.safeParse(given);
    if (!read.success) return;
    this.#finished = read.data;
    if (isRecord(read.data.usage)) this.reported = given;
  }
}
