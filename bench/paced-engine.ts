/**
 * An engine in a process of its own that streams at an engine's pace, by OpenAI's and Anthropic's APIs: as many tokens as the request allows,
 * the first after {@link FIRST_TOKEN_MS}, then one in {@link TOKEN_MS}. Below `/chats` it has chat completions only. Prints its address.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const FIRST_TOKEN_MS = 50;
const TOKEN_MS = 20;
const HEADERS = { "content-type": "text/event-stream; charset=utf-8" };

/** A stream of an API: what is sent in front of the first token, for each, and behind the last. */
interface PacedStream {
  readonly head: string;
  readonly token: string;
  end(tokens: number, asksUsage: boolean): string;
}

const envelope = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: "stub" };
const chunkOf = (chunk: object) => `data: ${JSON.stringify({ ...envelope, ...chunk })}\n\n`;
const deltaOf = (delta: object, finish_reason: string | null = null) =>
  chunkOf({ choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
const chatUsage = (completion_tokens: number) => ({
  prompt_tokens: 1_000,
  completion_tokens,
  total_tokens: 1_000 + completion_tokens,
  prompt_tokens_details: { cached_tokens: 0 },
});
const CHAT: PacedStream = {
  head: deltaOf({ role: "assistant", content: "" }),
  token: deltaOf({ content: " token" }),
  end: (tokens, asksUsage) =>
    `${deltaOf({}, "stop")}${asksUsage ? chunkOf({ choices: [], usage: chatUsage(tokens) }) : ""}data: [DONE]\n\n`,
};

const eventOf = (event: Readonly<Record<string, unknown>>) =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
const response = { id: "resp_1", object: "response", created_at: 1_700_000_000, model: "stub", store: false };
const opened = { ...response, status: "in_progress", output: [], usage: null };
const part = { item_id: "msg_1", output_index: 0, content_index: 0 };
const RESPONSE: PacedStream = {
  head: [
    { type: "response.created", response: opened },
    { type: "response.output_item.added", output_index: 0, item: { id: "msg_1", type: "message", content: [] } },
  ]
    .map(eventOf)
    .join(""),
  token: eventOf({ type: "response.output_text.delta", ...part, delta: " token" }),
  end: (tokens) => {
    const text = " token".repeat(tokens);
    const content = [{ type: "output_text", text, annotations: [] }];
    const output = [{ id: "msg_1", type: "message", role: "assistant", status: "completed", content }];
    const usage = {
      input_tokens: 1_000,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: tokens,
      total_tokens: 1_000 + tokens,
    };
    const whole = { ...response, status: "completed", output, usage };
    return eventOf({ type: "response.completed", response: whole });
  },
};

const counts = { input_tokens: 1_000, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
const message = { id: "msg_1", type: "message", role: "assistant", model: "stub", content: [], stop_reason: null };
const MESSAGE: PacedStream = {
  head: [
    { type: "message_start", message: { ...message, usage: { ...counts, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  ]
    .map(eventOf)
    .join(""),
  token: eventOf({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: " token" } }),
  end: (tokens) =>
    [
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { ...counts, output_tokens: tokens } },
      { type: "message_stop" },
    ]
      .map(eventOf)
      .join(""),
};

const STREAMS: Readonly<Record<string, PacedStream>> = {
  "/v1/chat/completions": CHAT,
  "/chats/v1/chat/completions": CHAT,
  "/v1/responses": RESPONSE,
  "/v1/messages": MESSAGE,
};

const server = createServer(async (incoming, answer) => {
  const stream = STREAMS[incoming.url ?? ""];
  const raw = Buffer.concat(await incoming.toArray());
  // memprefix asks for the list of models, and for `/responses` where there is none.
  if (incoming.method === "GET" || stream === undefined) return answer.writeHead(404).end();
  const asked = JSON.parse(raw.toString("utf8")) as {
    readonly max_tokens?: number;
    readonly max_output_tokens?: number;
    readonly stream_options?: { readonly include_usage: boolean };
  };
  const most = asked.max_tokens ?? asked.max_output_tokens ?? 1;
  answer.on("error", () => {});
  let sent = 0;
  const start = performance.now();
  const next = () => {
    if (answer.destroyed) return;
    if (sent === 0) {
      answer.writeHead(200, HEADERS);
      answer.write(stream.head);
    }
    answer.write(stream.token);
    sent += 1;
    if (sent < most) {
      setTimeout(next, start + FIRST_TOKEN_MS + sent * TOKEN_MS - performance.now());
      return;
    }
    answer.end(stream.end(sent, asked.stream_options?.include_usage === true));
  };
  setTimeout(next, FIRST_TOKEN_MS);
}).listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
});
