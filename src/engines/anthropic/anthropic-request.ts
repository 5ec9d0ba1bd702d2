import { type ChatMessage, type ContentPart, instructionsAtHead } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import { isRecord, type JsonObject, listIn, parsedJson, record, text, withExactNumbers } from "../../core/text/json.js";
import { markOfTool } from "../adapters/engine-adapter.js";
import { ANTHROPIC_BLOCKS } from "../turns/reasoning.js";

/** The body of an OpenAI chat completion, as far as it is converted. */
export interface ChatBody {
  readonly messages: readonly ChatMessage[];
  readonly [field: string]: unknown;
}

/** The body of a `POST /v1/messages`. */
export interface AnthropicRequest {
  readonly max_tokens: number;
  readonly system?: readonly AnthropicBlock[];
  readonly messages: readonly AnthropicMessage[];
  readonly [field: string]: unknown;
}

/** `/v1/messages` requires `max_tokens`, which OpenAI does not; every model supports this many. */
export const DEFAULT_MAX_TOKENS = 4_096;

/** Fields that are Anthropic's, or the same in both. Others are dropped, as Anthropic rejects unknown ones. */
const SAME_IN_BOTH = [
  ...["model", "stream", "top_p", "top_k", "thinking", "cache_control", "container", "context_management"],
  ...["inference_geo", "output_config", "speed", "mcp_servers", "stop_sequences", "diagnostics"],
] as const;

/**
 * Converts the body of an OpenAI chat completion into one of Anthropic's Messages API. Breakpoints on content parts, of `emit` or the
 * caller, move to the blocks of `system`, messages and tools.
 * Source: https://platform.claude.com/docs/en/api/messages
 */
export function toAnthropicMessages(body: ChatBody): AnthropicRequest {
  const head = instructionsAtHead(body.messages);
  const system = instructionBlocks(body.messages.slice(0, head));
  const same = SAME_IN_BOTH.filter((field) => body[field] != null).map((field) => [field, body[field]] as const);
  return {
    ...Object.fromEntries(same),
    max_tokens: whole(body["max_completion_tokens"]) ?? whole(body["max_tokens"]) ?? DEFAULT_MAX_TOKENS,
    ...(system.length === 0 ? {} : { system }),
    messages: anthropicMessages(body.messages.slice(head)),
    ...sampling(body),
    ...tools(body),
    ...output(body),
  };
}

function sampling({ temperature, stop, user }: ChatBody): JsonObject {
  const stops = (typeof stop === "string" ? [stop] : listIn(stop)).filter((text) => typeof text === "string");
  return {
    // OpenAI's scale ends at 2, Anthropic's at 1.
    ...(typeof temperature === "number" ? { temperature: Math.min(1, temperature) } : {}),
    ...(stops.length === 0 ? {} : { stop_sequences: stops }),
    ...(typeof user === "string" ? { metadata: { user_id: user } } : {}),
  };
}

function tools(body: ChatBody): JsonObject {
  const converted = listIn(body["tools"]).map(anthropicTool);
  const choice = toolChoice(body["tool_choice"]);
  const oneAtATime = body["parallel_tool_calls"] === false && converted.length > 0;
  const chosen = choice ?? (oneAtATime ? { type: "auto" } : null);
  return {
    ...(converted.length === 0 ? {} : { tools: converted }),
    ...(chosen === null || converted.length === 0
      ? {}
      : {
          tool_choice: oneAtATime && chosen.type !== "none" ? { ...chosen, disable_parallel_tool_use: true } : chosen,
        }),
  };
}

/** Converts a function; other tools pass unmodified as Anthropic's own. */
function anthropicTool(tool: unknown): unknown {
  if (record(tool)["type"] !== "function") return tool;
  const { name, description, parameters, strict } = record(record(tool)["function"]);
  const mark = markOfTool(tool);
  return {
    name,
    ...(description == null ? {} : { description }),
    input_schema: parameters ?? { type: "object", properties: {} },
    ...(strict === true ? { strict } : {}),
    ...(mark === undefined ? {} : { cache_control: mark }),
  };
}

function toolChoice(choice: unknown): { readonly type: string; readonly name?: unknown } | null {
  if (choice === "auto" || choice === "none") return { type: choice };
  if (choice === "required") return { type: "any" };
  const { name } = record(record(choice)["function"]);
  return name === undefined ? null : { type: "tool", name };
}

const EFFORTS = new Set<unknown>(["low", "medium", "high", "xhigh", "max"]);

