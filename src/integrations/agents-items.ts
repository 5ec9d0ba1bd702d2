/*
 * Input items of the OpenAI Agents SDK as chat messages, and back. Pure: the same items give the same messages, and messages that were not
 * changed give the same items.
 */

import type { ChatMessage, ContentPart, ITEM_FORM } from "../core/index.js";
import type { AdapterOptions } from "./composing.js";

/** An `AgentInputItem` of `@openai/agents-core`, or anything that stands in its place. */
export type AgentsItem = object;

type Fields = Readonly<Record<string, unknown>>;

/** What a message keeps of the item that it was made of. */
interface AgentsForm {
  /** The item's fields that chat messages do not have. */
  readonly fields?: Fields;
  /** Of a list of parts, the fields of each text beside it; null for a part that is no text. Absent where no text has any, nor is alone. */
  readonly parts?: readonly (Fields | null)[];
  /** The part that is a call's whole output, without its text. */
  readonly output?: Fields;
  /** Reasoning items in front of it. */
  readonly before?: readonly unknown[];
  /** It is the agent's instructions, not an item. */
  readonly isInstructions?: boolean;
}

const FORM: typeof ITEM_FORM = "responses_item";
/** Field of a message that holds an item without a chat form, unmodified. */
const OPAQUE = "agents_item";
/** Type of a part that holds one that is no text: under its own type it could be taken for another API's. */
const OTHER_PART = "agents_part";

const ROLES: ReadonlySet<unknown> = new Set(["system", "user", "assistant"]);
const TEXT_TYPES: ReadonlySet<unknown> = new Set(["input_text", "output_text", "text"]);

/**
 * The messages of items, which {@link itemsOf} turns back. A message item is a message, a function call an assistant's message with one call,
 * a call's result a tool's message; reasoning belongs to what the assistant does next. Any other item is a message without content that
 * holds the item.
 * Source: `AgentInputItem` of `@openai/agents-core`, `types/protocol`
 */
export function messagesOf(items: readonly unknown[], instructions?: string | undefined): readonly ChatMessage[] {
  const messages: ChatMessage[] = instructions ? [instructionsMessage(instructions)] : [];
  let before: unknown[] = [];
  for (const item of items) {
    if (isRecord(item) && item["type"] === "reasoning") {
      before.push(item);
      continue;
    }
    const message = messageOf(item);
    if (before.length > 0 && message.role === "assistant" && !(OPAQUE in message)) {
      messages.push({ ...message, [FORM]: { ...formOf(message), before } satisfies AgentsForm });
    } else {
      for (const reasoning of before) messages.push(opaque(reasoning));
      messages.push(message);
    }
    before = [];
  }
  for (const reasoning of before) messages.push(opaque(reasoning));
  return messages;
}

/**
 * The items of messages: those that they were made of, with what was put into their content, or new ones.
 *
 * @param given the items that the messages were made of: one without a chat form comes back as the same object, with what JSON has no place for
 */
export function itemsOf(messages: readonly ChatMessage[], given: readonly unknown[] = []): readonly AgentsItem[] {
  const known = new Map(given.map((item) => [JSON.stringify(item), item as AgentsItem]));
  return messages.flatMap((message) => {
    if (formOf(message).isInstructions === true) return [];
    return itemsOfMessage(message).map((item) => known.get(JSON.stringify(item)) ?? item);
  });
}

/** The instructions of messages; undefined where there are none. */
export function instructionsIn(messages: readonly ChatMessage[]): string | undefined {
  const message = messages.find((one) => formOf(one).isInstructions === true);
  if (message === undefined) return undefined;
  return typeof message.content === "string" ? message.content : textOf(message.content ?? []);
}

/** Whether there is a place for memories in a message: not where it holds an item without a chat form. */
function hasPlace(message: ChatMessage | undefined): boolean {
  return message !== undefined && !(OPAQUE in message);
}

function instructionsMessage(instructions: string): ChatMessage {
  return { role: "system", content: instructions, [FORM]: { isInstructions: true } satisfies AgentsForm };
}

function messageOf(item: unknown): ChatMessage {
  if (!isRecord(item)) return opaque(item);
  if (item["type"] === undefined || item["type"] === "message") return ofMessage(item);
  if (item["type"] === "function_call") return ofCall(item);
  if (item["type"] === "function_call_result") return ofResult(item);
  return opaque(item);
}

function ofMessage(item: Fields): ChatMessage {
  const { role, content: given, ...fields } = item;
  const content = ROLES.has(role) ? contentOf(given, String(role)) : null;
  return content === null ? opaque(item) : chatMessage(String(role), content, fields);
}

function ofCall(item: Fields): ChatMessage {
  const { callId: id, name, arguments: given, ...fields } = item;
  if (typeof id !== "string" || typeof name !== "string" || typeof given !== "string") return opaque(item);
  const call = { id, type: "function", function: { name, arguments: given } };
  return { ...chatMessage("assistant", { chat: null }, fields), tool_calls: [call] };
}

function ofResult(item: Fields): ChatMessage {
  const { callId: id, output, ...fields } = item;
  if (typeof id !== "string") return opaque(item);
  const content = contentOf(output, "tool") ?? wholeText(output);
  return content === null ? opaque(item) : { ...chatMessage("tool", content, fields), tool_call_id: id };
}

/** A content as chats have it, and what they have no place for. */
interface ChatContent extends Pick<AgentsForm, "parts" | "output"> {
  readonly chat: string | readonly ContentPart[] | null;
}

