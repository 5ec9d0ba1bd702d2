/*
 * Attacked: the call to the engine. Every way in which an engine can answer, or not, on a raw socket, and every way in which a client can leave.
 * After each of them no slot, connection, timer or listener may be left. Broke: an answer of 101, an engine that falls silent in its answer,
 * HEAD, 205 with a body, a completion asked for twice. Held: all other rows of the table.
 */
import { getEventListeners, once } from "node:events";
import { globalAgent } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openUpstream } from "../../src/engines/upstream/upstream.js";
import { ask } from "../http/routes/chat-client.js";
import { servedApp } from "../http/server/served-app.js";
import { type Conduct, rawEngine } from "./raw-engine.js";

/** Milliseconds that no other timer has. With room for a busy machine's pauses: an engine that answers has not been slow. */
const TIMEOUT_MS = 1_511;
const IDLE_MS = 1_517;
const OK = "HTTP/1.1 200 OK\r\n";
const JSON_TYPE = "content-type: application/json\r\n";
const EVENTS = `${OK}content-type: text/event-stream\r\n`;
const CHUNKED = "transfer-encoding: chunked\r\n";
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const WHOLE =
  '{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"Tea."},"finish_reason":"stop"}]}';
const whole = (more = "") => `${OK}${JSON_TYPE}${more}content-length: ${WHOLE.length}\r\n\r\n${WHOLE}`;
const says =
  (text: string): Conduct =>
  (socket) =>
    socket.write(text, "latin1");
const saysAndEnds =
  (text: string): Conduct =>
  (socket) =>
    socket.end(text, "latin1");
const saysAndResets =
  (text: string): Conduct =>
  (socket) =>
    socket.write(text, "latin1", () => setTimeout(() => socket.resetAndDestroy(), 20));
const again = (socket: Socket, text: string) => {
  const on = setInterval(() => socket.write(text), 5);
  socket.once("close", () => clearInterval(on));
};

