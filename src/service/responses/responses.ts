/*
 * responses: the proxy for OpenAI's Responses API.
 * Enters: a request with items. Leaves: the answer of the chat proxy, which composes the items as messages, sends them as items and reads
 * what comes back; planning, refusals, feedback and writing back are its own. Here: what an id of an earlier response stands for.
 */

import { randomUUID } from "node:crypto";
import type { ChatMessage, ConversationId, RequestId } from "../../core/index.js";
import { readOpenAiUsage } from "../../engines/adapters/reported-usage.js";
import { inputOf, isInstructions, itemsOf, messagesOf } from "../../engines/responses/responses-items.js";
import type { AnswerReader } from "../chat/answer-reader.js";
import type { Chat, ChatRequest, ProxiedAnswer } from "../chat/chat.js";
import type { ChatFormat, ProxiedBody } from "../chat/chat-format.js";
import type { ChatComposer } from "../chat/chat-request.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import type { FoundResponse } from "../records/stored-responses.js";
import type { DeletionWatch } from "../scopes/deletion-watch.js";
import {
  type KnownResponse,
  type RememberedResponse,
  RememberedResponses,
  type ResponseKey,
} from "./remembered-responses.js";
import { ResponsesAnswer } from "./responses-answer.js";
import { continues, NOTHING_SENT, sentWith } from "./sent-prompt.js";

/** Most characters of a conversation's name. */
const MAX_NAME = 200;

/** The messages of a request, its instructions first; null where its input is neither a text nor a list of items. */
export function messagesOfResponses({ input, instructions }: ProxiedBody): readonly ChatMessage[] | null {
  return messagesOf(input, instructions);
}

/** Proxies OpenAI's Responses API over a {@link Chat}. */
export class Responses {
  constructor(
    private readonly chat: Pick<Chat, "complete">,
    /** Called with internal faults; the client gets its answer all the same. */
    private readonly onFault: (error: unknown) => void = () => {},
    private readonly remembered = new RememberedResponses(),
  ) {}

  /** As {@link Chat.complete}. */
  complete(memstem: ChatComposer, given: ChatRequest, signal: AbortSignal): Promise<ProxiedAnswer> {
    const asked = this.#withItems(memstem, given);
    const { compose } = asked;
    const turn = this.#turnOf(memstem, asked);
    const format = new ResponsesFormat(memstem, turn, this.remembered, asked.body["store"] === false, this.onFault);
    const { conversationId } = turn;
    if (compose === null) return this.chat.complete(memstem, { ...asked, conversationId, format }, signal);
    const history = turn.previous?.history ?? [];
    // What was said is not known here; the store may have it.
    const isStored = turn.isContinued && turn.previous === null && turn.conversationId !== null;
    const messages = [...compose.messages.filter(isInstructions), ...history, ...turn.added];
    const stored = isStored && compose.history == null ? ({ history: "stored" } as const) : {};
    const composed = { ...compose, messages, conversationId, ...stored };
    return this.chat.complete(memstem, { ...asked, conversationId, compose: composed, format }, signal);
  }

  /** The request with items in place of references to those that the engine does not keep. */
  #withItems(tenant: object, asked: ChatRequest): ChatRequest {
    const { userId, agentId, body } = asked;
    const { input } = body;
    if (!Array.isArray(input) || !input.some(isReference)) return asked;
    const items = (input as readonly unknown[]).flatMap((item) => {
      if (!isReference(item)) return [item];
      const found = this.remembered.of({ tenant, userId, agentId, id: itemKey(item.id) });
      return found === null || found.isHeld || found.history === null ? [item] : itemsOf(found.history);
    });
    return { ...asked, body: { ...body, input: items } };
  }

  /** A response that is remembered, else one that is stored: from before a restart, or one that had to go. */
  #found(memstem: ChatComposer, key: ResponseKey): KnownResponse | null {
    const remembered = this.remembered.of(key);
    if (remembered !== null && remembered.history !== null) return remembered;
    const watch = watchOf(memstem, key.userId);
    const stored = watch && storedOf(memstem, key);
    if (watch === null || stored === null) return remembered;
    const { conversationId, isHeld, sent } = stored;
    const messages = stored.history.filter((message) => !isInstructions(message));
    this.remembered.set(key, { conversationId, previous: null, messages, isHeld, sent, watch });
    return { conversationId, previous: null, messages, history: messages, isHeld, sent, watch };
  }

  #turnOf(memstem: ChatComposer, asked: ChatRequest): Turn {
    const { userId, agentId, body, compose } = asked;
    const key = (id: string): ResponseKey => ({ tenant: memstem, userId, agentId, id });
    const previousId = textIn(body["previous_response_id"]);
    const held = conversationIn(body["conversation"]);
    const before = previousId ?? (held === null ? null : conversationKey(held));
    const found = before === null ? null : this.#found(memstem, key(before));
    const previous = found === null || found.history === null ? null : { ...found, history: found.history };
    const added = (messagesOf(body["input"]) ?? []).filter((message) => !isInstructions(message));
    const named = compose?.conversationId ?? asked.conversationId ?? found?.conversationId ?? held;
    const isContinued = before !== null;
    return {
      key,
      previous,
      previousKey: previousId === null ? (previous?.previous ?? null) : key(previousId),
      isContinued,
      held,
      added,
      conversationId: (named ??
        (isContinued || !mayBeContinued(body, added) ? null : newName())) as ConversationId | null,
      watch: watchOf(memstem, userId),
    };
  }
}

