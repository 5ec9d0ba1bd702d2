import type { ChatMessage, ContentPart } from "../../core/index.js";
import { ITEM_FORM } from "../../core/index.js";
import { unsealed } from "../turns/carried-reasoning.js";
import { ReturnedReasoning } from "../turns/returned-reasoning.js";
import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";
import { isOpaque, messagesOf, opaqueTypeOf, type ResponsesItem, reasoningOf } from "./responses-items.js";

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
 * message before them, and reasoning the message that it led to. Fields that neither API names pass unmodified. Throws {@link NoChatFormError}
 * for items and tools that chats do not have, and for an id of a response.
 * Source: https://platform.openai.com/docs/guides/migrate-to-responses
 */
export function toChatCompletion(body: JsonObject): JsonObject {
  const previous = body["previous_response_id"];
  if (typeof previous === "string") {
    const message = `Previous response with id '${previous}' not found.`;
    throw new NoChatFormError(message, "previous_response_id", "previous_response_not_found");
  }
  const messages = messagesOf(body["input"], body["instructions"]);
  if (messages === null) throw new NoChatFormError("`input` must be a text or a list of items.", "input");
  const same = Object.entries(body).filter(([field, value]) => !RESPONSES_ONLY.has(field) && value !== null);
  return {
    ...Object.fromEntries(same),
    messages: chatMessages(messages),
    ...tools(body),
    ...output(body),
    ...(body["stream"] === true ? { stream_options: { include_usage: true } } : {}),
  };
}

function chatMessages(messages: readonly ChatMessage[]): readonly ChatMessage[] {
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
    const next = chatMessage(message);
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

/** The assistant's message with the next one in it: its calls, or the text after what was thought in the middle of it. Null: another message. */
function joinedTo(last: ChatMessage, next: ChatMessage, before: readonly ResponsesItem[]): ChatMessage | null {
  if (last.role !== "assistant" || next.role !== "assistant") return null;
  const calls = listIn(next["tool_calls"]);
  if (calls.length > 0) return { ...last, tool_calls: [...listIn(last["tool_calls"]), ...calls] };
  const said = text(last.content);
  const isBehind = before.some((item) => unsealed(record(item)["encrypted_content"])?.behind === said.length);
  if (said === "" || !isBehind || typeof next.content !== "string") return null;
  return { ...last, content: said + next.content };
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

function chatMessage({ [ITEM_FORM]: form, ...own }: ChatMessage): ChatMessage {
  const { role, content } = own;
  const message = { ...own, ...itemsMark(own, markOf(record(record(form)["fields"]))) };
  const said = role === "developer" ? { ...message, role: "system" } : message;
  if (!Array.isArray(content)) return said;
  const parts = (content as readonly ContentPart[]).map(chatPart);
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

function chatPart(part: ContentPart): ContentPart {
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
