/*
 * Anthropic's messages as the chat messages that memprefix composes, and back. Without memories the way back gives what was given: the
 * same blocks with the same fields, in the same order; thinking, its signatures, calls and documents are content parts that nobody reads.
 */

import type { ChatMessage, ContentPart } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import { type JsonObject, listIn, record, text } from "../../core/text/json.js";
import { ReturnedReasoning, unsealed } from "../turns/reasoning.js";

/** The body of a `POST /v1/messages`, as a client sent it. */
export type MessagesBody = JsonObject;

/**
 * Field of a chat message that says whether it belongs to the same message of Anthropic's as the one before it. Absent: it does where it is
 * the user's and stands after a tool's result, so that memories after a result join its message.
 */
const JOINED = "anthropic_joined";
/**
 * Field of a chat message with the system messages that stand after its message: the API takes them there, also last, where a chat has to
 * end with a question or a tool's result.
 * Source: https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 */
const BEHIND = "anthropic_behind";
/** Fields of a tool's result whose names mean something else in a chat message. */
const RESERVED = ["role", "tool_call_id", JOINED, BEHIND] as const;

const MARK = "cache_control";

/**
 * Converts the instructions and messages of Anthropic's request into chat messages: the instructions become a system message, each tool result
 * a message of its own with the role `tool`; a system message after the user's goes with that; other content stays as it is. Null where the body has no messages in Anthropic's form.
 * Source: https://platform.claude.com/docs/en/api/messages
 */
export function chatOfMessages(body: MessagesBody): readonly ChatMessage[] | null {
  const { system, messages } = body;
  if (!Array.isArray(messages) || !(system == null || isContent(system))) return null;
  const chat: ChatMessage[] = system == null ? [] : [{ role: "system", content: system as ChatMessage["content"] }];
  const joins = new Joins();
  for (const given of messages as readonly unknown[]) {
    const last = chat.at(-1);
    if (record(given)["role"] === "system" && (last?.role === "user" || last?.role === "tool")) {
      chat[chat.length - 1] = { ...last, [BEHIND]: [...systemBehind(last), given] };
      continue;
    }
    const pieces = piecesOf(given);
    if (pieces === null) return null;
    for (const [at, piece] of pieces.entries()) chat.push(joins.marked(piece, at > 0));
  }
  return chat;
}

/**
 * Puts composed messages into Anthropic's request, in place of the instructions and messages from which {@link chatOfMessages} made them.
 * Memories are text blocks: before the user's own, or after tool results.
 */
export function withComposedMessages(body: MessagesBody, composed: readonly ChatMessage[]): MessagesBody {
  const [head, ...others] = composed;
  const isGiven = body["system"] != null;
  // Instructions that were nothing but memories of the client's are taken out.
  const hasSystem = isGiven && head?.role === "system";
  const sent = {
    ...body,
    ...(hasSystem ? { system: head.content } : {}),
    messages: anthropicMessagesOf(hasSystem ? others : composed, givenResults(body["messages"])),
  };
  if (!isGiven || hasSystem) return sent;
  const { system: _none, ...bare }: MessagesBody = sent;
  return bare;
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
    const { [JOINED]: mark, [BEHIND]: _behind, ...message } = composed;
    const isJoined = joins.take(message.role, mark);
    if (!isJoined) endMessage();
    const last = messages.at(-1);
    const blocks = message.role === "tool" ? [resultBlock(message, given)] : null;
    if (isJoined && last !== undefined) {
      last.blocks ??= blocksOf(last.message.content);
      append(last.blocks, blocks ?? blocksOf(message.content));
    } else messages.push({ message: message as ChatMessage, blocks });
    append(waiting, systemBehind(composed));
  }
  endMessage();
  return messages.map(({ message, blocks }) => {
    if (blocks === null) return message;
    return message.role === "tool" ? { role: "user", content: blocks } : { ...message, content: blocks };
  });
}

