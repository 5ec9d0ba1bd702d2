import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { encodeO200k } from "../../../src/cli/o200k.js";
import { chatTokenizer } from "../../../src/simulator/chat-tokens.js";
import { RadixCache } from "../../../src/simulator/radix-cache.js";
import type { Counted } from "../../clients/wire.js";
import { isLimitRequest } from "../routes/openai-engine.js";
import type { FaultWire, Json } from "./fault-wires.js";

/** What an engine can do; a request names it as its `model`. */
export const ENGINE_CONDUCTS = [
  "answers whole",
  "answers in a stream",
  "answers 10 MB whole",
  "answers 10 MB in a stream",
  "hangs before headers",
  "answers with another protocol",
  "dies in a stream",
  "dies in a whole answer",
  "sends malformed events",
  "limits the rate",
  "goes on until the client leaves",
] as const;
export type EngineConduct = (typeof ENGINE_CONDUCTS)[number];

/** A text that makes up 10 MB when it is said so many times. */
export const BIG = { text: "0123456789abcdef".repeat(640), times: 1_024 };
const BIG_TEXT = BIG.text.repeat(BIG.times);
/** Header of a request that says whose call it is, for {@link FaultyEngine.taken}. */
export const CALLER_HEADER = "x-caller";
/** Broken JSON, no JSON, no field name, bytes that are no UTF-8, no end: what the client gets all the same. */
export const MALFORMED = Buffer.concat([
  Buffer.from('data: {"choices": [{"delta":\n\ndata: nonsense\n\nnonsense\n\n: \n\ndata: [1, {"x": null}]\n\ndata: '),
  Buffer.from([0xff, 0xfe, 0x0a, 0x0a]),
  Buffer.from('data: {"choices": "none", "usage": 7}'),
]);

/** All that comes of a stream in which the engine dies. */
export function streamBegun({ delta }: FaultWire): string {
  return `${delta("Green tea.")}data: {"id":`;
}

/** An engine with a simulated prefix cache that does what a request's `model` says, and has the route of one API. */
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

export async function faultyEngine(wire: FaultWire): Promise<FaultyEngine> {
  const cache = new RadixCache();
  const tokens = chatTokenizer(encodeO200k);
  const waiting = new Map<string, () => void>();
  let calls = 0;
  let port = 0;
  const server: Server = createServer(async (incoming, response) => {
    if (isLimitRequest(incoming.headers)) return response.writeHead(404, { connection: "close" }).end();
    calls += 1;
    response.once("close", () => {
      calls -= 1;
    });
    const raw = await incoming.toArray().catch(() => null);
    if (raw === null) return;
    if (incoming.url !== `/v1/${wire.api.path}`) return response.writeHead(404).end();
    const body = JSON.parse(Buffer.concat(raw).toString("utf8")) as Json & { readonly model: EngineConduct };
    const prompt = tokens(wire.api.history(body) ?? []);
    const cached = NOT_SERVED.has(body.model) ? 0 : cache.serve(prompt);
    const user = String(incoming.headers[CALLER_HEADER]);
    waiting.get(user)?.();
    waiting.delete(user);
    await behave(body.model, response, wire, { prompt: prompt.length, cached });
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

/** With these the engine does not compute the prompt. */
const NOT_SERVED = new Set<EngineConduct>([
  "hangs before headers",
  "answers with another protocol",
  "limits the rate",
  "dies in a whole answer",
]);

async function behave(
  conduct: EngineConduct,
  response: ServerResponse,
  wire: FaultWire,
  counted: Counted,
): Promise<void> {
  response.on("error", () => {});
  const json = { "content-type": "application/json" };
  const openStream = () => response.writeHead(200, { "content-type": "text/event-stream" });
  switch (conduct) {
    case "answers whole":
      response.writeHead(200, json).end(JSON.stringify(wire.whole("Indeed.", counted)));
      return;
    case "answers 10 MB whole":
      response.writeHead(200, json).end(JSON.stringify(wire.whole(BIG_TEXT, counted)));
      return;
    case "answers in a stream":
      openStream().end(wire.stream("Green tea, I think.", counted));
      return;
    case "answers 10 MB in a stream": {
      openStream();
      for (let n = 0; n < BIG.times && !response.destroyed; n++) await written(response, wire.delta(BIG.text));
      response.end(wire.end(counted));
      return;
    }
    case "dies in a stream":
      openStream();
      response.write(streamBegun(wire), () => response.destroy());
      return;
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
    case "goes on until the client leaves":
      openStream();
      while (!response.destroyed) {
        await written(response, wire.delta("Green tea."));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return;
    case "answers with another protocol":
      response.socket?.end("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
      return;
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