/** Null where it is not content. */
function contentOf(given: unknown, role: string): ChatContent | null {
  if (typeof given === "string") return { chat: given };
  if (!Array.isArray(given) || !given.every(isPart)) return null;
  const parts = given.map((part) => partFields(part, role));
  const [first] = given;
  // Stores make one part of a text.
  if (given.length === 1 && first !== undefined && isText(first)) return { chat: String(first["text"]), parts };
  const chat = given.map((part) => (isText(part) ? { type: "text", text: part["text"] } : { type: OTHER_PART, part }));
  return parts.every((fields) => fields !== null && Object.keys(fields).length === 0) ? { chat } : { chat, parts };
}

/** A result that is one text part, outside a list. */
function wholeText(output: unknown): ChatContent | null {
  if (!isPart(output) || !isText(output)) return null;
  const { text, ...fields } = output;
  return { chat: String(text), output: fields };
}

/** What a text part has beside its text and the usual type of its role; null for a part that is no text. */
function partFields(part: ContentPart, role: string): Fields | null {
  if (!isText(part)) return null;
  const { text: _text, type, ...fields } = part;
  return type === textTypeOf(role) ? fields : { type, ...fields };
}

function chatMessage(role: string, { chat, ...content }: ChatContent, fields: Fields): ChatMessage {
  const form: AgentsForm = { ...(Object.keys(fields).length === 0 ? {} : { fields }), ...content };
  return { role, content: chat, ...(Object.keys(form).length === 0 ? {} : { [FORM]: form }) };
}

/** An item that chats do not have. Results of tools may end a prompt. */
function opaque(item: unknown): ChatMessage {
  const type = isRecord(item) ? item["type"] : undefined;
  const isOfTool = typeof type === "string" && /_(?:output|result)$/.test(type);
  return { role: isOfTool ? "tool" : "assistant", content: null, [OPAQUE]: item };
}

function itemsOfMessage(message: ChatMessage): readonly AgentsItem[] {
  const { role, content } = message;
  const item = message[OPAQUE];
  if (item !== undefined) {
    const isAlone = content == null || content.length === 0;
    // What was put into a message that holds an item stands after it.
    const added = isAlone ? [] : [{ role: "user", content: itemContent({ role: "user", content }) }];
    return [item as AgentsItem, ...added];
  }
  const { before = [], fields = {}, output } = formOf(message);
  if (role === "tool") {
    const text = typeof content === "string" && output !== undefined ? { ...output, text: content } : null;
    const id = message["tool_call_id"];
    return [{ type: "function_call_result", ...fields, callId: id, output: text ?? itemContent(message) }];
  }
  const calls = Array.isArray(message["tool_calls"]) ? (message["tool_calls"] as readonly unknown[]) : [];
  if (calls.length > 0) return [...before, ...calls.map((call) => callItem(call, fields))] as readonly AgentsItem[];
  return [...before, { ...fields, role, content: itemContent(message) }] as readonly AgentsItem[];
}

function callItem(call: unknown, fields: Fields): AgentsItem {
  const { id, function: called } = isRecord(call) ? call : {};
  const { name, arguments: given } = isRecord(called) ? called : {};
  return { type: "function_call", ...fields, callId: id, name, arguments: given };
}

function itemContent(message: ChatMessage): unknown {
  const { role, content } = message;
  const known = formOf(message).parts;
  if (typeof content === "string")
    return known === undefined ? content : [itemPart({ type: "text", text: content }, role, known[0])];
  const parts = content ?? [];
  // Memories stand after a tool's result, and in front of anything else.
  const added = known === undefined || role === "tool" ? 0 : parts.length - known.length;
  return parts.map((part, at) => itemPart(part, role, known?.[at - added]));
}

function itemPart(part: ContentPart, role: string, fields: Fields | null | undefined): unknown {
  if (part.type === OTHER_PART) return part["part"];
  if (!isText(part)) return part;
  const { type: _type, text, prompt_cache_breakpoint: mark } = part;
  const cached = mark === undefined ? {} : { promptCacheBreakpoint: mark };
  return { type: textTypeOf(role), ...fields, text, ...cached };
}

function textTypeOf(role: string): string {
  return role === "assistant" ? "output_text" : "input_text";
}

function textOf(parts: readonly ContentPart[]): string {
  return parts.map((part) => (isText(part) ? part["text"] : "")).join("");
}

function isText(part: ContentPart): boolean {
  return TEXT_TYPES.has(part.type) && typeof part["text"] === "string";
}

function isPart(part: unknown): part is ContentPart {
  return isRecord(part) && typeof part["type"] === "string";
}

function formOf(message: ChatMessage): AgentsForm {
  const form = message[FORM];
  return isRecord(form) ? form : {};
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Options for a prompt that has an item for each that is given: no memories where the last one has no place for them. */
export function placedInItems<Call>(
  options: AdapterOptions<Call>,
  messages: readonly ChatMessage[],
): AdapterOptions<Call> {
  return hasPlace(messages.at(-1)) ? options : { ...options, memories: () => [] };
}

/** A prompt with a message for each that is given: a message of memories after a tool's result goes into the result. */
export function withoutAddedMessages(
  composed: readonly ChatMessage[],
  given: readonly ChatMessage[],
): readonly ChatMessage[] {
  const messages: ChatMessage[] = [];
  let at = given.length - 1;
  let memories: ChatMessage | null = null;
  for (const [n, message] of [...composed.entries()].reverse()) {
    if (message.role === "user" && composed[n - 1]?.role === "tool" && given[at]?.role !== "user") memories = message;
    else {
      messages.unshift(memories === null ? message : { ...message, content: joined(message, memories) });
      memories = null;
      at--;
    }
  }
  return messages;
}

function joined({ content: result }: ChatMessage, { content: memories }: ChatMessage): string | readonly ContentPart[] {
  if (typeof result === "string" && typeof memories === "string")
    return `${result}

${memories}`;
  return [...partsOf(result), ...partsOf(memories)];
}

function partsOf(content: ChatMessage["content"]): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
}