/** What an engine does, and what its client gets: a status, and what its body holds. */
const OUTCOMES: readonly (readonly [what: string, conduct: Conduct, status: number, body: string | RegExp])[] = [
  ["closes the connection before it says anything", (socket) => void socket.end(), 502, "upstream_unreachable"],
  ["resets it", (socket) => void socket.resetAndDestroy(), 502, "upstream_unreachable"],
  ["says nothing", () => {}, 504, "upstream_timeout"],
  ["closes it in its head", saysAndEnds(`${OK}content-ty`), 502, "upstream_"],
  ["resets it in its head", saysAndResets(`${OK}content-ty`), 502, "upstream_"],
  ["says its head without an end", says(`${OK}content-type: te`), 504, "upstream_timeout"],
  [
    "says its head without an end, drop by drop",
    (socket) => {
      socket.write(OK);
      again(socket, "x-a: 1\r\n");
    },
    504,
    /upstream_(timeout|broken)/,
  ],
  ["says its head and no more", says(`${EVENTS}${CHUNKED}\r\n`), 504, "upstream_timeout"],
  [
    "switches protocols",
    says("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"),
    502,
    "upstream_broken",
  ],
  [
    "switches protocols and goes on",
    (socket) => {
      socket.write("HTTP/1.1 101 Go\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n");
      again(socket, "tea");
    },
    502,
    "upstream_broken",
  ],
  [
    "switches protocols without saying to which",
    says("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    502,
    "upstream_broken",
  ],
  [
    "offers another protocol with its answer",
    saysAndEnds(whole("upgrade: h2c\r\nconnection: upgrade\r\n")),
    200,
    WHOLE,
  ],
  [
    "says that it may go on, again and again",
    (socket) => again(socket, "HTTP/1.1 100 Continue\r\n\r\n"),
    504,
    "upstream_timeout",
  ],
  [
    "gives early hints, again and again",
    (socket) => again(socket, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
    504,
    "upstream_timeout",
  ],
  [
    "gives early hints and its answer",
    saysAndEnds(`HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${whole()}`),
    200,
    WHOLE,
  ],
  ["says 102 and closes", saysAndEnds("HTTP/1.1 102 Processing\r\n\r\n"), 502, "upstream_unreachable"],
  ["answers with no body", saysAndEnds("HTTP/1.1 204 No Content\r\n\r\n"), 204, ""],
  ["answers 304", saysAndEnds("HTTP/1.1 304 Not Modified\r\netag: a\r\n\r\n"), 304, ""],
  [
    "answers 205 with a body that has no end",
    (socket) => {
      socket.write(`HTTP/1.1 205 Reset Content\r\n${CHUNKED}\r\n`);
      again(socket, chunk("tea"));
    },
    205,
    "",
  ],
  ["answers with an empty body", saysAndEnds(`${OK}${JSON_TYPE}content-length: 0\r\n\r\n`), 200, ""],
  [
    "redirects",
    saysAndEnds("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/v1\r\ncontent-length: 0\r\n\r\n"),
    307,
    "",
  ],
  ["is no HTTP server", saysAndEnds("SSH-2.0-OpenSSH_9.6\r\n"), 502, "upstream_broken"],
  [
    "says more headers than anybody reads",
    saysAndEnds(`${OK}${"x-a: 1\r\n".repeat(40_000)}\r\n`),
    502,
    "upstream_broken",
  ],
  [
    "says a shorter length than it sends",
    saysAndEnds(`${OK}${JSON_TYPE}content-length: 2\r\n\r\n{}garbage`),
    200,
    "{}",
  ],
  [
    "says a longer length than it sends",
    saysAndEnds(`${OK}${JSON_TYPE}content-length: 999\r\n\r\n{`),
    502,
    "upstream_broken",
  ],
  ["says two lengths", saysAndEnds(`${OK}content-length: 2\r\ncontent-length: 3\r\n\r\n{}}`), 502, "upstream_broken"],
  [
    "says a length and chunks",
    saysAndEnds(`${OK}content-length: 2\r\n${CHUNKED}\r\n2\r\n{}\r\n0\r\n\r\n`),
    502,
    "upstream_broken",
  ],
  ["sends a chunk that is none", saysAndEnds(`${OK}${JSON_TYPE}${CHUNKED}\r\nzz\r\n{}`), 502, "upstream_broken"],
  [
    "sends a chunk that is none in a stream",
    saysAndEnds(`${EVENTS}${CHUNKED}\r\n${chunk("data: 1\n\n")}zz\r\n`),
    200,
    "upstream_broken",
  ],
  ["resets a stream", saysAndResets(`${EVENTS}${CHUNKED}\r\n${chunk("data: 1\n\n")}`), 200, "upstream_broken"],
  [
    "closes a stream that has no end",
    saysAndEnds(`${EVENTS}${CHUNKED}\r\n${chunk("data: 1\n\n")}`),
    200,
    "upstream_broken",
  ],
  ["falls silent in a stream", says(`${EVENTS}${CHUNKED}\r\n${chunk("data: 1\n\n")}`), 200, "upstream_stalled"],
  [
    "falls silent in an answer that comes whole",
    says(`${OK}${JSON_TYPE}content-length: 999\r\n\r\n{`),
    504,
    "upstream_stalled",
  ],
  [
    "falls silent in an error",
    says(`HTTP/1.1 429 No\r\n${JSON_TYPE}content-length: 999\r\n\r\n{`),
    429,
    /^(\{|cut off: terminated)$/,
  ],
  [
    "ends its stream and not the connection",
    says(`${EVENTS}${CHUNKED}\r\n${chunk("data: [DONE]\n\n")}0\r\n\r\n`),
    200,
    "data: [DONE]\n\n",
  ],
  ["says garbage behind its answer", saysAndEnds(`${whole()}garbage`), 200, WHOLE],
  ["answers twice", saysAndEnds(`${whole()}${whole()}`), 200, WHOLE],
  [
    "answers with a status that nobody has",
    saysAndEnds(`HTTP/1.1 999 Denied\r\ncontent-length: 2\r\n\r\n{}`),
    999,
    "{}",
  ],
  [
    "answers with no status",
    saysAndEnds(`HTTP/1.1 000 Nothing\r\ncontent-length: 2\r\n\r\n{}`),
    502,
    "upstream_broken",
  ],
  ["answers by closing, with no length", saysAndEnds(`${OK}${JSON_TYPE}\r\n${WHOLE}`), 200, WHOLE],
];

const settled = async () => {
  await vi.waitFor(
    () =>
      expect({ sockets: Object.keys(globalAgent.sockets), waiting: Object.keys(globalAgent.requests) }).toEqual({
        sockets: [],
        waiting: [],
      }),
    5_000,
  );
};

describe("an engine that, asked for a chat,", () => {
  const engine = rawEngine();
  const app = servedApp({
    upstream: engine,
    environment: {
      MEMSTEM_UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS),
      MEMSTEM_UPSTREAM_IDLE_MS: String(IDLE_MS),
      MEMSTEM_ANSWER_TIMEOUT_MS: "500",
    },
  });
  const pending = async () =>
    Number(/^memstem_pending_requests (\d+)$/m.exec((await app.send("GET", "/metrics")).text)?.[1]);
  const nothingIsLeft = async () => {
    await settled();
    await vi.waitFor(async () => expect(await pending()).toBe(0), 5_000);
    expect(app.faults).toEqual([]);
    expect(app.memstem.load).toMatchObject({ jobs: 0, busyUsers: 0 });
  };
  const chat = async (more: object = {}) => {
    const answer = await fetch(`${app.base}/v1/chat/completions`, {
      method: "POST",
      redirect: "manual",
      headers: { connection: "close", "content-type": "application/json" },
      body: JSON.stringify({ ...ask("Tea?"), user: "ada", ...more }),
    });
    return { status: answer.status, text: await answer.text().catch((error: Error) => `cut off: ${error.message}`) };
  };

  it.each(OUTCOMES)("%s, leaves nothing behind", async (_what, conduct, status, body) => {
    engine.does(conduct);
    for (const exchange of await Promise.all([chat({ stream: false }), chat({ stream: true })])) {
      expect(exchange.status).toBe(status);
      if (typeof body === "string") expect(exchange.text).toContain(body);
      else expect(exchange.text).toMatch(body);
    }
    await nothingIsLeft();
  });

  it("answers before it has read the request, is answered for", async () => {
    const long = { messages: [{ role: "user", content: "tea ".repeat(500_000) }] };
    engine.does((socket) => {
      socket.pause();
      socket.end(`HTTP/1.1 413 Too Long\r\n${JSON_TYPE}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
    });
    const { status } = await chat(long);
    expect([413, 502]).toContain(status);
    await nothingIsLeft();
  });

  it("answers once more on an idle connection, is not believed by the next request", async () => {
    engine.does((socket) => {
      socket.write(whole());
      setTimeout(() => socket.write(whole().replace("Tea.", "Evil")), 30);
    });
    expect((await chat()).text).toBe(WHOLE);
    await new Promise((resolve) => setTimeout(resolve, 100));
    engine.does(says(whole()));
    expect((await chat()).text).toBe(WHOLE);
    await nothingIsLeft();
  });

  it("begins its answer on a kept connection and resets it, is not asked a second time", async () => {
    engine.does(says(whole()));
    await chat();
    engine.does(saysAndResets(`${OK}${JSON_TYPE}content-length: 999\r\n\r\n`));
    expect((await chat()).status).toBe(502);
    expect(engine.heads).toHaveLength(2);
    await nothingIsLeft();
  });

  it("lists models without an end, is let go when only the head was asked for", async () => {
    engine.does((socket) => {
      socket.write(`${OK}${JSON_TYPE}${CHUNKED}\r\n`);
      again(socket, chunk("tea"));
    });
    expect((await app.send("HEAD", "/v1/models")).status).toBe(200);
    await nothingIsLeft();
  });

  describe("and a client that", () => {
    const body = JSON.stringify({ ...ask("Tea?"), user: "ada", stream: true });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    const client = async (text: string) => {
      const socket = connect(Number(new URL(app.base).port), "127.0.0.1").on("error", () => {});
      await once(socket, "connect");
      socket.write(text);
      return socket;
    };
    const asked = (count = 1) => vi.waitFor(() => expect(engine.heads).toHaveLength(count));

    it("leaves in its head, in its body, or before the first byte, leaves nothing behind", async () => {
      engine.does(() => {});
      (await client(head.slice(0, 60))).resetAndDestroy();
      (await client(head + body.slice(0, 9))).resetAndDestroy();
      (await client(head + body.slice(0, 9))).end();
      await nothingIsLeft();
      expect(engine.heads).toEqual([]);
      const waiting = await client(head + body);
      await asked();
      waiting.resetAndDestroy();
      await nothingIsLeft();
    });

    it("leaves in the middle of its stream, or just behind it, leaves nothing behind", async () => {
      engine.does((socket) => {
        socket.write(`${EVENTS}${CHUNKED}\r\n`);
        again(socket, chunk("data: 1\n\n"));
      });
      const reading = await client(head + body);
      await once(reading, "data");
      reading.resetAndDestroy();
      await nothingIsLeft();
      engine.does(says(`${EVENTS}${CHUNKED}\r\n${chunk("data: [DONE]\n\n")}0\r\n\r\n`));
      const done = await client(head + body);
      await once(done, "data");
      done.destroy();
      await nothingIsLeft();
    });

    it("closes its sending half, and reads on, gets its answer", async () => {
      engine.does((socket) => setTimeout(() => socket.write(whole()), 100));
      const half = await client(head.replace("content-type", "connection: close\r\ncontent-type") + body);
      half.end();
      expect(Buffer.concat(await half.toArray()).toString()).toMatch(/HTTP\/1.1 200|^$/);
      await nothingIsLeft();
    });

    it("never reads, is cut off", async () => {
      const much = chunk(`data: "${"tea ".repeat(16_000)}"\n\n`);
      engine.does((socket) => {
        socket.write(`${EVENTS}${CHUNKED}\r\n`);
        const on = () => {
          while (!socket.destroyed && socket.write(much));
        };
        socket.on("drain", on);
        on();
      });
      const deaf = await client(head + body);
      deaf.pause();
      await asked();
      await vi.waitFor(() => expect(engine.connections).toBe(0), 10_000);
      await nothingIsLeft();
      deaf.destroy();
    });
  });
});

describe("a call to an engine", () => {
  const engine = rawEngine();
  /** Timers of the call that are neither over nor cleared. */
  const timers = new Set<unknown>();
  beforeEach(() => {
    const { setTimeout: set, clearTimeout: clear } = globalThis;
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, ms?: number) => {
      const isOurs = ms === TIMEOUT_MS || ms === IDLE_MS;
      const timer = set(() => {
        timers.delete(timer);
        run();
      }, ms);
      if (isOurs) timers.add(timer);
      return timer;
    }) as typeof setTimeout);
    vi.spyOn(globalThis, "clearTimeout").mockImplementation((timer) => {
      timers.delete(timer);
      clear(timer);
    });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    timers.clear();
  });

  it.each(OUTCOMES)("that %s ends with no timer and no listener", async (_what, conduct) => {
    engine.does(conduct);
    const upstream = openUpstream({ url: engine.url, timeoutMs: TIMEOUT_MS, idleMs: IDLE_MS });
    const call = { method: "POST", path: "chat/completions", query: "", headers: [], body: "{}" } as const;
    const client = new AbortController();
    try {
      const { body } = await upstream.send(call, client.signal);
      for await (const _ of body);
    } catch (error) {
      expect(error).toMatchObject({ name: "UpstreamError" });
    }
    expect(getEventListeners(client.signal, "abort")).toEqual([]);
    expect([...timers]).toEqual([]);
    await settled();
  });

  it("whose answer nobody begins to read, and ends, closes the connection", async () => {
    engine.does(says(`${EVENTS}${CHUNKED}\r\n${chunk("data: 1\n\n")}`));
    const upstream = openUpstream({ url: engine.url, timeoutMs: 60_000 });
    const client = new AbortController();
    const call = { method: "GET", path: "models", query: "", headers: [], body: null } as const;
    const { body } = await upstream.send(call, client.signal);
    await body[Symbol.asyncIterator]().return?.();
    await vi.waitFor(() => expect(engine.connections).toBe(0));
    expect(getEventListeners(client.signal, "abort")).toEqual([]);
  });

  it("waits for a slow reader as long as that takes: the engine is not the one that is silent", async () => {
    engine.does(saysAndEnds(`${EVENTS}connection: close\r\n\r\ndata: 1\n\ndata: [DONE]\n\n`));
    const upstream = openUpstream({ url: engine.url, timeoutMs: 60_000, idleMs: 50 });
    const call = { method: "GET", path: "models", query: "", headers: [], body: null } as const;
    const { body } = await upstream.send(call, new AbortController().signal);
    let text = "";
    for await (const bytes of body) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      text += Buffer.from(bytes).toString();
    }
    expect(text).toBe("data: 1\n\ndata: [DONE]\n\n");
  });
});
