/*
 * Attacked: the call to the engine behind chat completions, Messages and Responses. Every way in which an engine can answer, or not, on a raw
 * socket, and every way in which a client can leave. After each of them no slot, connection, timer or listener may be left, a stream breaks
 * off after the engine's own bytes, and an error is in the form of the client's API. Broke: an answer of 101, an engine that falls silent in
 * its answer, HEAD, 205 with a body, a completion asked for twice. Held: all other rows of the table.
 */
import { getEventListeners, once } from "node:events";
import { globalAgent, type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openUpstream } from "../../src/engines/upstream/upstream.js";
import { ask } from "../http/routes/chat-client.js";
import { HeldTimers, PATIENCE } from "../http/server/held-timers.js";
import { type Received, receivedOf } from "../http/server/received.js";
import { servedApp } from "../http/server/served-app.js";
import { type Conduct, type RawEngine, rawEngine } from "./raw-engine.js";

/** Milliseconds that no clock counts: they only tell the time-outs apart. */
const TIMEOUT_MS = 1_511;
const IDLE_MS = 1_517;
const OK = "HTTP/1.1 200 OK\r\n";
const JSON_TYPE = "content-type: application/json\r\n";
const EVENTS = `${OK}content-type: text/event-stream\r\n`;
const CHUNKED = "transfer-encoding: chunked\r\n";
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
/** The first event of a stream, of every API. */
const FIRST =
  'data: {"type":"message_start","message":{"id":"m"},"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n';
const BEGINNING = chunk(FIRST);
const EVENTS_BEGUN = `${EVENTS}${CHUNKED}\r\n${BEGINNING}`;
/** What a client has of a stream that breaks off after its first event. */
const BEGUN = new RegExp(`^${FIRST.replace(/[[\]{}]/g, "\\$&")}$`);
const WHOLE =
  '{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"Tea."},"finish_reason":"stop"}]}';
const whole = (more = "") => `${OK}${JSON_TYPE}${more}content-length: ${WHOLE.length}\r\n\r\n${WHOLE}`;
const says =
  (text: string): Conduct =>
  (socket) =>
    new Promise<unknown>((said) => socket.write(text, "latin1", said));
const saysAndEnds =
  (text: string): Conduct =>
  (socket) =>
    socket.end(text, "latin1");
const saysAndResets =
  (text: string): Conduct =>
  (socket) =>
    socket.write(text, "latin1", () => socket.resetAndDestroy());
/** Says it until the connection is closed; resolves when it was said some times. */
const again = (socket: Socket, text: string) =>
  new Promise<void>((said) => {
    let times = 0;
    const on = setInterval(() => {
      socket.write(text);
      times += 1;
      if (times === 10) said();
    }, 2);
    socket.once("close", () => clearInterval(on));
  });

