import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { clientOf } from "../http/routes/chat-client.js";
import { messagesClientOf } from "../http/routes/messages-client.js";
import type { ServedApp } from "../http/server/served-app.js";
import type { Json } from "./reasoning-engines.js";

/** How a client asks. */
export interface Asking {
  readonly stream: boolean;
  /** Fields of the request beside the conversation. */
  readonly more?: Json;
  readonly conversation: string;
}

/** Asks both questions, runs the tools and returns what it was answered, unmodified. Gives the final texts. */
export type Agent = (app: Pick<ServedApp, "base">, asking: Asking) => Promise<readonly string[]>;

const QUESTIONS = ["Where is it warm?", "Sure?"];
const schema = { type: "object" as const, properties: { city: { type: "string" } } };
const weather = (id: string) => `12 degrees, ${id}.`;
const headersOf = ({ conversation }: Asking) => ({
  "x-memprefix-user": "ada",
  "x-memprefix-conversation": conversation,
});

export const AGENTS: Readonly<Record<string, Agent>> = {
  "chat completions": (app, asking) => chat(app, asking, (message) => message),
  Messages: async (app, asking) => {
    const client = messagesClientOf(app, headersOf(asking));
    const tools = [{ name: "weather", input_schema: schema }];
    const messages: Anthropic.MessageParam[] = [];
    const answers: string[] = [];
    for (const question of QUESTIONS) {
      messages.push({ role: "user", content: question });
      for (;;) {
        const body = { model: "stub-1", max_tokens: 4_000, messages, tools, ...asking.more };
        const { content } = asking.stream
          ? await client.messages.stream(body).finalMessage()
          : await client.messages.create(body);
        messages.push({ role: "assistant", content });
        const results = content.flatMap((block) =>
          block.type === "tool_use"
            ? [{ type: "tool_result" as const, tool_use_id: block.id, content: weather(block.id) }]
            : [],
        );
        if (results.length > 0) {
          messages.push({ role: "user", content: results });
          continue;
        }
        answers.push(content.map((block) => (block.type === "text" ? block.text : "")).join(""));
        break;
      }
    }
    return answers;
  },
  "Responses with its items": (app, asking) => respond(app, asking, "items"),
  "Responses with items without their text": (app, asking) => respond(app, asking, "sealed"),
  "Responses with previous_response_id": (app, asking) => respond(app, asking, "id"),
  "Responses with item references": (app, asking) => respond(app, asking, "references"),
};

/** A client of chat completions that returns the text of reasoning, and drops fields that it does not know: the AI SDK's. */
export const TEXT_ALONE: Agent = (app, asking) =>
  chat(app, asking, (message) => {
    const { reasoning_content, reasoning, content, tool_calls: calls } = message as unknown as Json;
    const tool_calls = (calls as readonly Json[] | undefined)?.map(({ id, type, function: called }) => ({
      id,
      type,
      function: called,
    }));
    const said = { role: "assistant", content, reasoning_content: reasoning_content ?? reasoning };
    return { ...said, ...(tool_calls === undefined ? {} : { tool_calls }) } as unknown as OpenAI.ChatCompletionMessage;
  });

async function chat(
  app: Pick<ServedApp, "base">,
  asking: Asking,
  returns: (message: OpenAI.ChatCompletionMessage) => OpenAI.ChatCompletionMessage,
): Promise<readonly string[]> {
  const client = clientOf(app, headersOf(asking));
  const tools = [{ type: "function" as const, function: { name: "weather", parameters: schema } }];
  const messages: OpenAI.ChatCompletionMessageParam[] = [];
  const answers: string[] = [];
  for (const content of QUESTIONS) {
    messages.push({ role: "user", content });
    for (;;) {
      const body = { model: "stub-1", messages, tools, ...asking.more };
      const message = asking.stream
        ? await streamedMessage(await client.chat.completions.create({ ...body, stream: true }))
        : (await client.chat.completions.create(body)).choices[0]?.message;
      if (message === undefined) throw new Error("no message");
      messages.push(returns(message));
      for (const { id } of message.tool_calls ?? [])
        messages.push({ role: "tool", tool_call_id: id, content: weather(id) });
      if ((message.tool_calls ?? []).length > 0) continue;
      answers.push(message.content ?? "");
      break;
    }
  }
  return answers;
}

