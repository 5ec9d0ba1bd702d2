/* Input items of the OpenAI Agents SDK as chat messages, and back. The same items give the same messages; unchanged messages give the same items. */

import type { ChatMessage, ContentPart, ITEM_FORM } from "../core/index.js";
import { isObject, type JsonObject } from "../core/text/json.js";
import type { AdapterOptions } from "./composing.js";

export type AgentsItem = object;

/** What a message keeps of its item: `fields` that chat messages lack, and reasoning items before it. */
interface AgentsForm {
  readonly fields?: JsonObject;
  /** The further fields of each text part; null for other parts. Absent if no text has any and none is alone. */
  readonly parts?: readonly (JsonObject | null)[];
  readonly output?: JsonObject;
  readonly before?: readonly unknown[];
  /** The message is the agent's instructions, not an item. */
  readonly isInstructions?: boolean;
}

const FORM: typeof ITEM_FORM = "responses_item";
/** Holds an item without a chat form, unmodified. */
const OPAQUE = "agents_item";
/** Holds a part that is no text: its own type could be mistaken for another API's. */
const OTHER_PART = "agents_part";

const ROLES: ReadonlySet<unknown> = new Set(["system", "user", "assistant"]);
const TEXT_TYPES: ReadonlySet<unknown> = new Set(["input_text", "output_text", "text"]);

/**
 * {@link itemsOf} reverses this. Reasoning is attached to the assistant's next message; any other item to a message without content.
 * Source: `AgentInputItem` of `@openai/agents-core`, `types/protocol`
 */
export function messagesOf(items: readonly unknown[], instructions?: string | undefined): readonly ChatMessage[] {
  const messages: ChatMessage[] = instructions ? [instructionsMessage(instructions)] : [];
  let before: unknown[] = [];
  for (const item of items) {
    if (isObject(item) && item["type"] === "reasoning") {
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

/** Items of `given` without a chat form come back as the same objects, with what JSON cannot hold. */
export function itemsOf(messages: readonly ChatMessage[], given: readonly unknown[] = []): readonly AgentsItem[] {
  const known = new Map(given.map((item) => [JSON.stringify(item), item as AgentsItem]));
  return messages.flatMap((message) => {
    if (formOf(message).isInstructions === true) return [];
    return itemsOfMessage(message).map((item) => known.get(JSON.stringify(item)) ?? item);
  });
}

export function instructionsIn(messages: readonly ChatMessage[]): string | undefined {
  const message = messages.find((one) => formOf(one).isInstructions === true);
  if (message === undefined) return undefined;
  return typeof message.content === "string" ? message.content : textOf(message.content ?? []);
}

/** A message that holds an item without a chat form has no place for memories. */
function hasPlace(message: ChatMessage | undefined): boolean {
  return message !== undefined && !(OPAQUE in message);
}

function instructionsMessage(instructions: string): ChatMessage {
  return { role: "system", content: instructions, [FORM]: { isInstructions: true } satisfies AgentsForm };
}

function messageOf(item: unknown): ChatMessage {
  if (!isObject(item)) return opaque(item);
  if (item["type"] === undefined || item["type"] === "message") return ofMessage(item);
  if (item["type"] === "function_call") return ofCall(item);
  if (item["type"] === "function_call_result") return ofResult(item);
  return opaque(item);
}

function ofMessage(item: JsonObject): ChatMessage {
  const { role, content: given, ...fields } = item;
  const content = ROLES.has(role) ? contentOf(given, String(role)) : null;
  return content === null ? opaque(item) : chatMessage(String(role), content, fields);
}

function ofCall(item: JsonObject): ChatMessage {
  const { callId: id, name, arguments: given, ...fields } = item;
  if (typeof id !== "string" || typeof name !== "string" || typeof given !== "string") return opaque(item);
  const call = { id, type: "function", function: { name, arguments: given } };
  return { ...chatMessage("assistant", { chat: null }, fields), tool_calls: [call] };
}

function ofResult(item: JsonObject): ChatMessage {
  const { callId: id, output, ...fields } = item;
  if (typeof id !== "string") return opaque(item);
  const content = contentOf(output, "tool") ?? wholeText(output);
  return content === null ? opaque(item) : { ...chatMessage("tool", content, fields), tool_call_id: id };
}

interface ChatContent extends Pick<AgentsForm, "parts" | "output"> {
  readonly chat: string | readonly ContentPart[] | null;
}

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

function wholeText(output: unknown): ChatContent | null {
  if (!isPart(output) || !isText(output)) return null;
  const { text, ...fields } = output;
  return { chat: String(text), output: fields };
}

function partFields(part: ContentPart, role: string): JsonObject | null {
  if (!isText(part)) return null;
  const { text: _text, type, ...fields } = part;
  return type === textTypeOf(role) ? fields : { type, ...fields };
}

function chatMessage(role: string, { chat, ...content }: ChatContent, fields: JsonObject): ChatMessage {
  const form: AgentsForm = { ...(Object.keys(fields).length === 0 ? {} : { fields }), ...content };
  return { role, content: chat, ...(Object.keys(form).length === 0 ? {} : { [FORM]: form }) };
}

/** Results of tools may end a prompt. */
function opaque(item: unknown): ChatMessage {
  const type = isObject(item) ? item["type"] : undefined;
  const isOfTool = typeof type === "string" && /_(?:output|result)$/.test(type);
  return { role: isOfTool ? "tool" : "assistant", content: null, [OPAQUE]: item };
}

function itemsOfMessage(message: ChatMessage): readonly AgentsItem[] {
  const { role, content } = message;
  const item = message[OPAQUE];
  if (item !== undefined) {
    const isAlone = content == null || content.length === 0;
    // Text added to a message that holds an item comes after it.
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

function callItem(call: unknown, fields: JsonObject): AgentsItem {
  const { id, function: called } = isObject(call) ? call : {};
  const { name, arguments: given } = isObject(called) ? called : {};
  return { type: "function_call", ...fields, callId: id, name, arguments: given };
}

function itemContent(message: ChatMessage): unknown {
  const { role, content } = message;
  const known = formOf(message).parts;
  if (typeof content === "string")
    return known === undefined ? content : [itemPart({ type: "text", text: content }, role, known[0])];
  const parts = content ?? [];
  // Memories come after a tool's result, and before anything else.
  const added = known === undefined || role === "tool" ? 0 : parts.length - known.length;
  return parts.map((part, at) => itemPart(part, role, known?.[at - added]));
}

function itemPart(part: ContentPart, role: string, fields: JsonObject | null | undefined): unknown {
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
  return isObject(part) && typeof part["type"] === "string";
}

function formOf(message: ChatMessage): AgentsForm {
  const form = message[FORM];
  return isObject(form) ? form : {};
}

/** A prompt needs one item for each given one: no memories if the last one has no place for them. */
export function placedInItems<Call>(
  options: AdapterOptions<Call>,
  messages: readonly ChatMessage[],
): AdapterOptions<Call> {
  return hasPlace(messages.at(-1)) ? options : { ...options, memories: () => [] };
}

/** Moves a message of memories after a tool's result into the result, so that no message is added. */
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
