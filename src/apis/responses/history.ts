/*
 * Items of OpenAI's Responses API as the chat messages that memprefix composes. `sections.ts` goes the way back, which without memories gives
 * the same items.
 */

import { type ChatMessage, type ContentPart, ITEM_FORM } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import { isRecord, type JsonObject, record } from "../../core/text/json.js";

/** An input or output item of the Responses API; unchecked. */
export type ResponsesItem = unknown;

/** What a message keeps of the item that it was made of. */
export interface ItemForm {
  /** The item's fields that chat messages do not have. */
  readonly fields?: JsonObject;
  /** Reasoning items in front of it. */
  readonly before?: readonly ResponsesItem[];
  /** Reasoning items after it, of an answer that ends with them. */
  readonly after?: readonly ResponsesItem[];
  /** It is the request's `instructions`, not an item. */
  readonly isInstructions?: boolean;
}

/** Field of a message that holds an item without a chat form, unmodified. */
export const OPAQUE = "responses_opaque_item";
/** Field of a text part whose type is not the usual one of its role. */
export const PART_TYPE = "responses_part";

const ROLES = new Set<unknown>(["system", "developer", "user", "assistant"]);
const TEXT_TYPES = new Set(["input_text", "output_text", "text"]);

/** What a body continues at the engine, which then has the history: a response, or a conversation of the engine's. Null: nothing. */
export function continuedBy(body: JsonObject): string | null {
  return nameIn(body["previous_response_id"]) ?? conversationOf(body);
}

/** The engine's conversation that a body adds to: a text, or an object with an id. Null: none. */
export function conversationOf({ conversation }: JsonObject): string | null {
  return nameIn(isRecord(conversation) ? conversation["id"] : conversation);
}

/** The name of a response or a conversation; null where it is none. */
export function nameIn(given: unknown): string | null {
  return typeof given === "string" && given.trim() !== "" && given.length <= MOST_NAME ? given : null;
}

/** Most characters of a response's or a conversation's name. */
const MOST_NAME = 200;

/**
 * The instructions and items of a body as chat messages, which `sections.ts` turns back into the same items. A message item is a message, a function call an
 * assistant's message with one call, a call's output a tool's message; reasoning belongs to what the assistant does next, or else did before.
 * Any other item is a message without content that holds the item. Null: `input` is neither a text nor a list of items.
 * Source: https://platform.openai.com/docs/api-reference/responses/create
 */
export function history({ input, instructions }: JsonObject): readonly ChatMessage[] | null {
  const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
  if (!Array.isArray(items)) return null;
  const messages: ChatMessage[] = typeof instructions === "string" ? [instructionsMessage(instructions)] : [];
  let before: ResponsesItem[] = [];
  for (const item of items as readonly ResponsesItem[]) {
    if (record(item)["type"] === "reasoning") {
      before.push(item);
      continue;
    }
    const message = messageOf(item);
    if (isSaid(message) && before.length > 0) {
      messages.push({ ...message, [ITEM_FORM]: { ...formOf(message), before } });
    } else {
      putAfter(messages, before);
      messages.push(message);
    }
    before = [];
  }
  putAfter(messages, before);
  return messages;
}

/** Puts reasoning items after the last message, where that is the assistant's; else they are messages of their own. */
function putAfter(messages: ChatMessage[], reasoning: readonly ResponsesItem[]): void {
  const last = messages.at(-1);
  if (last === undefined || !isSaid(last)) append(messages, reasoning.map(opaque));
  else if (reasoning.length > 0)
    messages[messages.length - 1] = { ...last, [ITEM_FORM]: { ...formOf(last), after: reasoning } };
}

function isSaid(message: ChatMessage): boolean {
  return message.role === "assistant" && !isOpaque(message);
}

/** Whether a message holds an item without a chat form. */
function isOpaque(message: ChatMessage): boolean {
  return OPAQUE in message;
}

/** Whether a message is a request's `instructions`. */
export function isInstructions(message: ChatMessage): boolean {
  return formOf(message).isInstructions === true;
}

function instructionsMessage(instructions: string): ChatMessage {
  return { role: "system", content: instructions, [ITEM_FORM]: { isInstructions: true } satisfies ItemForm };
}

function messageOf(item: ResponsesItem): ChatMessage {
  if (!isRecord(item)) return opaque(item);
  if (item["type"] === undefined || item["type"] === "message") return ofMessage(item);
  if (item["type"] === "function_call") return ofCall(item);
  return ofOutput(item);
}

function ofMessage(item: JsonObject): ChatMessage {
  const { role, content: given, ...fields } = item;
  if (typeof role !== "string" || !ROLES.has(role)) return opaque(item);
  const content = contentOf(given, role);
  return content === null ? opaque(item) : { role, content, ...withForm(fields) };
}

function ofCall(item: JsonObject): ChatMessage {
  const { call_id: id, name, arguments: given, ...fields } = item;
  if (typeof id !== "string" || typeof name !== "string" || typeof given !== "string") return opaque(item);
  const call = { id, type: "function", function: { name, arguments: given } };
  return { role: "assistant", content: null, tool_calls: [call], ...withForm(fields) };
}

function ofOutput(item: JsonObject): ChatMessage {
  const { call_id: id, output, ...fields } = item;
  const isOutput = typeof item["type"] === "string" && item["type"].endsWith("_output");
  const content = isOutput && typeof id === "string" ? contentOf(output, "tool") : null;
  return content === null ? opaque(item) : { role: "tool", tool_call_id: id, content, ...withForm(fields) };
}

/** Null where it is not content. */
function contentOf(given: unknown, role: string): string | readonly ContentPart[] | null {
  if (typeof given === "string") return given;
  if (!Array.isArray(given)) return null;
  const parts = given as readonly unknown[];
  return parts.every(isPart) ? parts.map((part) => chatPart(part, role)) : null;
}

function isPart(part: unknown): part is ContentPart {
  return isRecord(part) && typeof part["type"] === "string" && part[PART_TYPE] === undefined;
}

function chatPart(part: ContentPart, role: string): ContentPart {
  if (!TEXT_TYPES.has(part.type) || typeof part["text"] !== "string") return part;
  return { ...part, type: "text", ...(part.type === textTypeOf(role) ? {} : { [PART_TYPE]: part.type }) };
}

export function textTypeOf(role: string): string {
  return role === "assistant" ? "output_text" : "input_text";
}

/** An item that chats do not have. Outputs of tools may end a prompt. */
function opaque(item: ResponsesItem): ChatMessage {
  const { type } = record(item);
  const isOfTool = typeof type === "string" && /_(?:output|response)$/.test(type);
  return { role: isOfTool ? "tool" : "assistant", content: null, [OPAQUE]: item };
}

function withForm(fields: JsonObject): JsonObject {
  return Object.keys(fields).length === 0 ? {} : { [ITEM_FORM]: { fields } satisfies ItemForm };
}

export function formOf(message: ChatMessage): ItemForm {
  return record(message[ITEM_FORM]);
}