/** A request as a turn of its conversation. */
interface Turn {
  /** The key of one of the user's responses. */
  readonly key: (id: string) => ResponseKey;
  /** The response that it continues; null: none, or one of which not everything is remembered. */
  readonly previous: (KnownResponse & { readonly history: readonly ChatMessage[] }) | null;
  readonly previousKey: ResponseKey | null;
  /** Whether it names what it continues: a response, or a conversation of the engine's. */
  readonly isContinued: boolean;
  /** The engine's conversation that it names. */
  readonly held: string | null;
  /** What its input adds. */
  readonly added: readonly ChatMessage[];
  readonly conversationId: ConversationId | null;
  /** Null where the store fails. */
  readonly watch: DeletionWatch | null;
}

/** The wire format of one request. */
class ResponsesFormat implements ChatFormat {
  readonly path = "responses";
  readonly isChat = false;
  readonly readUsage = readOpenAiUsage;

  constructor(
    private readonly memstem: Pick<ChatComposer, "keepResponse">,
    private readonly turn: Turn,
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
      return { ...withoutIds(own), input: inputOf(prompt ?? [...previous.history, ...added], null) };
    }
    if (prompt === null) return own;
    if (previous !== null) {
      if (continues(prompt, previous.sent)) return withTail(own, prompt.slice(previous.sent.count));
      // The prompt begins anew, say because it grew too long: only without the id does the engine see it so.
      if (this.turn.held === null) return { ...withoutIds(own), input: inputOf(prompt, null) };
    }
    return withTail(own, tailOf(prompt, added));
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
    const remembered: RememberedResponse = {
      conversationId,
      previous: previousKey,
      messages: [...added, ...output],
      isHeld: response.store === true || response.conversation != null,
      sent: sentWith(before, output),
      watch,
    };
    this.remembered.set(key(response.id), remembered);
    if (composed !== null) this.#store(response.id, composed.requestId, remembered, output);
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
    this.memstem.keepResponse(userId, agentId, response, watch).catch(this.onFault);
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

function isReference(item: unknown): item is { readonly id: string } {
  if (typeof item !== "object" || item === null || !("type" in item) || !("id" in item)) return false;
  return item.type === "item_reference" && typeof item.id === "string";
}

/** The body with the new end of a prompt whose beginning the engine keeps. */
function withTail(own: ProxiedBody, tail: readonly ChatMessage[]): ProxiedBody {
  return { ...own, input: inputOf(tail, own["input"]) };
}

function withoutIds({
  previous_response_id: _previous,
  conversation: _conversation,
  ...own
}: ProxiedBody): ProxiedBody {
  return own;
}

/** The end of a prompt that holds the added messages, and the memories behind a tool's result. */
function tailOf(prompt: readonly ChatMessage[], added: readonly ChatMessage[]): readonly ChatMessage[] {
  const hasOwnMessage = added.at(-1)?.role === "tool" && prompt.at(-1)?.role === "user";
  return prompt.slice(-(added.length + (hasOwnMessage ? 1 : 0)));
}

/**
 * Whether a request may be the first of a conversation that its client continues by the response's id: it is to be stored, and has nothing
 * that was said before. A client that sends its history names the conversation, or is one that has none.
 */
function mayBeContinued({ store }: ProxiedBody, added: readonly ChatMessage[]): boolean {
  return store !== false && added.every(({ role }) => role !== "assistant" && role !== "tool");
}

function newName(): string {
  return `response-${randomUUID()}`;
}

function itemKey(id: string): string {
  return `item ${id}`;
}

function conversationKey(id: string): string {
  return `conversation ${id}`;
}

/** The id of the engine's conversation that a request names: a text, or an object with an id. */
function conversationIn(given: unknown): string | null {
  if (typeof given === "object" && given !== null && "id" in given) return textIn(given.id);
  return textIn(given);
}

function textIn(given: unknown): string | null {
  return typeof given === "string" && given.trim() !== "" && given.length <= MAX_NAME ? given : null;
}

/** Null where the store fails: the engine may know it. */
function storedOf(memstem: ChatComposer, { userId, agentId, id }: ResponseKey): FoundResponse | null {
  try {
    return memstem.findResponse(userId, agentId, id);
  } catch {
    return null;
  }
}

function watchOf(memstem: ChatComposer, userId: ChatRequest["userId"]): DeletionWatch | null {
  try {
    return memstem.watchDeletions(userId);
  } catch {
    return null;
  }
}