/** The system messages after a chat message's own message. */
function systemBehind(message: ChatMessage): readonly ChatMessage[] {
  return listIn(message[BEHIND]) as readonly ChatMessage[];
}

/** A chat message without what belongs to Anthropic's form alone. */
function withoutAnthropicForm({ [JOINED]: _joined, [BEHIND]: _behind, ...message }: ChatMessage): ChatMessage {
  return message as ChatMessage;
}

/** Which chat messages belong to one message of Anthropic's; the same rule in both directions. */
class Joins {
  /** Whether the last message is a tool's result, or belongs to one. */
  #isBehindResult = false;

  /** The message with the mark that it needs. */
  marked(message: ChatMessage, isJoined: boolean): ChatMessage {
    const byDefault = this.#byDefault(message.role);
    this.#move(message.role, isJoined);
    return isJoined === byDefault ? message : { ...message, [JOINED]: isJoined };
  }

  /** Whether the next message, with this mark, belongs to the one before it. */
  take(role: string, mark: unknown): boolean {
    const isJoined = typeof mark === "boolean" ? mark : this.#byDefault(role);
    this.#move(role, isJoined);
    return isJoined;
  }

  #byDefault(role: string): boolean {
    return this.#isBehindResult && (role === "user" || role === "tool");
  }

  #move(role: string, isJoined: boolean): void {
    this.#isBehindResult = role === "tool" || (isJoined && this.#isBehindResult);
  }
}

/** A message of Anthropic's as chat messages: one, or one for each tool result and for what stands between. Null: it is none. */
function piecesOf(given: unknown): readonly ChatMessage[] | null {
  const { role, content, ...more } = record(given);
  const hasMarks = Object.hasOwn(more, JOINED) || Object.hasOwn(more, BEHIND);
  if (typeof role !== "string" || hasMarks || !isContent(content)) return null;
  if (role !== "user" || !Array.isArray(content) || !content.some(isResult)) return [given as ChatMessage];
  // Of several chat messages none could hold the other fields.
  if (Object.keys(more).length > 0) return null;
  const pieces: ChatMessage[] = [];
  let between: ContentPart[] = [];
  const endBetween = () => {
    if (between.length > 0) pieces.push({ role, content: between });
    between = [];
  };
  for (const block of content as readonly ContentPart[]) {
    if (!isResult(block)) {
      between.push(block);
      continue;
    }
    endBetween();
    if (RESERVED.some((field) => Object.hasOwn(block, field))) return null;
    if (block["content"] != null && !isContent(block["content"])) return null;
    pieces.push(resultMessage(block));
  }
  endBetween();
  return pieces;
}

/** A text, or blocks. */
function isContent(given: unknown): boolean {
  if (!Array.isArray(given)) return typeof given === "string";
  return (given as readonly unknown[]).every((block) => typeof record(block)["type"] === "string");
}

function isResult(block: unknown): boolean {
  return record(block)["type"] === "tool_result";
}

/** The block's fields keep their order, by which the way back restores it. */
function resultMessage(block: ContentPart): ChatMessage {
  const fields = Object.entries(block).map(([name, value]): [string, unknown] => {
    if (name === "type") return ["role", "tool"];
    return name === "tool_use_id" ? ["tool_call_id", value] : [name, value];
  });
  return Object.fromEntries(fields) as unknown as ChatMessage;
}

/** A breakpoint of memprefix's inside a result moves to the result: only top-level blocks are cached. The client's stay where they are. */
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

/** Parts without breakpoints, and the last breakpoint; null where there is none. */
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

/** The client's tool results by the call that they answer. */
function givenResults(messages: unknown): ReadonlyMap<unknown, JsonObject> {
  const blocks = listIn(messages).flatMap((message) => listIn(record(message)["content"]));
  return new Map(blocks.filter(isResult).map((block) => [record(block)["tool_use_id"], record(block)]));
}

function blocksOf(content: ChatMessage["content"]): ContentPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return [...(content ?? [])];
}