/** The answer's JSON schema, and the reasoning effort. */
function output(body: ChatBody): JsonObject {
  const format = record(body["response_format"]);
  const { schema } = record(format["json_schema"]);
  const effort = body["reasoning_effort"];
  const config = {
    ...record(body["output_config"]),
    ...(format["type"] === "json_schema" && schema !== undefined ? { format: { type: "json_schema", schema } } : {}),
    ...(EFFORTS.has(effort) ? { effort } : {}),
  };
  return Object.keys(config).length === 0 ? {} : { output_config: config };
}

function whole(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : null;
}

/** A content block of `/v1/messages`. */
export interface AnthropicBlock {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A message of `/v1/messages`. */
export interface AnthropicMessage {
  readonly role: "user" | "assistant";
  readonly content: readonly AnthropicBlock[];
}

/**
 * Field of such a block that says how much of its message stands before it: characters of text, and calls. Absent: nothing does. The API
 * takes thinking, and results of its own tools, in their order only.
 */
const PLACE = "anthropic_place";

/** What stands before a block. */
export interface KeptPlace {
  readonly characters: number;
  readonly calls: number;
}

/** A block as it is kept beside a chat message's text and calls. */
export function keptBlock(block: AnthropicBlock, { characters, calls }: KeptPlace): AnthropicBlock {
  return characters === 0 && calls === 0 ? block : { ...block, [PLACE]: { characters, calls } };
}

/**
 * Converts OpenAI's messages after the instructions. As the API requires, consecutive messages of one role become one, with tool results
 * first. Instructions in the middle become user text, because only some models take them there.
 * Source: https://platform.claude.com/docs/en/api/messages, https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview
 */
function anthropicMessages(messages: readonly ChatMessage[]): AnthropicMessage[] {
  const converted: { role: AnthropicMessage["role"]; content: AnthropicBlock[] }[] = [];
  for (const message of messages) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = role === "assistant" ? assistantBlocks(message) : userBlocks(message);
    const last = converted.at(-1);
    if (content.length === 0) continue;
    if (last?.role === role) append(last.content, content);
    else converted.push({ role, content: [...content] });
  }
  return converted;
}

/** The text blocks of instructions; none where they are empty. */
function instructionBlocks(messages: readonly ChatMessage[]): AnthropicBlock[] {
  return messages.flatMap((message) => withoutBlank(partBlocks(message)));
}

function userBlocks(message: ChatMessage): readonly AnthropicBlock[] {
  if (message.role === "tool") return [toolResult(message, message["tool_call_id"])];
  // OpenAI's older function calls have no id, only a name.
  if (message.role === "function") return [toolResult(message, message["name"])];
  return withoutBlank(partBlocks(message));
}

/** A mark inside a result moves to the result, which alone may carry one. */
function toolResult(message: ChatMessage, id: unknown): AnthropicBlock {
  const blocks = partBlocks(message);
  const mark = blocks.findLast(({ cache_control }) => cache_control != null)?.["cache_control"];
  return {
    type: "tool_result",
    tool_use_id: text(id),
    content: withoutBlank(blocks).map(({ cache_control: _mark, ...block }) => block as AnthropicBlock),
    ...(mark === undefined ? {} : { cache_control: mark }),
  };
}

function assistantBlocks(message: ChatMessage): readonly AnthropicBlock[] {
  const before = message["function_call"] == null ? [] : [{ function: message["function_call"] }];
  const texts = partBlocks(message);
  const uses = [...listIn(message["tool_calls"]), ...before].map(toolUse);
  // Blank texts count for the places, so they are left out last.
  const blocks = withoutBlank(inOrder(listIn(message[ANTHROPIC_BLOCKS]).map(record), texts, uses));
  // Thinking alone is no message: the API refuses one that ends with it.
  return blocks.every(isThinking) ? [] : blocks;
}

/** Kept blocks among the texts and calls of their message, where they stood. */
function inOrder(
  kept: readonly JsonObject[],
  texts: readonly AnthropicBlock[],
  uses: readonly AnthropicBlock[],
): readonly AnthropicBlock[] {
  const blocks: AnthropicBlock[] = [];
  let [left, called] = [texts, 0];
  let written = 0;
  for (const { [PLACE]: place, ...block } of kept) {
    const { characters, calls } = record(place);
    if (typeof characters === "number" && characters > written) {
      const { before, behind } = splitTexts(left, characters - written);
      append(blocks, before);
      written = characters;
      left = behind;
    }
    if (typeof calls === "number" && calls > called) {
      // Calls stand after the text.
      append(blocks, [...left, ...uses.slice(called, calls)]);
      left = [];
      called = calls;
    }
    blocks.push(block as AnthropicBlock);
  }
  return [...blocks, ...left, ...uses.slice(called)];
}