/** A message of a stream's deltas, as clients put them together that keep what they do not know. */
async function streamedMessage(
  stream: AsyncIterable<OpenAI.ChatCompletionChunk>,
): Promise<OpenAI.ChatCompletionMessage> {
  const message: Record<string, unknown> = {};
  const calls: Record<string, unknown>[] = [];
  for await (const { choices } of stream) {
    const { tool_calls, ...delta } = (choices[0]?.delta ?? {}) as Record<string, unknown>;
    for (const [name, value] of Object.entries(delta)) message[name] = joined(message[name], value);
    for (const given of (tool_calls ?? []) as { index: number; function: Json }[]) {
      const { index, function: called, ...more } = given;
      const known = calls[index] ?? {};
      const { name, arguments: json } = (known["function"] ?? { name: "", arguments: "" }) as Record<string, string>;
      const own = { name: `${name}${called["name"] ?? ""}`, arguments: `${json}${called["arguments"] ?? ""}` };
      calls[index] = { ...known, ...more, function: own };
    }
  }
  if (message["content"] === "") message["content"] = null;
  if (Array.isArray(message["reasoning_details"])) message["reasoning_details"] = merged(message["reasoning_details"]);
  if (Array.isArray(message["thinking_blocks"])) message["thinking_blocks"] = wholeBlocks(message["thinking_blocks"]);
  return { ...message, ...(calls.length > 0 ? { tool_calls: calls } : {}) } as unknown as OpenAI.ChatCompletionMessage;
}

function joined(known: unknown, more: unknown): unknown {
  if (Array.isArray(more)) return [...((known ?? []) as unknown[]), ...more];
  return typeof known === "string" && typeof more === "string" && known !== more ? known + more : (more ?? known);
}

/** As OpenRouter's clients put fragments together: by their index. */
function merged(details: readonly Record<string, unknown>[]): readonly object[] {
  const byIndex = new Map<unknown, Record<string, unknown>>();
  for (const { text, ...detail } of details) {
    const known = byIndex.get(detail["index"]);
    const said = `${known?.["text"] ?? ""}${text ?? ""}`;
    byIndex.set(detail["index"], { ...known, ...detail, ...(said === "" ? {} : { text: said }) });
  }
  return [...byIndex.values()];
}

/** As LiteLLM puts fragments together: up to the signature. */
function wholeBlocks(blocks: readonly Record<string, unknown>[]): readonly object[] {
  const thinking = blocks.filter(({ type }) => type === "thinking");
  const text = thinking.map((block) => block["thinking"]).join("");
  return [
    { type: "thinking", thinking: text, signature: thinking.at(-1)?.["signature"] },
    ...blocks.filter(({ type }) => type !== "thinking"),
  ];
}

async function respond(
  app: Pick<ServedApp, "base">,
  asking: Asking,
  how: "items" | "sealed" | "id" | "references",
): Promise<readonly string[]> {
  const client = clientOf(app, headersOf(asking));
  const tools = [{ type: "function" as const, name: "weather", parameters: schema, strict: false }];
  const history: OpenAI.Responses.ResponseInputItem[] = [];
  const answers: string[] = [];
  let previous: string | null = null;
  for (const content of QUESTIONS) {
    let added: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content }];
    for (;;) {
      history.push(...added);
      const input = how === "id" ? added : history;
      const body: OpenAI.Responses.ResponseCreateParamsNonStreaming = {
        model: "stub-1",
        input: [...input],
        tools,
        ...(how === "id" ? { previous_response_id: previous } : {}),
        ...(how === "sealed" ? { store: false, include: ["reasoning.encrypted_content" as const] } : {}),
        ...asking.more,
      };
      const response: OpenAI.Responses.Response = asking.stream
        ? await client.responses.stream({ ...body, stream: true }).finalResponse()
        : await client.responses.create(body);
      const { output, output_text } = response;
      previous = response.id;
      history.push(...output.map((item) => returned(item, how)));
      const calls = output.flatMap((item) => (item.type === "function_call" ? [item.call_id] : []));
      added = calls.map((call_id) => ({ type: "function_call_output", call_id, output: weather(call_id) }));
      if (added.length > 0) continue;
      answers.push(output_text);
      break;
    }
  }
  return answers;
}

function returned(item: OpenAI.Responses.ResponseOutputItem, how: string): OpenAI.Responses.ResponseInputItem {
  if (how === "references" && item.id != null) return { type: "item_reference", id: item.id };
  if (how !== "sealed" || item.type !== "reasoning") return item as OpenAI.Responses.ResponseInputItem;
  // As OpenAI's own items, which have no text.
  const { content: _content, ...sealed } = item;
  return sealed;
}