/** What the engine takes beside plain chat completions. */
export interface ChatDialect {
  /** Whether breakpoints of Anthropic's are kept, as gateways to Anthropic's models take them. */
  readonly keepsMarks: boolean;
  /** Whether it is OpenAI's own API, which rejects `max_tokens` and `top_k`. */
  readonly isOpenAi: boolean;
  /** Whether it takes reasoning by all names, and reads the one that it knows. */
  readonly takesAllNames?: boolean;
}

/** Fields that are converted, or that no other engine has. Others pass unmodified. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  ...["system", "messages", "max_tokens", "stop_sequences", "metadata", "tools", "tool_choice", "thinking"],
  ...["output_config", "cache_control", "container", "context_management", "diagnostics", "inference_geo"],
  ...["mcp_servers", "service_tier", "speed", "user_profile_id", "workspace_id"],
]);

/**
 * Converts the body of a `POST /v1/messages` into a chat completion. Thinking goes back in the fields in which the engine gave it, without
 * signatures of Anthropic's; tools that Anthropic runs itself are left out. Null where the body has no messages.
 * Source: https://platform.claude.com/docs/en/api/messages
 */
export function toChatCompletion(body: MessagesBody, dialect: ChatDialect): JsonObject | null {
  const chat = chatOfMessages(body);
  if (chat === null) return null;
  const passed = Object.entries(body).filter(
    ([name]) => !NOT_PASSED.has(name) && !(dialect.isOpenAi && name === "top_k"),
  );
  const { max_tokens, stop_sequences, metadata, output_config } = body;
  const { user_id } = record(metadata);
  const { effort, format } = record(output_config);
  return {
    ...Object.fromEntries(passed),
    messages: chat
      .flatMap((message) => [message, ...systemBehind(message)])
      .map((message) => chatMessage(message, dialect)),
    ...(max_tokens === undefined ? {} : { [dialect.isOpenAi ? "max_completion_tokens" : "max_tokens"]: max_tokens }),
    ...(listIn(stop_sequences).length > 0 ? { stop: stop_sequences } : {}),
    ...(typeof user_id === "string" ? { user: user_id } : {}),
    ...(typeof effort === "string" ? { reasoning_effort: effort } : {}),
    ...(record(format)["type"] === "json_schema"
      ? { response_format: { type: "json_schema", json_schema: { name: "answer", schema: record(format)["schema"] } } }
      : {}),
    ...tools(body, dialect),
    ...(dialect.keepsMarks && body["cache_control"] != null ? { cache_control: body["cache_control"] } : {}),
    ...(body["stream"] === true ? { stream_options: { include_usage: true } } : {}),
  };
}

function tools({ tools: given, tool_choice }: MessagesBody, { keepsMarks }: ChatDialect): object {
  const own = listIn(given)
    .map(record)
    .filter((tool) => tool["input_schema"] !== undefined);
  if (own.length === 0) return {};
  const { type, name, disable_parallel_tool_use } = record(tool_choice);
  const choices: JsonObject = {
    auto: "auto",
    none: "none",
    any: "required",
    tool: { type: "function", function: { name } },
  };
  const choice = choices[text(type)];
  return {
    tools: own.map(({ name: called, description, input_schema, strict, cache_control }) => ({
      type: "function",
      function: {
        name: called,
        ...(description == null ? {} : { description }),
        parameters: input_schema,
        ...(strict === true ? { strict } : {}),
      },
      ...(keepsMarks && cache_control != null ? { cache_control } : {}),
    })),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {}),
  };
}

function chatMessage(message: ChatMessage, dialect: ChatDialect): ChatMessage {
  const { role, content } = message;
  if (role === "tool") {
    const mark = dialect.keepsMarks && message["cache_control"] != null;
    return {
      role,
      tool_call_id: message["tool_call_id"],
      content: asText(chatContent(content, dialect), "\n"),
      ...(mark ? { cache_control: message["cache_control"] } : {}),
    };
  }
  if (role === "assistant") return assistantMessage(message, dialect);
  const others = withoutAnthropicForm(message);
  const converted = chatContent(content, dialect);
  return { ...others, role, content: role === "user" ? converted : asText(converted, "\n") };
}

