import type { ChatMessage, ContentPart } from "../../core/index.js";
import { type JsonObject, listIn, record } from "../../core/text/json.js";
import { forShortAnswer } from "../api/api.js";
import { formOf, isInstructions, OPAQUE, PART_TYPE, type ResponsesItem, textTypeOf } from "./history.js";

/** OpenAI's least `max_output_tokens`. */
const LEAST_OUTPUT = 16;

export function withPrompt(body: JsonObject, prompt: readonly ChatMessage[]): JsonObject {
  const head = prompt.find(isInstructions)?.content;
  const instructions = typeof head === "string" ? { instructions: head } : {};
  return { ...body, ...instructions, input: inputOf(prompt, body["input"]) };
}

/** Sends only the end of a prompt, because the engine has the rest: the `added` messages of this request, with their memories. */
export function withEndOf(body: JsonObject, prompt: readonly ChatMessage[], added: readonly ChatMessage[]): JsonObject {
  const hasOwnMessage = added.at(-1)?.role === "tool" && prompt.at(-1)?.role === "user";
  const end = prompt.slice(-(added.length + (hasOwnMessage ? 1 : 0)));
  return { ...body, input: inputOf(end, body["input"]) };
}

/** The engine does not store the answer. */
export function warmUp(body: JsonObject, prefix: readonly ChatMessage[]): JsonObject {
  const { background: _background, ...same } = forShortAnswer(body);
  return { ...withPrompt(same, prefix), store: false, max_output_tokens: LEAST_OUTPUT };
}

/** Text, if the client's was text and there is only one message. */
function inputOf(messages: readonly ChatMessage[], own: unknown): string | readonly ResponsesItem[] {
  const said = messages.filter((message) => !isInstructions(message));
  const [only] = said;
  const isText = typeof own === "string" && said.length === 1 && only?.role === "user";
  return isText && typeof only.content === "string" ? only.content : said.flatMap(itemsOfMessage);
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

function itemPart(part: ContentPart, role: string): ContentPart {
  if (part.type !== "text" || typeof part["text"] !== "string") return part;
  const { [PART_TYPE]: type, ...own } = part;
  return { ...own, type: typeof type === "string" ? type : textTypeOf(role) };
}
