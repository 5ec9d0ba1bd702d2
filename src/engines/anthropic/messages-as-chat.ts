/*
 * Anthropic's messages as the chat messages that memstem composes, and back. Without memories the way back gives what was given: the
 * same blocks with the same fields, in the same order; thinking, its signatures, calls and documents are content parts that nobody reads.
 */

import type { ChatMessage, ContentPart } from "../../core/index.js";
import { append } from "../../core/text/lists.js";
import { record } from "../upstream/json-values.js";

/** The body of a `POST /v1/messages`, as a client sent it. */
export type MessagesBody = Readonly<Record<string, unknown>>;

/**
 * Field of a chat message that says whether it belongs to the same message of Anthropic's as the one before it. Absent: it does where it is
 * the user's and stands after a tool's result, so that memories after a result join its message.
 */
const JOINED = "anthropic_joined";
/**
 * Field of a chat message with the system messages that stand after its message: the API takes them there, also last, where a chat has to
 * end with a question or a tool's result.
 * Source: https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 */
const BEHIND = "anthropic_behind";
/** Fields of a tool's result whose names mean something else in a chat message. */
const RESERVED = ["role", "tool_call_id", JOINED, BEHIND] as const;

const MARK = "cache_control";

/**
 * Converts the instructions and messages of Anthropic's request into chat messages: the instructions become a system message, each tool result
 * a message of its own with the role `tool`; a system message after the user's goes with that; other content stays as it is. Null where the body has no messages in Anthropic's form.
 * Source: https://platform.claude.com/docs/en/api/messages
 */
export function chatOfMessages(body: MessagesBody): readonly ChatMessage[] | null {
  const { system, messages } = body;
  if (!Array.isArray(messages) || !(system == null || isContent(system))) return null;
  const chat: ChatMessage[] = system == null ? [] : [{ role: "system", content: system as ChatMessage["content"] }];
  const joins = new Joins();
  for (const given of messages as readonly unknown[]) {
    const last = chat.at(-1);
    if (record(given)["role"] === "system" && (last?.role === "user" || last?.role === "tool")) {
      chat[chat.length - 1] = { ...last, [BEHIND]: [...systemBehind(last), given] };
      continue;
    }
    const pieces = piecesOf(given);
    if (pieces === null) return null;
    for (const [at, piece] of pieces.entries()) chat.push(joins.marked(piece, at > 0));
  }
  return chat;
}

/**
 * Puts composed messages into Anthropic's request, in place of the instructions and messages from which {@link chatOfMessages} made them.
 * Memories are text blocks: before the user's own, or after tool results.
 */
export function withComposedMessages(body: MessagesBody, composed: readonly ChatMessage[]): MessagesBody {
  const [head, ...others] = composed;
  const isGiven = body["system"] != null;
  // Instructions that were nothing but memories of the client's are taken out.
  const hasSystem = isGiven && head?.role === "system";
  const sent = {
    ...body,
    ...(hasSystem ? { system: head.content } : {}),
    messages: anthropicMessagesOf(hasSystem ? others : composed, givenResults(body["messages"])),
  };
  if (!isGiven || hasSystem) return sent;
  const { system: _none, ...bare }: MessagesBody = sent;
  return bare;
}

function anthropicMessagesOf(
  chat: readonly ChatMessage[],
  given: ReadonlyMap<unknown, Readonly<Record<string, unknown>>>,
): readonly ChatMessage[] {
  const messages: { message: ChatMessage; blocks: ContentPart[] | null }[] = [];
  const joins = new Joins();
  /** System messages after the last message, which may not be complete. */
  const waiting: ChatMessage[] = [];
  const endMessage = () =>
    append(
      messages,
      waiting.splice(0).map((message) => ({ message, blocks: null })),
    );
  for (const composed of chat) {
    const { [JOINED]: mark, [BEHIND]: _behind, ...message } = composed;
    const isJoined = joins.take(message.role, mark);
    if (!isJoined) endMessage();
    const last = messages.at(-1);
    const blocks = message.role === "tool" ? [resultBlock(message, given)] : null;
    if (isJoined && last !== undefined) {
      last.blocks ??= blocksOf(last.message.content);
      append(last.blocks, blocks ?? blocksOf(message.content));
    } else messages.push({ message: message as ChatMessage, blocks });
    append(waiting, systemBehind(composed));
  }
  endMessage();
  return messages.map(({ message, blocks }) => {
    if (blocks === null) return message;
    return message.role === "tool" ? { role: "user", content: blocks } : { ...message, content: blocks };
  });
}

/** The system messages after a chat message's own message. */
export function systemBehind(message: ChatMessage): readonly ChatMessage[] {
  const behind = message[BEHIND];
  return Array.isArray(behind) ? (behind as readonly ChatMessage[]) : [];
}

/** A chat message without what belongs to Anthropic's form alone. */
export function withoutAnthropicForm({ [JOINED]: _joined, [BEHIND]: _behind, ...message }: ChatMessage): ChatMessage {
  return message as ChatMessage;
}

