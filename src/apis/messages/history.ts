/*
 * Messages of Anthropic's API as chat messages. Without memories, `sections.ts` restores the same blocks with the same fields in the same order.
 * Thinking, signatures, calls and documents are content parts that nothing reads.
 */

import type { ChatMessage, ContentPart } from "../../core/index.js";
import { type JsonObject, listIn, record } from "../../core/text/json.js";

/**
 * Whether a chat message belongs to the same Anthropic message as the one before it. Absent: only a user's message after a tool result does, so
 * that memories after a result join its message.
 */
export const JOINED = "anthropic_joined";
/**
 * System messages after a message. The API takes them there, even last, but a chat has to end with a question or a tool result.
 * Source: https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 */
export const FOLLOWING = "anthropic_following";
/** Fields of a tool result that mean something else in a chat message. */
const RESERVED = ["role", "tool_call_id", JOINED, FOLLOWING] as const;

/**
 * The instructions become a system message, and each tool result a message with the role `tool`. Null for a body without messages in
 * Anthropic's form, and for one that continues a thread, because it lacks the earlier messages.
 * Source: https://platform.claude.com/docs/en/api/messages
 */
export function history(body: JsonObject): readonly ChatMessage[] | null {
  const { system, messages, thread } = body;
  const isContinued = thread != null && record(thread)["type"] !== "create";
  if (isContinued || !Array.isArray(messages) || !(system == null || isContent(system))) return null;
  const chat: ChatMessage[] = system == null ? [] : [{ role: "system", content: system as ChatMessage["content"] }];
  const joins = new Joins();
  for (const given of messages as readonly unknown[]) {
    const last = chat.at(-1);
    if (record(given)["role"] === "system" && (last?.role === "user" || last?.role === "tool")) {
      chat[chat.length - 1] = { ...last, [FOLLOWING]: [...systemAfter(last), given] };
      continue;
    }
    const pieces = piecesOf(given);
    if (pieces === null) return null;
    for (const [at, piece] of pieces.entries()) chat.push(joins.marked(piece, at > 0));
  }
  return chat;
}

export function systemAfter(message: ChatMessage): readonly ChatMessage[] {
  return listIn(message[FOLLOWING]) as readonly ChatMessage[];
}

/** Which chat messages belong to one Anthropic message; the same rule in both directions. */
export class Joins {
  /** Whether the last message is a tool result, or belongs to one. */
  #isAfterResult = false;

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
    return this.#isAfterResult && (role === "user" || role === "tool");
  }

  #move(role: string, isJoined: boolean): void {
    this.#isAfterResult = role === "tool" || (isJoined && this.#isAfterResult);
  }
}

/** A message as chat messages: one, or one for each tool result and for what is between them. Null: it is no message. */
function piecesOf(given: unknown): readonly ChatMessage[] | null {
  const { role, content, ...more } = record(given);
  const hasMarks = Object.hasOwn(more, JOINED) || Object.hasOwn(more, FOLLOWING);
  if (typeof role !== "string" || hasMarks || !isContent(content)) return null;
  if (role !== "user" || !Array.isArray(content) || !content.some(isResult)) return [given as ChatMessage];
  // None of several chat messages could hold the other fields.
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

function isContent(given: unknown): boolean {
  if (!Array.isArray(given)) return typeof given === "string";
  return (given as readonly unknown[]).every((block) => typeof record(block)["type"] === "string");
}

export function isResult(block: unknown): boolean {
  return record(block)["type"] === "tool_result";
}

/** Fields keep their order, by which `sections.ts` restores it. */
function resultMessage(block: ContentPart): ChatMessage {
  const fields = Object.entries(block).map(([name, value]): [string, unknown] => {
    if (name === "type") return ["role", "tool"];
    return name === "tool_use_id" ? ["tool_call_id", value] : [name, value];
  });
  return Object.fromEntries(fields) as unknown as ChatMessage;
}
