import type { ChatMessage, ContentPart } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import { type JsonObject, listIn, record } from "../../core/text/json.js";
import { forShortAnswer } from "../api/api.js";
import { FOLLOWING, isResult, JOINED, Joins, systemAfter } from "./history.js";

const MARK = "cache_control";

/** Memories become text blocks: before the user's own, or after tool results. */
export function withPrompt(body: JsonObject, composed: readonly ChatMessage[]): JsonObject {
  const [head, ...others] = composed;
  const isGiven = body["system"] != null;
  // Instructions that were only the client's memories are removed.
  const hasSystem = isGiven && head?.role === "system";
  const sent = {
    ...body,
    ...(hasSystem ? { system: head.content } : {}),
    messages: anthropicMessagesOf(hasSystem ? others : composed, givenResults(body["messages"])),
  };
  if (!isGiven || hasSystem) return sent;
  const { system: _none, ...bare }: JsonObject = sent;
  return bare;
}

/** Null where thinking has a budget, which must be below the answer's tokens. Without thinking, the prompt would be another. */
export function warmUp(body: JsonObject, prefix: readonly ChatMessage[]): JsonObject | null {
  if (record(body["thinking"])["budget_tokens"] !== undefined) return null;
  return { ...withPrompt(forShortAnswer(body), prefix), max_tokens: 1 };
}

function anthropicMessagesOf(
  chat: readonly ChatMessage[],
  given: ReadonlyMap<unknown, JsonObject>,
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
    const { [JOINED]: mark, [FOLLOWING]: _following, ...message } = composed;
    const isJoined = joins.take(message.role, mark);
    if (!isJoined) endMessage();
    const last = messages.at(-1);
    const blocks = message.role === "tool" ? [resultBlock(message, given)] : null;
    if (isJoined && last !== undefined) {
      last.blocks ??= blocksOf(last.message.content);
      append(last.blocks, blocks ?? blocksOf(message.content));
    } else messages.push({ message: message as ChatMessage, blocks });
    append(waiting, systemAfter(composed));
  }
  endMessage();
  return messages.map(({ message, blocks }) => {
    if (blocks === null) return message;
    return message.role === "tool" ? { role: "user", content: blocks } : { ...message, content: blocks };
  });
}

/** memprefix's breakpoint inside a result moves to the result, because only top-level blocks are cached. The client's stay. */
function resultBlock(message: ChatMessage, given: ReadonlyMap<unknown, JsonObject>): ContentPart {
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

function withoutMarks(
  content: readonly ContentPart[],
): { readonly mark: unknown; readonly parts: readonly ContentPart[] } | null {
  const mark = content.findLast((part) => part[MARK] != null)?.[MARK];
  if (mark === undefined) return null;
  return { mark, parts: content.map(({ [MARK]: _mark, ...part }) => part as ContentPart) };
}

function holdsMark(content: unknown): boolean {
  return listIn(content).some((part) => record(part)[MARK] != null);
}

function givenResults(messages: unknown): ReadonlyMap<unknown, JsonObject> {
  const blocks = listIn(messages).flatMap((message) => listIn(record(message)["content"]));
  return new Map(blocks.filter(isResult).map((block) => [record(block)["tool_use_id"], record(block)]));
}

function blocksOf(content: ChatMessage["content"]): ContentPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return [...(content ?? [])];
}
