import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { anthropicUpstream } from "../../../src/engines/anthropic/anthropic-upstream.js";
import { messagesUpstream } from "../../../src/engines/anthropic/messages-upstream.js";
import { responsesUpstream } from "../../../src/engines/responses/responses-upstream.js";
import { openUpstream, type Upstream } from "../../../src/engines/upstream/upstream.js";
import { chatChunks } from "../../clients/chat-wire.js";
import { everyEvent } from "../../http/routes/every-event.js";

const CHAT = [...chatChunks({ kind: "text", text: "Green tea." }, 1, null).map((one) => JSON.stringify(one)), "[DONE]"]
  .map((data) => `data: ${data}\n\n`)
  .join("");
const MESSAGE = everyEvent("anthropic")
  .events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join("");
/** Of llama.cpp and OpenRouter; of Anthropic. */
const COMMENTS = [":\n\n", ": OPENROUTER PROCESSING\n\n"];
const PING = 'event: ping\ndata: {"type": "ping"}\n\n';
const NOW = { now: () => 1_700_000_000_000 };
const PLAIN = { ...NOW, dialect: { keepsMarks: false, isOpenAi: false } };
const CONVERSIONS = [
  {
    what: "a chat as a message",
    sent: CHAT,
    path: "messages",
    signs: COMMENTS,
    passedOn: 'event: ping\ndata: {"type":"ping"}\n\n',
    over: (of: Upstream) => messagesUpstream(of, PLAIN),
  },
  {
    what: "a chat as a response",
    sent: CHAT,
    path: "responses",
    signs: COMMENTS,
    passedOn: ": keep-alive\n\n",
    over: (of: Upstream) => responsesUpstream(of, NOW),
  },
  {
    what: "a message as a chat",
    sent: MESSAGE,
    path: "chat/completions",
    signs: [...COMMENTS, PING],
    passedOn: ": keep-alive\n\n",
    over: (of: Upstream) => anthropicUpstream(of, NOW),
  },
];

describe.each(CONVERSIONS)("a stream that is converted, $what,", ({ sent, path, signs, passedOn, over }) => {
  let server: Server;
  let upstream: Upstream;
  const sockets: Socket[] = [];
  let text: string;
  let then: (response: ServerResponse) => void;
  beforeEach(async () => {
    sockets.length = 0;
    text = sent;
    server = createServer(async (request, response) => {
      await request.resume().toArray();
      if (request.url === "/responses") return response.writeHead(404).end();
      sockets.push(request.socket);
      response.writeHead(200, { "content-type": "text/event-stream" });
      return response.write(text, () => then(response));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    upstream = over(openUpstream({ url: `http://127.0.0.1:${port}`, timeoutMs: 20_000 }));
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  });

  async function read(): Promise<string> {
    const messages = [{ role: "user", content: "Tea?" }];
    const body = JSON.stringify({ model: "m", stream: true, messages, input: "Tea?", max_tokens: 9 });
    const call = { method: "POST", path, query: "", headers: [], body } as const;
    const answer = await upstream.send(call, new AbortController().signal);
    const parts: Uint8Array[] = [];
    for await (const part of answer.body) parts.push(part);
    // Ids of responses are made anew.
    return Buffer.concat(parts)
      .toString("utf8")
      .replaceAll(/_[0-9a-f]{32}/g, "_id");
  }
  const ENDS = /(?:"message_stop"\}|"type":"response.completed".*\}|\[DONE\])\n\n$/;

  it("has a sign of life for each of its engine's from the first event on", async () => {
    then = (response) => response.end();
    const plain = await read();
    for (const sign of signs) {
      const at = sent.indexOf("\n\n") + 2;
      text = `${sign}${sent.slice(0, at)}${sign}${sign}${sent.slice(at)}`;
      const alive = await read();
      expect(alive.startsWith(passedOn)).toBe(false);
      expect(alive.split(passedOn).length - plain.split(passedOn).length).toBe(2);
      expect(alive.replaceAll(passedOn, "")).toBe(plain.replaceAll(passedOn, ""));
    }
  });

  it("keeps the connection where the engine ends it", async () => {
    then = (response) => setTimeout(() => response.end(), 20);
    await vi.waitFor(async () => {
      expect(await read()).toMatch(ENDS);
      expect(new Set(sockets).size).toBeLessThan(sockets.length);
    });
  });

  it("is whole where the connection breaks after its end", async () => {
    then = (response) => setTimeout(() => response.destroy(), 20);
    expect(await read()).toMatch(ENDS);
  });

  it("ends where the engine goes on, whose connection is closed a second later", async () => {
    then = () => {};
    const started = performance.now();
    expect(await read()).toMatch(ENDS);
    const [socket] = sockets as [Socket];
    expect(socket.closed).toBe(false);
    await once(socket, "close");
    expect(performance.now() - started).toBeGreaterThan(950);
    expect(performance.now() - started).toBeLessThan(15_000);
  });
});