/** Which chat messages belong to one message of Anthropic's; the same rule in both directions. */
class Joins {
  /** Whether the last message is a tool's result, or belongs to one. */
  #isBehindResult = false;

  /** The message with the mark that it needs. */
  marked(message: ChatMessage, isJoined: boolean): ChatMessage {
    const byDefault = this.#byDefault(message.role);
    this.#move(message.role, isJoined);
    return isJoined === byDefault ? message : { ...message, [JOINED]: isJoined };
  }

  /** Whether the next message, with this mark, belongs to the one before it. */
  take(role: string, mark: unknown): boolean {
    const isJoined = typeof mark === "boolean" ? mark : this.#byDefault(role);
    this.#move(role, isJoined);
    return isJoined;
  }

  #byDefault(role: string): boolean {
    return this.#isBehindResult && (role === "user" || role === "tool");
  }

  #move(role: string, isJoined: boolean): void {
    this.#isBehindResult = role === "tool" || (isJoined && this.#isBehindResult);
  }
}

/** A message of Anthropic's as chat messages: one, or one for each tool result and for what stands between. Null: it is none. */
function piecesOf(given: unknown): readonly ChatMessage[] | null {
  const { role, content, ...more } = record(given);
  const hasMarks = Object.hasOwn(more, JOINED) || Object.hasOwn(more, BEHIND);
  if (typeof role !== "string" || hasMarks || !isContent(content)) return null;
  if (role !== "user" || !Array.isArray(content) || !content.some(isResult)) return [given as ChatMessage];
  // Of several chat messages none could hold the other fields.
  if (Object.keys(more).length > 0) return null;
  const pieces: ChatMessage[] = [];
  let between: ContentPart[] = [];
  const endBetween = () => {
    if (between.length > 0) pieces.push({ role, content: between });
    between = [];
  };
  for (const block of content as readonly ContentPart[]) {
    if (!isResult(block)) {
      between.push(block);
      continue;
    }
    endBetween();
    if (RESERVED.some((field) => Object.hasOwn(block, field))) return null;
    if (block["content"] != null && !isContent(block["content"])) return null;
    pieces.push(resultMessage(block));
  }
  endBetween();
  return pieces;
}

/** A text, or blocks. */
function isContent(given: unknown): boolean {
  if (!Array.isArray(given)) return typeof given === "string";
  return (given as readonly unknown[]).every((block) => typeof record(block)["type"] === "string");
}

function isResult(block: unknown): boolean {
  return record(block)["type"] === "tool_result";
}

/** The block's fields keep their order, by which the way back restores it. */
function resultMessage(block: ContentPart): ChatMessage {
  const fields = Object.entries(block).map(([name, value]): [string, unknown] => {
    if (name === "type") return ["role", "tool"];
    return name === "tool_use_id" ? ["tool_call_id", value] : [name, value];
  });
  return Object.fromEntries(fields) as unknown as ChatMessage;
}

/** A breakpoint of memstem's inside a result moves to the result: only top-level blocks are cached. The client's stay where they are. */
function resultBlock(
  message: ChatMessage,
  given: ReadonlyMap<unknown, Readonly<Record<string, unknown>>>,
): ContentPart {
  const before = given.get(message["tool_call_id"])?.["content"];
  const own = Array.isArray(message.content) && !holdsMark(before) ? withoutMarks(message.content) : null;
  const [first, ...others] = own?.parts ?? [];
  // A text that became a part to carry the breakpoint.
  const isText = typeof before === "string" && first?.["text"] === before && others.length === 0;
  const fields = Object.entries(message).map(([name, value]): [string, unknown] => {
    if (name === "role") return ["type", "tool_result"];
    if (name === "tool_call_id") return ["tool_use_id", value];
    if (name !== "content" || own === null) return [name, value];
    return ["content", isText ? before : own.parts];
  });
  if (own?.mark != null && message[MARK] == null) fields.push([MARK, own.mark]);
  return Object.fromEntries(fields) as unknown as ContentPart;
}

/** Parts without breakpoints, and the last breakpoint; null where there is none. */
function withoutMarks(
  content: readonly ContentPart[],
): { readonly mark: unknown; readonly parts: readonly ContentPart[] } | null {
  const mark = content.findLast((part) => part[MARK] != null)?.[MARK];
  if (mark === undefined) return null;
  return { mark, parts: content.map(({ [MARK]: _mark, ...part }) => part as ContentPart) };
}

function holdsMark(content: unknown): boolean {
  return Array.isArray(content) && content.some((part) => record(part)[MARK] != null);
}

/** The client's tool results by the call that they answer. */
function givenResults(messages: unknown): ReadonlyMap<unknown, Readonly<Record<string, unknown>>> {
  const contents = Array.isArray(messages) ? messages.map((message) => record(message)["content"]) : [];
  const blocks = contents.flatMap((content): readonly unknown[] => (Array.isArray(content) ? content : []));
  return new Map(blocks.filter(isResult).map((block) => [record(block)["tool_use_id"], record(block)]));
}

function blocksOf(content: ChatMessage["content"]): ContentPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return [...(content ?? [])];
}
