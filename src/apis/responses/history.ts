/* Items of OpenAI's Responses API as chat messages. Without memories, `sections.ts` restores the same items. */

import { type ChatMessage, type ContentPart, ITEM_FORM } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import { isRecord, type JsonObject, record } from "../../core/text/json.js";

export type ResponsesItem = unknown;

/** What a message keeps of its item: fields that chat messages lack, and reasoning items before it or, at the end of an answer, after it. */
export interface ItemForm {
  readonly fields?: JsonObject;
  readonly before?: readonly ResponsesItem[];
  readonly after?: readonly ResponsesItem[];
  /** The message is the request's `instructions`. */
  readonly isInstructions?: boolean;
}

/** Holds an item without a chat form, unmodified. */
export const OPAQUE = "responses_opaque_item";
/** The type of a text part, if it is not its role's usual one. */
export const PART_TYPE = "responses_part";

const ROLES = new Set<unknown>(["system", "developer", "user", "assistant"]);
const TEXT_TYPES = new Set(["input_text", "output_text", "text"]);

/** The response or conversation that a body continues; the engine has its history. Null: none. */
export function continuedBy(body: JsonObject): string | null {
  return nameIn(body["previous_response_id"]) ?? conversationOf(body);
}

/** Null: none. */
export function conversationOf({ conversation }: JsonObject): string | null {
  return nameIn(isRecord(conversation) ? conversation["id"] : conversation);
}

export function nameIn(given: unknown): string | null {
  return typeof given === "string" && given.trim() !== "" && given.length <= MOST_NAME ? given : null;
}

const MOST_NAME = 200;

/**
 * A message item becomes a message, a function call an assistant message with one call, and its output a tool message. Reasoning is attached to
 * the assistant's next message, else to its last. A message without content holds any other item. Null: `input` is neither text nor a list.
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

/** Attaches reasoning to the last message if it is the assistant's; else each item is its own message. */
function putAfter(messages: ChatMessage[], reasoning: readonly ResponsesItem[]): void {
  const last = messages.at(-1);
  if (last === undefined || !isSaid(last)) append(messages, reasoning.map(opaque));
  else if (reasoning.length > 0)
    messages[messages.length - 1] = { ...last, [ITEM_FORM]: { ...formOf(last), after: reasoning } };
}

function isSaid(message: ChatMessage): boolean {
  return message.role === "assistant" && !isOpaque(message);
}

function isOpaque(message: ChatMessage): boolean {
  return OPAQUE in message;
}

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

/** Outputs of tools may end a prompt. */
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
