import { type ChatMessage, type ContentPart, ITEM_FORM } from "../../core/index.js";
import { append } from "../../core/text/lists.js";

/** An input or output item of the Responses API, or anything that stands in its place. */
export type ResponsesItem = unknown;

/** What a message keeps of the item that it was made of. */
interface ItemForm {
  /** The item's fields that chat messages do not have. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Reasoning items in front of it. */
  readonly before?: readonly ResponsesItem[];
  /** Reasoning items after it, of an answer that ends with them. */
  readonly after?: readonly ResponsesItem[];
  /** It is the request's `instructions`, not an item. */
  readonly isInstructions?: boolean;
}

/** Field of a message that holds an item without a chat form, unmodified. */
const OPAQUE = "responses_opaque_item";
/** Field of a text part whose type is not the usual one of its role. */
const PART_TYPE = "responses_part";

const ROLES = new Set<unknown>(["system", "developer", "user", "assistant"]);
const TEXT_TYPES = new Set(["input_text", "output_text", "text"]);

/**
 * The messages of a Responses request, which {@link inputOf} turns back into the same items. A message item is a message, a function call an
 * assistant's message with one call, a call's output a tool's message; reasoning belongs to what the assistant does next, or else did before.
 * Any other item is a message without content that holds the item. Null: `input` is neither a text nor a list of items.
 * Source: https://platform.openai.com/docs/api-reference/responses/create
 */
export function messagesOf(input: unknown, instructions: unknown = null): readonly ChatMessage[] | null {
  const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
  if (!Array.isArray(items)) return null;
  const messages: ChatMessage[] = typeof instructions === "string" ? [instructionsMessage(instructions)] : [];
  let before: ResponsesItem[] = [];
  for (const item of items as readonly ResponsesItem[]) {
    if (isRecord(item) && item["type"] === "reasoning") {
      before.push(item);
      continue;
    }
    const message = messageOf(item);
    if (isSaid(message) && before.length > 0) {
      messages.push({ ...message, [ITEM_FORM]: { ...formOf(message), before } });
    } else {
      putBehind(messages, before);
      messages.push(message);
    }
    before = [];
  }
  putBehind(messages, before);
  return messages;
}

/** Puts reasoning items after what the assistant said last; where it said nothing, they are messages of their own. */
function putBehind(messages: ChatMessage[], reasoning: readonly ResponsesItem[]): void {
  const last = messages.at(-1);
  if (last === undefined || !isSaid(last)) append(messages, reasoning.map(opaque));
  else if (reasoning.length > 0)
    messages[messages.length - 1] = { ...last, [ITEM_FORM]: { ...formOf(last), after: reasoning } };
}

function isSaid(message: ChatMessage): boolean {
  return message.role === "assistant" && !isOpaque(message);
}

/** The reasoning items in front of a message's items, or that it holds itself, and those after them. */
export function reasoningOf(message: ChatMessage): {
  readonly before: readonly ResponsesItem[];
  readonly after: readonly ResponsesItem[];
} {
  if (isOpaque(message)) return { before: [message[OPAQUE]], after: [] };
  const { before = [], after = [] } = formOf(message);
  return { before, after };
}

/** The items of messages: those that they were made of, with what was put into their content, or new ones. */
export function itemsOf(messages: readonly ChatMessage[]): readonly ResponsesItem[] {
  return messages.flatMap(itemsOfMessage);
}

/** The `input` of messages, a text where the request's own was one and nothing stands beside it. */
export function inputOf(messages: readonly ChatMessage[], own: unknown): string | readonly ResponsesItem[] {
  const said = messages.filter((message) => !isInstructions(message));
  const [only] = said;
  const isText = typeof own === "string" && said.length === 1 && only?.role === "user";
  return isText && typeof only.content === "string" ? only.content : itemsOf(said);
}

/** Whether a message holds an item without a chat form. */
export function isOpaque(message: ChatMessage): boolean {
  return OPAQUE in message;
}

/** The type of such an item. */
export function opaqueTypeOf(message: ChatMessage): string {
  const item = message[OPAQUE];
  return String(isRecord(item) ? item["type"] : item);
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

function ofMessage(item: Readonly<Record<string, unknown>>): ChatMessage {
  const { role, content: given, ...fields } = item;
  if (typeof role !== "string" || !ROLES.has(role)) return opaque(item);
  const content = contentOf(given, role);
  return content === null ? opaque(item) : { role, content, ...withForm(fields) };
}

function ofCall(item: Readonly<Record<string, unknown>>): ChatMessage {
  const { call_id: id, name, arguments: given, ...fields } = item;
  if (typeof id !== "string" || typeof name !== "string" || typeof given !== "string") return opaque(item);
  const call = { id, type: "function", function: { name, arguments: given } };
  return { role: "assistant", content: null, tool_calls: [call], ...withForm(fields) };
}

function ofOutput(item: Readonly<Record<string, unknown>>): ChatMessage {
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

function itemPart(part: ContentPart, role: string): ContentPart {
  if (part.type !== "text" || typeof part["text"] !== "string") return part;
  const { [PART_TYPE]: type, ...own } = part;
  return { ...own, type: typeof type === "string" ? type : textTypeOf(role) };
}

function textTypeOf(role: string): string {
  return role === "assistant" ? "output_text" : "input_text";
}

/** An item that chats do not have. Outputs of tools may end a prompt. */
function opaque(item: ResponsesItem): ChatMessage {
  const type = isRecord(item) ? item["type"] : undefined;
  const isOfTool = typeof type === "string" && /_(?:output|response)$/.test(type);
  return { role: isOfTool ? "tool" : "assistant", content: null, [OPAQUE]: item };
}

function itemsOfMessage(message: ChatMessage): readonly ResponsesItem[] {
  const { role, content } = message;
  if (OPAQUE in message) {
    const added =
      content == null || content.length === 0 ? [] : [{ role: "user", content: itemContent(content, "user") }];
    return [message[OPAQUE], ...added];
  }
  const { before = [], after = [], fields = {} } = formOf(message);
  const calls = Array.isArray(message["tool_calls"]) ? (message["tool_calls"] as readonly unknown[]) : [];
  if (role === "tool" || role === "function") {
    const id = message["tool_call_id"] ?? message["name"];
    return [{ type: "function_call_output", ...fields, call_id: id, output: itemContent(content, role) }];
  }
  const said =
    calls.length > 0 && (content == null || content.length === 0)
      ? []
      : [{ ...(calls.length > 0 ? {} : fields), role, content: itemContent(content, role) }];
  return [...before, ...said, ...calls.map((call) => callItem(call, fields)), ...after];
}

function callItem(call: unknown, fields: Readonly<Record<string, unknown>>): ResponsesItem {
  const { id, function: called } = isRecord(call) ? call : {};
  const { name, arguments: given } = isRecord(called) ? called : {};
  return { type: "function_call", ...fields, call_id: id, name, arguments: given };
}

function itemContent(content: ChatMessage["content"], role: string): unknown {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => itemPart(part, role));
}

function withForm(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.keys(fields).length === 0 ? {} : { [ITEM_FORM]: { fields } satisfies ItemForm };
}

function formOf(message: ChatMessage): ItemForm {
  const form = message[ITEM_FORM];
  return isRecord(form) ? form : {};
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
