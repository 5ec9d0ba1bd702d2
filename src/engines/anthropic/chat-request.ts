import type { ChatMessage, ContentPart } from "../../core/index.js";
import { unsealed } from "../turns/carried-reasoning.js";
import { ReturnedReasoning } from "../turns/returned-reasoning.js";
import { record, text } from "../upstream/json-values.js";
import { chatOfMessages, type MessagesBody, systemBehind, withoutAnthropicForm } from "./messages-as-chat.js";

/** What the engine takes beside plain chat completions. */
export interface ChatDialect {
  /** Whether breakpoints of Anthropic's are kept, as gateways to Anthropic's models take them. */
  readonly keepsMarks: boolean;
  /** Whether it is OpenAI's own API, which rejects `max_tokens` and `top_k`. */
  readonly isOpenAi: boolean;
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
export function toChatCompletion(body: MessagesBody, dialect: ChatDialect): Readonly<Record<string, unknown>> | null {
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
    ...(Array.isArray(stop_sequences) && stop_sequences.length > 0 ? { stop: stop_sequences } : {}),
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
  const own = (Array.isArray(given) ? (given as readonly unknown[]) : [])
    .map(record)
    .filter((tool) => tool["input_schema"] !== undefined);
  if (own.length === 0) return {};
  const { type, name, disable_parallel_tool_use } = record(tool_choice);
  const choices: Readonly<Record<string, unknown>> = {
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
  return (content ?? []).map((block) => chatPart(block, dialect));
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
      return { type: "image_url", image_url: { url: address }, ...marked };
    case "document": {
      if (kind === "text") return { type: "text", text: text(data), ...marked };
      const filename = typeof block["title"] === "string" ? block["title"] : "document.pdf";
      const file = kind === "file" ? { file_id } : { filename, file_data: address };
      return { type: "file", file, ...marked };
    }
    default:
      // Search results and the like: their JSON says more than nothing.
      return { type: "text", text: JSON.stringify(bare), ...marked };
  }
}
