import { type ChatMessage, type ContentPart, ITEM_FORM } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import { isRecord, type JsonObject, listIn, record, text } from "../../core/text/json.js";
import { ReturnedReasoning, unsealed } from "../turns/reasoning.js";

/** An input or output item of the Responses API, or anything that stands in its place. */
export type ResponsesItem = unknown;

/** What a message keeps of the item that it was made of. */
interface ItemForm {
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
    if (record(item)["type"] === "reasoning") {
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
function reasoningOf(message: ChatMessage): {
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
function isOpaque(message: ChatMessage): boolean {
  return OPAQUE in message;
}

/** The type of such an item. */
function opaqueTypeOf(message: ChatMessage): string {
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
  const { type } = record(item);
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
  const calls = listIn(message["tool_calls"]);
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

function callItem(call: unknown, fields: JsonObject): ResponsesItem {
  const { id, function: called } = record(call);
  const { name, arguments: given } = record(called);
  return { type: "function_call", ...fields, call_id: id, name, arguments: given };
}

function itemContent(content: ChatMessage["content"], role: string): unknown {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => itemPart(part, role));
}

function withForm(fields: JsonObject): JsonObject {
  return Object.keys(fields).length === 0 ? {} : { [ITEM_FORM]: { fields } satisfies ItemForm };
}

function formOf(message: ChatMessage): ItemForm {
  return record(message[ITEM_FORM]);
}

/** Fields of a Responses request that chat completions do not have, or have in another form. */
const RESPONSES_ONLY = new Set([
  ...["input", "instructions", "previous_response_id", "conversation", "store", "include", "reasoning", "text"],
  ...["truncation", "background", "max_output_tokens", "max_tool_calls", "prompt", "tools", "tool_choice"],
  ...["stream_options", "top_logprobs", "context_management"],
]);

/** A request that no chat completion says. */
export class NoChatFormError extends Error {
  override readonly name = "NoChatFormError";
  constructor(
    message: string,
    /** The field, as OpenAI's errors name it. */
    readonly param: string,
    readonly code: string | null = null,
  ) {
    super(message);
  }
}

/**
 * Converts a Responses request into a chat completion. Instructions come first, `developer` becomes `system`, calls join the assistant's
 * message before them, texts that of the calls before them, and reasoning the message that it led to. Fields that neither API names pass
 * unmodified. Throws {@link NoChatFormError} for items and tools that chats do not have, and for ids of what only an engine with `/responses`
 * keeps.
 * Source: https://platform.openai.com/docs/guides/migrate-to-responses
 */
export function toChatCompletion(body: JsonObject): JsonObject {
  const previous = body["previous_response_id"];
  if (typeof previous === "string") {
    const message = `Previous response with id '${previous}' not found.`;
    throw new NoChatFormError(message, "previous_response_id", "previous_response_not_found");
  }
  for (const field of ["conversation", "prompt"])
    if (body[field] != null) throw new NoChatFormError(`\`${field}\` needs an engine that has /responses.`, field);
  const messages = messagesOf(body["input"], body["instructions"]);
  if (messages === null) throw new NoChatFormError("`input` must be a text or a list of items.", "input");
  const same = Object.entries(body).filter(([field, value]) => !RESPONSES_ONLY.has(field) && value !== null);
  return {
    ...Object.fromEntries(same),
    messages: completionMessages(messages),
    ...tools(body),
    ...output(body),
    ...(body["stream"] === true ? { stream_options: { include_usage: true } } : {}),
  };
}

function completionMessages(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const merged: ChatMessage[] = [];
  /** What was thought before the assistant's messages. */
  const thoughts = new Map<ChatMessage, ReturnedReasoning>();
  for (const message of messages) {
    if (isOpaque(message)) {
      const type = opaqueTypeOf(message);
      // It led to nothing that is here.
      if (type === "reasoning") continue;
      throw new NoChatFormError(`Items of type '${type}' need an engine that has /responses.`, "input");
    }
    const last = merged.at(-1);
    const next = completionMessage(message);
    const { before, after } = reasoningOf(message);
    const joined = last === undefined ? null : joinedTo(last, next, before);
    if (joined !== null) merged.pop();
    const said = joined ?? next;
    merged.push(said);
    if (said.role !== "assistant") continue;
    const reasoning =
      (joined === null || last === undefined ? undefined : thoughts.get(last)) ?? new ReturnedReasoning();
    for (const item of [...before, ...after]) takeReasoning(reasoning, item);
    thoughts.set(said, reasoning);
  }
  return merged.map((message) => withReasoning(message, thoughts.get(message)));
}

/**
 * The assistant's message with the next one in it: its calls; what was said after calls, as their results have to follow their message; or
 * the text after what was thought in the middle of it. Null: another message.
 */
function joinedTo(last: ChatMessage, next: ChatMessage, before: readonly ResponsesItem[]): ChatMessage | null {
  if (last.role !== "assistant" || next.role !== "assistant") return null;
  const calls = listIn(next["tool_calls"]);
  if (calls.length > 0) return { ...last, tool_calls: [...listIn(last["tool_calls"]), ...calls] };
  const joined = { ...last, ...markOf(next), content: joinedContent(last.content, next.content) };
  if (listIn(last["tool_calls"]).length > 0) return joined;
  const said = text(last.content);
  const isBehind = before.some((item) => unsealed(record(item)["encrypted_content"])?.behind === said.length);
  return said === "" || !isBehind || typeof next.content !== "string" ? null : joined;
}

function joinedContent(first: ChatMessage["content"], second: ChatMessage["content"]): ChatMessage["content"] {
  if (second == null || second.length === 0) return first;
  if (first == null || first.length === 0) return second;
  if (typeof first === "string" && typeof second === "string") return first + second;
  return [...partsOf(first), ...partsOf(second)];
}

function partsOf(content: string | readonly ContentPart[]): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** A text that is left out, as OpenAI's clients do with those of sealed items, is the sealed one. */
function takeReasoning(reasoning: ReturnedReasoning, item: ResponsesItem): void {
  const { content, summary, encrypted_content } = record(item);
  const carried = unsealed(encrypted_content);
  const said = textsIn(content).join("");
  const summed = carried?.text === undefined ? textsIn(summary).join("\n\n") : "";
  reasoning.take(said || summed || null, carried);
}

function textsIn(parts: unknown): readonly string[] {
  return listIn(parts).map((part) => text(record(part)["text"]));
}

function withReasoning(message: ChatMessage, reasoning: ReturnedReasoning | undefined): ChatMessage {
  if (reasoning === undefined) return message;
  const { tool_calls: calls, ...said } = message;
  return {
    ...(said as ChatMessage),
    ...reasoning.fields(said.content),
    ...(Array.isArray(calls) ? { tool_calls: calls.map((call) => reasoning.withSignature(record(call))) } : {}),
  };
}

function completionMessage({ [ITEM_FORM]: form, ...own }: ChatMessage): ChatMessage {
  const { role, content } = own;
  const message = { ...own, ...itemsMark(own, markOf(record(record(form)["fields"]))) };
  const said = role === "developer" ? { ...message, role: "system" } : message;
  if (!Array.isArray(content)) return said;
  const parts = (content as readonly ContentPart[]).map(completionPart);
  const texts = parts.map(({ text }) => text);
  // A text has no place for a mark.
  const isText = parts.every(
    ({ type, text, cache_control: mark }) => type === "text" && typeof text === "string" && mark == null,
  );
  return { ...said, content: isText && role !== "user" ? texts.join("") : parts };
}

/** An item's mark, on its call where it is one. */
function itemsMark({ tool_calls: calls }: ChatMessage, mark: JsonObject): JsonObject {
  if (!Array.isArray(calls) || Object.keys(mark).length === 0) return mark;
  return { tool_calls: (calls as readonly unknown[]).map((call) => ({ ...record(call), ...mark })) };
}

function completionPart(part: ContentPart): ContentPart {
  switch (part.type) {
    case "text":
      return { type: "text", text: part["text"], ...markOf(part) };
    case "input_image": {
      const { image_url: url, detail } = part;
      return { type: "image_url", image_url: { url, ...(detail == null ? {} : { detail }) }, ...markOf(part) };
    }
    case "input_file": {
      const { type: _type, cache_control: _mark, ...file } = part;
      return { type: "file", file, ...markOf(part) };
    }
    default:
      return part;
  }
}

function markOf({ cache_control: mark }: JsonObject): JsonObject {
  return mark == null ? {} : { cache_control: mark };
}

function tools({ tools: given, tool_choice: choice }: JsonObject): JsonObject {
  const list = listIn(given).map((tool) => {
    const { type, ...called } = record(tool);
    if (type !== "function")
      throw new NoChatFormError(`Tools of type '${type}' need an engine that has /responses.`, "tools");
    return { type, function: called };
  });
  const { type, name } = record(choice);
  const chosen = type === "function" ? { type, function: { name } } : choice;
  const isKnown = typeof chosen === "string" || type === "function";
  return {
    ...(list.length === 0 ? {} : { tools: list }),
    ...(list.length > 0 && isKnown ? { tool_choice: chosen } : {}),
  };
}

/** The answer's length, its reasoning and its form. */
function output(body: JsonObject): JsonObject {
  const { effort } = record(body["reasoning"]);
  const { format, verbosity } = record(body["text"]);
  const { type, ...schema } = record(format);
  return {
    ...(body["max_output_tokens"] == null ? {} : { max_tokens: body["max_output_tokens"] }),
    ...(effort == null ? {} : { reasoning_effort: effort }),
    ...(verbosity == null ? {} : { verbosity }),
    ...(type === "json_schema" ? { response_format: { type, json_schema: schema } } : {}),
    ...(type === "json_object" ? { response_format: { type } } : {}),
  };
}