/** Text blocks up to so many characters, and the others; one that lies across is split. */
function splitTexts(
  blocks: readonly AnthropicBlock[],
  characters: number,
): { readonly before: readonly AnthropicBlock[]; readonly behind: readonly AnthropicBlock[] } {
  let wanted = characters;
  for (const [at, block] of blocks.entries()) {
    const said = text(block["text"]);
    if (wanted < said.length) {
      const { cache_control: _mark, ...bare } = block;
      const first = { ...(bare as AnthropicBlock), text: said.slice(0, wanted) };
      const second = { ...block, text: said.slice(wanted) };
      return {
        before: [...blocks.slice(0, at), ...(wanted > 0 ? [first] : [])],
        behind: [second, ...blocks.slice(at + 1)],
      };
    }
    wanted -= said.length;
    if (wanted === 0) return { before: blocks.slice(0, at + 1), behind: blocks.slice(at + 1) };
  }
  return { before: blocks, behind: [] };
}

function toolUse(call: unknown): AnthropicBlock {
  const { id, function: called, cache_control: mark } = record(call);
  const { name, arguments: input } = record(called);
  return {
    type: "tool_use",
    id: text(id ?? name),
    name: text(name),
    input: inputOf(input),
    ...(mark == null ? {} : { cache_control: mark }),
  };
}

/** A call's arguments as the API has them, which takes objects only; a model's invalid JSON is kept as `arguments`. */
export function inputOf(json: unknown): JsonObject {
  if (typeof json !== "string" || json.trim() === "") return {};
  const parsed = parsedJson(withExactNumbers(json));
  return isRecord(parsed) && !Array.isArray(parsed) ? parsed : { arguments: json };
}

/** Blocks without texts of nothing but white space, which the API refuses. A mark on one moves to the block before it. */
function withoutBlank(blocks: readonly AnthropicBlock[]): AnthropicBlock[] {
  const kept: AnthropicBlock[] = [];
  for (const block of blocks) {
    if (!isBlank(block)) {
      kept.push(block);
      continue;
    }
    const { cache_control: mark } = block;
    const marked = mark == null ? -1 : kept.findLastIndex((before) => !isThinking(before));
    if (marked >= 0) kept[marked] = { cache_control: mark, ...(kept[marked] as AnthropicBlock) };
  }
  return kept;
}

function isBlank(block: AnthropicBlock): boolean {
  return block.type === "text" && typeof block["text"] === "string" && block["text"].trim() === "";
}

/** It cannot carry a mark. */
function isThinking({ type }: AnthropicBlock): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

/** A message's content as blocks; a mark on the message moves to the last. */
function partBlocks({ content, cache_control: mark }: ChatMessage): readonly AnthropicBlock[] {
  if (content === null || content === undefined) return [];
  const parts: readonly ContentPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const blocks = parts.map(partBlock);
  return mark == null
    ? blocks
    : blocks.map((block, at) => (at < blocks.length - 1 ? block : { cache_control: mark, ...block }));
}

/** Converts OpenAI's parts; others pass unmodified as Anthropic's own, as in gateways. */
function partBlock(part: ContentPart): AnthropicBlock {
  const mark = part["cache_control"] == null ? {} : { cache_control: part["cache_control"] };
  switch (part.type) {
    case "refusal":
      return { type: "text", text: text(part["refusal"]), ...mark };
    case "image_url": {
      const { url } = record(part["image_url"]);
      return { type: "image", source: sourceOf(text(url)), ...mark };
    }
    case "file": {
      const { file_data: data, file_id: id, filename } = record(part["file"]);
      const source = typeof data === "string" ? sourceOf(data) : { type: "file", file_id: id };
      return { type: "document", source, ...(typeof filename === "string" ? { title: filename } : {}), ...mark };
    }
    default:
      return part;
  }
}

const DATA_URL = /^data:([^;,]+)(?:;[^;,]+)*;base64,(.*)$/s;

function sourceOf(url: string): JsonObject {
  const [, mediaType, data] = DATA_URL.exec(url) ?? [];
  return data === undefined ? { type: "url", url } : { type: "base64", media_type: mediaType, data };
}