/** How the prompt routes name a failure: Anthropic's by its type and message, OpenAI's by its code. */
const FAILURES = {
  unreachable: [/"type":"api_error","message":".*could not be reached/, /"code":"upstream_unreachable"/],
  timeout: [/"type":"timeout_error","message":".*did not begin to answer/, /"code":"upstream_timeout"/],
  broken: [/"type":"api_error","message":".*broke off/, /"code":"upstream_broken"/],
} as const satisfies Record<string, readonly [RegExp, RegExp]>;

/** What is more to an outcome. */
interface More {
  /** What happens when the engine has said what it says. */
  readonly next?: "times out" | "stalls" | "resets";
  /** What a client of the other routes gets, with the same status; absent: not tried there. */
  readonly elsewhere?: keyof typeof FAILURES | RegExp;
  /** Whether the answer breaks off after its body. */
  readonly isCut?: boolean;
}

/** What an engine does, and what a chat's client gets: a status, and what its body holds. */
type Outcome = readonly [what: string, conduct: Conduct, status: number, body: string | RegExp, more: More];

const outcome = (what: string, conduct: Conduct, status: number, body: string | RegExp, more: More = {}): Outcome => [
  what,
  conduct,
  status,
  body,
  more,
];

const ROWS: readonly (readonly [...Parameters<typeof outcome>])[] = [
  [
    "closes the connection before it says anything",
    (socket) => void socket.end(),
    502,
    "upstream_unreachable",
    { elsewhere: "unreachable" },
  ],
  ["says nothing", () => {}, 504, "upstream_timeout", { next: "times out", elsewhere: "timeout" }],
  ["resets it in its head", saysAndResets(`${OK}content-ty`), 502, "upstream_"],
  ["says its head without an end", says(`${OK}content-type: te`), 504, "upstream_timeout", { next: "times out" }],
  ["says its head and no more", says(`${EVENTS}${CHUNKED}\r\n`), 504, "upstream_timeout", { next: "times out" }],
  [
    "switches protocols",
    says("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"),
    502,
    "upstream_broken",
    { elsewhere: "broken" },
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
    { next: "times out" },
  ],
  ["answers with no body", saysAndEnds("HTTP/1.1 204 No Content\r\n\r\n"), 204, ""],
  [
    "answers 205 with a body that has no end",
    (socket) => {
      socket.write(`HTTP/1.1 205 Reset Content\r\n${CHUNKED}\r\n`);
      again(socket, chunk("tea"));
    },
    205,
    "",
  ],
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
    { elsewhere: "broken" },
  ],
  ["says two lengths", saysAndEnds(`${OK}content-length: 2\r\ncontent-length: 3\r\n\r\n{}}`), 502, "upstream_broken"],
  [
    "sends a chunk that is none in a stream",
    saysAndEnds(`${EVENTS}${CHUNKED}\r\n${chunk("data: 1\n\n")}zz\r\n`),
    200,
    /^data: 1\n\n$/,
    { isCut: true },
  ],
  ["resets a stream", says(EVENTS_BEGUN), 200, BEGUN, { next: "resets", elsewhere: BEGUN, isCut: true }],
  ["falls silent in a stream", says(EVENTS_BEGUN), 200, BEGUN, { next: "stalls", elsewhere: BEGUN, isCut: true }],
  [
    "falls silent in an answer that comes whole",
    says(`${OK}${JSON_TYPE}content-length: 999\r\n\r\n{`),
    504,
    "upstream_stalled",
    { next: "stalls" },
  ],
  [
    "falls silent in an error",
    says(`HTTP/1.1 429 No\r\n${JSON_TYPE}content-length: 999\r\n\r\n{`),
    429,
    /^\{$/,
    { next: "stalls", isCut: true },
  ],
  ["says garbage behind its answer", saysAndEnds(`${whole()}garbage`), 200, WHOLE],
  [
    "answers with no status",
    saysAndEnds(`HTTP/1.1 000 Nothing\r\ncontent-length: 2\r\n\r\n{}`),
    502,
    "upstream_broken",
  ],
  ["answers by closing, with no length", saysAndEnds(`${OK}${JSON_TYPE}\r\n${WHOLE}`), 200, WHOLE],
  [
    "says what is no JSON",
    saysAndEnds(`${OK}${JSON_TYPE}content-length: 5\r\n\r\nHello`),
    200,
    /^Hello$/,
    { elsewhere: /^Hello$/ },
  ],
  [
    "has an error page in front",
    saysAndEnds("HTTP/1.1 502 Bad\r\ncontent-type: text/html\r\ncontent-length: 7\r\n\r\n<h1>Bad"),
    502,
    /^<h1>Bad$/,
    { elsewhere: /^<h1>Bad$/ },
  ],
];
const OUTCOMES = ROWS.map((row) => outcome(...row));

const MESSAGES = {
  path: "/v1/messages",
  asked: { model: "m", max_tokens: 9, messages: [{ role: "user", content: "Tea?" }], metadata: { user_id: "ada" } },
};
const RESPONSES = { path: "/v1/responses", asked: { model: "m", input: "Tea?", user: "ada" } };
const CHAT = { path: "/v1/chat/completions", asked: { ...ask("Tea?"), user: "ada" } };

const APIS = [CHAT, MESSAGES, RESPONSES];

const outcomesOf = (path: string): readonly Outcome[] => {
  if (path === CHAT.path) return OUTCOMES;
  return OUTCOMES.flatMap(([what, conduct, status, , more]) => {
    if (more.elsewhere === undefined) return [];
    const body = more.elsewhere instanceof RegExp ? more.elsewhere : FAILURES[more.elsewhere];
    return [[what, conduct, status, body instanceof RegExp ? body : body[path === MESSAGES.path ? 0 : 1], more]];
  });
};

/** Has the engine do something at as many calls, and what follows it happen. */
async function happens(
  { engine, timers }: { engine: RawEngine; timers: HeldTimers },
  conduct: Conduct,
  { next }: More = {},
  calls = 2,
): Promise<void> {
  const said: unknown[] = [];
  engine.does((socket, head) => void said.push(conduct(socket, head)));
  if (next === undefined) return;
  await vi.waitFor(() => expect(said).toHaveLength(calls), PATIENCE);
  await Promise.all(said);
  if (next === "times out") return timers.runOut(TIMEOUT_MS, calls);
  if (next === "stalls") return timers.runOut(IDLE_MS, calls);
  await timers.started(IDLE_MS, calls);
  engine.reset();
}

const settled = () => {
  const waiting = () => [...Object.keys(globalAgent.sockets), ...Object.keys(globalAgent.requests)];
  return vi.waitFor(() => expect(waiting()).toEqual([]), PATIENCE);
};

/** The app before an engine, and what each of its tests needs. */
function proxied(path: string, asked: object) {
  const engine = rawEngine();
  const timers = new HeldTimers();
  const app = servedApp({
    upstream: engine,
    times: { after: timers.after, idleMs: IDLE_MS, timeoutMs: TIMEOUT_MS, limits: { answerTimeoutMs: 500 } },
  });
  const pending = async () => (await app.send("GET", "/metrics")).text.includes("\nmemprefix_requests_in_flight 0\n");
  return {
    engine,
    timers,
    app,
    async nothingIsLeft() {
      await settled();
      await vi.waitFor(async () => expect(await pending()).toBe(true), PATIENCE);
      expect(timers.waiting).toEqual([]);
      expect(app.faults).toEqual([]);
      expect(app.memprefix.load).toMatchObject({ jobs: 0, busyUsers: 0 });
    },
    async post(more: object = {}) {
      const headers = { "content-type": "application/json" };
      const outgoing = request(app.base + path, { method: "POST", agent: false, headers });
      const received = new Promise<Received & { status: number | undefined }>((done, fail) => {
        outgoing.on("error", fail).once("response", async (answer: IncomingMessage) => {
          done({ ...(await receivedOf(answer)), status: answer.statusCode });
        });
      });
      outgoing.end(JSON.stringify({ ...asked, ...more }));
      const { status, bytes, isWhole } = await received;
      return { status, text: bytes.toString("utf8"), isCut: !isWhole };
    },
    /** A client that is nothing but a socket. */
    async client(text: string) {
      const socket = connect(Number(new URL(app.base).port), "127.0.0.1").on("error", () => {});
      await once(socket, "connect");
      socket.write(text);
      return socket;
    },
  };
}

const streamed = (path: string, asked: object) => {
  const body = JSON.stringify({ ...asked, stream: true });
  const length = `content-length: ${body.length}\r\n`;
  return { body, head: `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${JSON_TYPE}${length}\r\n` };
};

describe.each(APIS)("an engine that, requested at $path,", ({ path, asked }) => {
  const { engine, timers, app, nothingIsLeft, post, client } = proxied(path, asked);

  it.each(outcomesOf(path))("%s, leaves nothing behind", async (_what, conduct, status, body, more) => {
    const happening = happens({ engine, timers }, conduct, more);
    for (const exchange of await Promise.all([post({ stream: false }), post({ stream: true })])) {
      expect([exchange.status, exchange.isCut]).toEqual([status, more.isCut ?? false]);
      if (typeof body === "string") expect(exchange.text).toContain(body);
      else expect(exchange.text).toMatch(body);
    }
    await happening;
    await nothingIsLeft();
  });

  it("is left in the middle of its stream, leaves nothing behind", async () => {
    await happens({ engine, timers }, (socket) => {
      socket.write(`${EVENTS}${CHUNKED}\r\n`);
      return again(socket, BEGINNING);
    });
    const { head, body } = streamed(path, asked);
    const reading = await client(head + body);
    await once(reading, "data");
    reading.resetAndDestroy();
    await vi.waitFor(() => expect(engine.connections).toBe(0), PATIENCE);
    await nothingIsLeft();
    expect(app.faults).toEqual([]);
  });
});

describe("an engine that", () => {
  const { engine, timers, app, nothingIsLeft, post, client } = proxied(CHAT.path, CHAT.asked);

  it("answers before it has read the request, is answered for", async () => {
    const long = { messages: [{ role: "user", content: "tea ".repeat(500_000) }] };
    engine.does((socket) => {
      socket.pause();
      socket.end(`HTTP/1.1 413 Too Long\r\n${JSON_TYPE}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
    });
    const { status } = await post(long);
    expect([413, 502]).toContain(status);
    await nothingIsLeft();
  });

  it("answers once more on an idle connection, is not believed by the next request", async () => {
    const sockets: Socket[] = [];
    engine.does((socket) => {
      sockets.push(socket);
      socket.write(whole());
    });
    expect((await post()).text).toBe(WHOLE);
    sockets[0]?.write(whole().replace("Tea.", "Evil"));
    await vi.waitFor(() => expect(engine.connections).toBe(0), PATIENCE);
    engine.does(says(whole()));
    expect((await post()).text).toBe(WHOLE);
    await nothingIsLeft();
  });

  it("begins its answer on a kept connection and resets it, is not asked a second time", async () => {
    engine.does(says(whole()));
    await post();
    const begun = says(`${OK}${JSON_TYPE}content-length: 999\r\n\r\n{`);
    const happening = happens({ engine, timers }, begun, { next: "resets" }, 1);
    expect((await post()).status).toBe(502);
    await happening;
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

  describe("is asked by a client that", () => {
    const { head, body } = streamed(CHAT.path, CHAT.asked);
    const asked = (count = 1) => vi.waitFor(() => expect(engine.heads).toHaveLength(count), PATIENCE);

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

    it("leaves just behind the end of its stream, leaves nothing behind", async () => {
      engine.does(says(`${EVENTS}${CHUNKED}\r\n${chunk("data: [DONE]\n\n")}0\r\n\r\n`));
      const done = await client(head + body);
      await once(done, "data");
      done.destroy();
      await nothingIsLeft();
    });

    it("closes its sending half, and reads on, gets its answer", async () => {
      const sockets: Socket[] = [];
      engine.does((socket) => sockets.push(socket));
      const half = await client(head.replace("content-type", "connection: close\r\ncontent-type") + body);
      await asked();
      half.end();
      sockets[0]?.write(whole());
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
      await vi.waitFor(() => expect(engine.connections).toBe(0), PATIENCE);
      await nothingIsLeft();
      deaf.destroy();
    });
  });
});

describe("a call to an engine", () => {
  const engine = rawEngine();
  const timers = new HeldTimers();
  const open = () => openUpstream({ url: engine.url, timeoutMs: TIMEOUT_MS, idleMs: IDLE_MS, after: timers.after });
  afterEach(() => expect(timers.waiting).toEqual([]));

  it("whose answer nobody begins to read, and ends, closes the connection", async () => {
    engine.does(says(EVENTS_BEGUN));
    const client = new AbortController();
    const call = { method: "GET", path: "models", query: "", headers: [], body: null } as const;
    const { body } = await open().send(call, client.signal);
    await body[Symbol.asyncIterator]().return?.();
    await vi.waitFor(() => expect(engine.connections).toBe(0), PATIENCE);
    expect(getEventListeners(client.signal, "abort")).toEqual([]);
  });

  it("waits for a slow reader as long as that takes: the engine is not the one that is silent", async () => {
    engine.does(saysAndEnds(`${EVENTS}connection: close\r\n\r\ndata: 1\n\ndata: [DONE]\n\n`));
    const call = { method: "GET", path: "models", query: "", headers: [], body: null } as const;
    const { body } = await open().send(call, new AbortController().signal);
    let text = "";
    for await (const bytes of body) {
      expect(timers.waiting).toEqual([]);
      text += Buffer.from(bytes).toString();
    }
    expect(text).toBe("data: 1\n\ndata: [DONE]\n\n");
  });
});
