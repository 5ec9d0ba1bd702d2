/*
 * responses: the proxy for OpenAI's Responses API.
 * Enters: a request with items. Leaves: the answer of the chat proxy, which composes the items as messages, sends them as items and reads
 * what comes back; planning, refusals, feedback and writing back are its own. Here: what an id of an earlier response stands for.
 */

import { randomUUID } from "node:crypto";
import { type ChatMessage, type ConversationId, withoutProviderMemories } from "../../core/index.js";
import { isInstructions, itemsOf, messagesOf } from "../../engines/responses/responses-request.js";
import { OutdatedCallError } from "../../engines/upstream/upstream.js";
import { OutdatedHistoryError } from "../base/errors.js";
import type { Chat, ChatRequest, ProxiedAnswer } from "../chat/chat.js";
import type { ProxiedBody } from "../chat/chat-format.js";
import { type ChatComposer, NOBODY } from "../chat/chat-request.js";
import type { DeletionWatch } from "../scopes/working-scopes.js";
import { type KnownResponse, RememberedResponses, type ResponseKey } from "./remembered-responses.js";
import { conversationKey, itemKey, ResponsesFormat, type ResponseTurn } from "./responses-format.js";

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

  /** As {@link Chat.complete}. Where something is deleted after what was said was read here, it is read again. */
  async complete(memprefix: ChatComposer, given: ChatRequest, signal: AbortSignal): Promise<ProxiedAnswer> {
    for (;;) {
      // Before anything is read that a deletion from then on may concern.
      const watch = await watchOf(memprefix, given.userId);
      try {
        return await this.#complete(memprefix, given, watch, signal);
      } catch (error) {
        if (!(error instanceof OutdatedHistoryError || error instanceof OutdatedCallError)) throw error;
      }
    }
  }

  async #complete(
    memprefix: ChatComposer,
    given: ChatRequest,
    watch: DeletionWatch | null,
    signal: AbortSignal,
  ): Promise<ProxiedAnswer> {
    const whole = await this.#withItems(memprefix, given);
    const turn = await this.#turnOf(memprefix, whole, watch);
    const isRead = turn.previous !== null || whole !== given;
    const asked = { ...whole, readSince: isRead ? watch : null };
    const { compose } = asked;
    const format = new ResponsesFormat(
      memprefix.responses,
      turn,
      this.remembered,
      asked.body["store"] === false,
      this.onFault,
    );
    const { conversationId } = turn;
    if (compose === null) return this.chat.complete(memprefix, { ...asked, conversationId, format }, signal);
    const history = turn.previous?.history ?? [];
    // What was said is not known here; the store may have it.
    const isStored = turn.isContinued && turn.previous === null && turn.conversationId !== null;
    const added = bare(turn.added);
    const messages = [...compose.messages.filter(isInstructions), ...bare(history), ...added];
    const stored = isStored && compose.history == null ? ({ history: "stored" } as const) : {};
    const composed = { ...compose, messages, conversationId, ...stored, sentNow: added.length };
    return this.chat.complete(memprefix, { ...asked, conversationId, compose: composed, format }, signal);
  }

  /** The request with items in place of references to those that the engine does not keep. */
  async #withItems(tenant: object, asked: ChatRequest): Promise<ChatRequest> {
    const { userId, agentId, body } = asked;
    const { input } = body;
    if (!Array.isArray(input) || !input.some(isReference)) return asked;
    const items = (input as readonly unknown[]).map(async (item) => {
      if (!isReference(item)) return [item];
      const found = await this.remembered.of({ tenant, userId, agentId, id: itemKey(item.id) });
      return found === null || found.isHeld || found.history === null ? [item] : itemsOf(found.history);
    });
    return { ...asked, body: { ...body, input: (await Promise.all(items)).flat() } };
  }

  /** A response that is remembered, else one that is stored: from before a restart, or one that had to go. */
  async #found(memprefix: ChatComposer, key: ResponseKey): Promise<KnownResponse | null> {
    const remembered = await this.remembered.of(key);
    if (remembered !== null && remembered.history !== null) return remembered;
    const watch = await watchOf(memprefix, key.userId);
    const { userId, agentId, id } = key;
    // Where the store fails, the engine may know it.
    const stored = watch && (await memprefix.responses.find(userId, agentId, id).catch(() => null));
    if (watch === null || stored === null) return remembered;
    const { conversationId, isHeld, sent } = stored;
    const messages = stored.history.filter((message) => !isInstructions(message));
    this.remembered.set(key, { conversationId, previous: null, messages, isHeld, sent, watch });
    return { conversationId, previous: null, messages, history: messages, isHeld, sent, watch };
  }

  async #turnOf(memprefix: ChatComposer, asked: ChatRequest, watch: DeletionWatch | null): Promise<ResponseTurn> {
    const { userId, agentId, body, compose } = asked;
    const key = (id: string): ResponseKey => ({ tenant: memprefix, userId, agentId, id });
    const previousId = textIn(body["previous_response_id"]);
    // Conversations are remembered by names, which anybody may guess: those of requests that name nobody are the engine's alone.
    const held = userId === NOBODY ? null : conversationIn(body["conversation"]);
    const before = previousId ?? (held === null ? null : conversationKey(held));
    const found = before === null ? null : await this.#found(memprefix, key(before));
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
      watch,
    };
  }
}

/**
 * Messages as they are composed, without what Mem0's provider put in front of each request's. Those of this request are its memories; those
 * of earlier ones were.
 */
function bare(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.flatMap((message) => withoutProviderMemories([message]).messages);
}

function isReference(item: unknown): item is { readonly id: string } {
  if (typeof item !== "object" || item === null || !("type" in item) || !("id" in item)) return false;
  return item.type === "item_reference" && typeof item.id === "string";
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

/** The id of the engine's conversation that a request names: a text, or an object with an id. */
function conversationIn(given: unknown): string | null {
  if (typeof given === "object" && given !== null && "id" in given) return textIn(given.id);
  return textIn(given);
}

function textIn(given: unknown): string | null {
  return typeof given === "string" && given.trim() !== "" && given.length <= MAX_NAME ? given : null;
}

/** Null where the store fails. */
async function watchOf(memprefix: ChatComposer, userId: ChatRequest["userId"]): Promise<DeletionWatch | null> {
  return memprefix.additions.watch(userId).catch(() => null);
}
