import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { encodeO200k } from "../../../src/cli/o200k.js";
import type { ChatMessage } from "../../../src/core/index.js";
import { chatTokenizer } from "../../../src/simulator/chat-tokens.js";
import { RadixCache } from "../../../src/simulator/radix-cache.js";
import { eventOf, isLimitRequest, streamedAnswer, wholeAnswer } from "../routes/openai-engine.js";

/** What an engine can do; a request names it as its `model`. */
export const ENGINE_CONDUCTS = [
  "answers whole",
  "answers in a stream",
  "answers 10 MB whole",
  "answers 10 MB in a stream",
  "hangs before headers",
  "dies in a stream",
  "dies in a whole answer",
  "sends malformed events",
  "limits the rate",
  "goes on until the client leaves",
] as const;
export type EngineConduct = (typeof ENGINE_CONDUCTS)[number];

const BIG = "0123456789abcdef".repeat(640);
const BIG_TEXT = BIG.repeat(1_024);
/** The events that make up 10 MB. */
export const BIG_EVENTS = { event: eventOf(streamedAnswer(BIG, null)[1] ?? {}), count: 1_024 };
/** Broken JSON, no JSON, no field name, bytes that are no UTF-8, no end: what the client gets all the same. */
export const MALFORMED = Buffer.concat([
  Buffer.from('data: {"choices": [{"delta":\n\ndata: nonsense\n\nnonsense\n\n: \n\ndata: [1, {"x": null}]\n\ndata: '),
  Buffer.from([0xff, 0xfe, 0x0a, 0x0a]),
  Buffer.from('data: {"choices": "none", "usage": 7}'),
]);

/** An engine with a simulated prefix cache that does what a request's `model` says. */
export interface FaultyEngine {
  readonly url: string;
  /** Connections that are open now. */
  readonly connections: number;
  /** Calls under way. */
  readonly calls: number;
  /** Resolves with the next call of this user that was taken; rejects never. */
  taken(user: string): Promise<void>;
  /** From now on connections are refused, on the same port. */
  refuse(): Promise<void>;
  listen(): Promise<void>;
  close(): Promise<void>;
}

export async function faultyEngine(): Promise<FaultyEngine> {
  const cache = new RadixCache();
  const tokens = chatTokenizer(encodeO200k);
  const waiting = new Map<string, () => void>();
  let calls = 0;
  let served = 0;
  let port = 0;
  const server: Server = createServer(async (incoming, response) => {
    if (isLimitRequest(incoming.headers)) return response.writeHead(404, { connection: "close" }).end();
    calls += 1;
    response.once("close", () => {
      calls -= 1;
    });
    const raw = await incoming.toArray().catch(() => null);
    if (raw === null) return;
    const { model, user, messages } = JSON.parse(Buffer.concat(raw).toString("utf8")) as {
      model: EngineConduct;
      user: string;
      messages: ChatMessage[];
    };
    const isServed =
      model !== "hangs before headers" && model !== "limits the rate" && model !== "dies in a whole answer";
    const prompt = tokens(messages);
    const cachedTokens = isServed ? cache.serve({ tokens: prompt }, ++served).cachedTokens : 0;
    const usage = {
      prompt_tokens: prompt.length,
      completion_tokens: 2,
      total_tokens: prompt.length + 2,
      prompt_tokens_details: { cached_tokens: cachedTokens },
    };
    waiting.get(user)?.();
    waiting.delete(user);
    await behave(model, response, usage);
  });
  const listen = async () => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
  };
  const refuse = async () => {
    if (!server.listening) return;
    const closed = new Promise((done) => server.close(done));
    server.closeAllConnections();
    await closed;
  };
  await listen();
  return {
    get url() {
      return `http://127.0.0.1:${port}/v1`;
    },
    get connections() {
      return (server as unknown as { _connections: number })._connections;
    },
    get calls() {
      return calls;
    },
    taken: (user) =>
      new Promise((taken) => {
        waiting.set(user, taken);
      }),
    refuse,
    listen,
    close: refuse,
  };
}

type Usage = Parameters<typeof wholeAnswer>[1];

async function behave(conduct: EngineConduct, response: ServerResponse, usage: Usage): Promise<void> {
  response.on("error", () => {});
  const json = { "content-type": "application/json" };
  const openStream = () => response.writeHead(200, { "content-type": "text/event-stream" });
  switch (conduct) {
    case "answers whole":
      response.writeHead(200, json).end(JSON.stringify(wholeAnswer("Indeed.", usage)));
      return;
    case "answers 10 MB whole":
      response.writeHead(200, json).end(JSON.stringify(wholeAnswer(BIG_TEXT, usage)));
      return;
    case "answers in a stream":
      openStream();
      for (const chunk of streamedAnswer("Green tea, I think.", usage)) response.write(eventOf(chunk));
      response.end("data: [DONE]\n\n");
      return;
    case "answers 10 MB in a stream": {
      openStream();
      for (let n = 0; n < BIG_EVENTS.count && !response.destroyed; n++) await written(response, BIG_EVENTS.event);
      for (const last of streamedAnswer("", usage).slice(-2)) response.write(eventOf(last));
      response.end("data: [DONE]\n\n");
      return;
    }
    case "dies in a stream": {
      openStream();
      const [, chunk] = streamedAnswer("Green tea.", null);
      response.write(`${eventOf(chunk ?? {})}data: {"id":`, () => response.destroy());
      return;
    }
    case "dies in a whole answer":
      response.writeHead(200, { ...json, "content-length": 1_000 });
      response.write('{"id": "chat', () => response.destroy());
      return;
    case "sends malformed events":
      openStream().end(MALFORMED);
      return;
    case "limits the rate":
      response.writeHead(429, { ...json, "retry-after": "7" }).end(JSON.stringify({ error: { message: "Slower." } }));
      return;
    case "goes on until the client leaves": {
      openStream();
      const [, chunk] = streamedAnswer("Green tea.", null);
      while (!response.destroyed) {
        await written(response, eventOf(chunk ?? {}));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return;
    }
    case "hangs before headers":
      return;
  }
}

/** Writes as fast as the other side reads. */
async function written(response: ServerResponse, text: string): Promise<void> {
  if (response.write(text)) return;
  await new Promise<void>((go) => {
    const on = () => {
      response.off("drain", on).off("close", on);
      go();
    };
    response.on("drain", on).on("close", on);
  });
}
