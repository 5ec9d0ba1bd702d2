/**
 * An OpenAI-compatible engine in a process of its own that streams at an engine's pace: `max_tokens` tokens, the first after
 * {@link FIRST_TOKEN_MS}, then one in {@link TOKEN_MS}. Prints its address.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const FIRST_TOKEN_MS = 50;
const TOKEN_MS = 20;
const HEADERS = { "content-type": "text/event-stream; charset=utf-8" };

const envelope = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: "stub" };
const eventOf = (chunk: object) => `data: ${JSON.stringify({ ...envelope, ...chunk })}\n\n`;
const deltaOf = (delta: object, finish_reason: string | null = null) =>
  eventOf({ choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
const ROLE = deltaOf({ role: "assistant", content: "" });
const TOKEN = deltaOf({ content: " token" });
const STOP = deltaOf({}, "stop");
const usageOf = (completion_tokens: number) => ({
  prompt_tokens: 1_000,
  completion_tokens,
  total_tokens: 1_000 + completion_tokens,
  prompt_tokens_details: { cached_tokens: 0 },
});

const server = createServer(async (incoming, response) => {
  // memstem asks for the list of models.
  if (incoming.method === "GET") return response.writeHead(404).end();
  const asked = JSON.parse(Buffer.concat(await incoming.toArray()).toString("utf8")) as {
    readonly max_tokens: number;
    readonly stream_options?: { readonly include_usage: boolean };
  };
  response.on("error", () => {});
  let sent = 0;
  const start = performance.now();
  const next = () => {
    if (response.destroyed) return;
    if (sent === 0) {
      response.writeHead(200, HEADERS);
      response.write(ROLE);
    }
    response.write(TOKEN);
    sent += 1;
    if (sent < asked.max_tokens) {
      setTimeout(next, start + FIRST_TOKEN_MS + sent * TOKEN_MS - performance.now());
      return;
    }
    const usage = asked.stream_options?.include_usage ? eventOf({ choices: [], usage: usageOf(sent) }) : "";
    response.end(`${STOP}${usage}data: [DONE]\n\n`);
  };
  setTimeout(next, FIRST_TOKEN_MS);
}).listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
});
