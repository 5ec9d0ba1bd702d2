import { APIS } from "../../src/apis/apis.js";
import type { ChatMessage, ContentPart } from "../../src/core/index.js";
import { isRecord, type JsonObject, listIn, record, text } from "../../src/core/text/json.js";

/*
 * A conversation as clients of the other APIs say it. memprefix has no such conversion: tests say one conversation once, and try it by every API.
 */

/** The routes of all APIs, with a body for each that says the same. */
export function doorsOf(messages: readonly ChatMessage[]): readonly (readonly [path: string, body: JsonObject])[] {
  return [
    ["/v1/chat/completions", { model: "m", messages }],
    ["/v1/messages", { model: "m", ...messagesBodyOf(messages) }],
    ["/v1/responses", { model: "m", input: itemsOf(messages), store: false }],
  ];
}

/** As the items of a Responses request. */
export function itemsOf(messages: readonly ChatMessage[]): readonly JsonObject[] {
  return listIn(APIS.responses.withPrompt({}, messages)["input"]).map(record);
}

/** As the instructions and messages of a request to Anthropic's API. */
export function messagesBodyOf(messages: readonly ChatMessage[]): JsonObject {
  const [head] = messages;
  const others = messages.filter(({ role }) => role !== "system");
  return {
    max_tokens: 99,
    ...(head?.role === "system" ? { system: head.content } : {}),
    messages: others.map(messageOf),
  };
}

function messageOf({ role, content, tool_call_id, tool_calls }: ChatMessage): JsonObject {
  if (role === "tool") return { role: "user", content: [{ type: "tool_result", tool_use_id: tool_call_id, content }] };
  const calls = listIn(tool_calls).map(record);
  if (calls.length === 0) return { role, content: typeof content === "string" ? content : blocksOf(content) };
  return { role, content: [...blocksOf(content), ...calls.map(useOf)] };
}

function blocksOf(content: ChatMessage["content"]): readonly JsonObject[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return (content ?? []).map(blockOf);
}

function blockOf(part: ContentPart): JsonObject {
  const { image_url: image, file } = part;
  if (isRecord(image)) return { type: "image", source: sourceOf(text(image["url"])) };
  return isRecord(file) ? { type: "document", source: sourceOf(text(file["file_data"])) } : part;
}

function sourceOf(url: string): JsonObject {
  const [, media_type, data] = /^data:([^;]+);base64,(.*)$/.exec(url) ?? [];
  return data === undefined ? { type: "url", url } : { type: "base64", media_type, data };
}

function useOf({ id, function: called }: JsonObject): JsonObject {
  const { name, arguments: json } = record(called);
  return { type: "tool_use", id, name, input: JSON.parse(text(json)) as unknown };
}