function assistantMessage({ content }: ChatMessage, dialect: ChatDialect): ChatMessage {
  if (!Array.isArray(content)) return { role: "assistant", content: content ?? "" };
  const calls = content.filter(({ type }) => type === "tool_use");
  const said = asText(
    chatContent(
      content.filter(({ type }) => type === "text"),
      dialect,
    ),
    "",
  );
  const reasoning = new ReturnedReasoning();
  for (const block of content) takeThinking(reasoning, block);
  return {
    role: "assistant",
    content: said.length === 0 && calls.length > 0 ? null : said,
    ...reasoning.fields(said),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ id, name, input, cache_control: mark }) =>
            reasoning.withSignature({
              id,
              type: "function",
              function: { name, arguments: JSON.stringify(input ?? {}) },
              ...(dialect.keepsMarks && mark != null ? { cache_control: mark } : {}),
            }),
          ),
        }),
  };
}

function takeThinking(reasoning: ReturnedReasoning, block: ContentPart): void {
  if (block.type === "thinking") reasoning.take(text(block["thinking"]), unsealed(block["signature"]));
  else if (block.type === "redacted_thinking") reasoning.take(null, unsealed(block["data"]));
}

/** Plain texts as one: chat templates take no parts there, or join them in ways of their own. */
function asText(content: string | readonly ContentPart[], between: string): string | readonly ContentPart[] {
  if (typeof content === "string") return content;
  const arePlain = content.every((part) => part.type === "text" && Object.keys(part).length === 2);
  return arePlain ? content.map((part) => text(part["text"])).join(between) : content;
}

function chatContent(content: ChatMessage["content"], dialect: ChatDialect): string | readonly ContentPart[] {
  if (typeof content === "string") return content;
  return (content ?? []).flatMap((block) => chatParts(block, dialect));
}

/** The parts of a block: one, or those of the text and images that a document is made of, of which the last has its mark. */
function chatParts(block: ContentPart, dialect: ChatDialect): readonly ContentPart[] {
  const { type, content } = record(block["source"]);
  const isMade = block.type === "document" && type === "content" && isContent(content);
  const parts = isMade ? blocksOf(content as ChatMessage["content"]).map((part) => chatPart(part, dialect)) : [];
  const mark = block[MARK];
  if (parts.length === 0) return [chatPart(block, dialect)];
  if (!dialect.keepsMarks || mark == null) return parts;
  return parts.map((part, at) => (at < parts.length - 1 ? part : { ...part, [MARK]: mark }));
}

function chatPart(block: ContentPart, { keepsMarks }: ChatDialect): ContentPart {
  const { cache_control: mark, ...bare } = block;
  const marked = keepsMarks && mark != null ? { cache_control: mark } : {};
  const { type: kind, media_type, data, url, file_id } = record(block["source"]);
  const address = kind === "base64" ? `data:${text(media_type)};base64,${text(data)}` : text(url);
  switch (block.type) {
    case "text": {
      const { citations: _citations, ...plain } = bare;
      return { ...plain, type: "text", ...marked };
    }
    case "image":
      if (address === "") break;
      return { type: "image_url", image_url: { url: address }, ...marked };
    case "document": {
      if (kind === "text") return { type: "text", text: text(data), ...marked };
      if (kind !== "file" && address === "") break;
      const filename = typeof block["title"] === "string" ? block["title"] : "document.pdf";
      const file = kind === "file" ? { file_id } : { filename, file_data: address };
      return { type: "file", file, ...marked };
    }
  }
  // Search results, an image of Anthropic's files and the like: their JSON says more than nothing.
  return { type: "text", text: JSON.stringify(bare), ...marked };
}
