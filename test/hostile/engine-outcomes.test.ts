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
import { HeldTimers, PATIENCE } from "../http/server/held-timers.js";
import { type Received, receivedOf } from "../http/server/received.js";
import { servedApp } from "../http/server/served-app.js";
import { user } from "../messages.js";
import { IS_WHOLE } from "../run-length.js";
import { doorsOf } from "./api-forms.js";
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
const EVENTS_BEGUN = `${EVENTS}${CHUNKED}\r\n${chunk(FIRST)}`;
const WHOLE =
  '{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"Tea."},"finish_reason":"stop"}]}';
const whole = (more = "") => `${OK}${JSON_TYPE}${more}content-length: ${WHOLE.length}\r\n\r\n${WHOLE}`;
/** The beginning of an answer whose end never comes. */
const JSON_BEGUN = `${JSON_TYPE}content-length: 999\r\n\r\n{`;
const says =
  (text: string): Conduct =>
  (socket) =>
    new Promise<unknown>((said) => socket.write(text, "latin1", said));
const ends =
  (text: string): Conduct =>
  (socket) =>
    socket.end(text, "latin1");
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
/** Begins an answer that never ends. */
const goesOn =
  (begun: string, text: string): Conduct =>
  (socket) => {
    socket.write(begun);
    return again(socket, text);
  };

/** What a client gets. */
interface Outcome {
  readonly status: number;
  /** The engine's own; absent: memprefix's error. */
  readonly body?: string;
  /** Of memprefix's error: OpenAI's code, and a type and message of Anthropic's. */
  readonly error?: readonly [code: string, type: string, message: string];
  /** What happens when the engine has said what it says. */
  readonly next?: "times out" | "stalls" | "resets";
  /** Whether the answer breaks off after its body. */
  readonly isCut?: boolean;
}

const failed = (status: number, next: Outcome["next"], ...error: NonNullable<Outcome["error"]>): Outcome => ({
  status,
  error,
  ...(next && { next }),
});
const UNREACHABLE = failed(502, undefined, "upstream_unreachable", "api_error", "could not be reached");
const BROKEN = failed(502, undefined, "upstream_broken", "api_error", "broke off");
const TIMED_OUT = failed(504, "times out", "upstream_timeout", "timeout_error", "did not begin to answer");
const STALLED = failed(504, "stalls", "upstream_stalled", "timeout_error", "stalled");
const ANSWERED: Outcome = { status: 200, body: WHOLE };
const BEGUN: Outcome = { status: 200, body: FIRST, isCut: true };

const REDIRECT = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/v1\r\ncontent-length: 0\r\n\r\n";
const ROWS: readonly (readonly [what: string, conduct: Conduct, outcome: Outcome])[] = [
  ["closes the connection before it says anything", (socket) => socket.end(), UNREACHABLE],
  ["says nothing", () => {}, TIMED_OUT],
  ["resets it in its head", (socket) => socket.write(`${OK}content`, () => socket.resetAndDestroy()), { status: 502 }],
  ["says its head without an end", says(`${OK}content-type: te`), TIMED_OUT],
  ["says its head and no more", says(`${EVENTS}${CHUNKED}\r\n`), TIMED_OUT],
  ["switches protocols", says("HTTP/1.1 101 No\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"), BROKEN],
  ["switches protocols without saying to which", says("HTTP/1.1 101 Switching Protocols\r\n\r\n"), BROKEN],
  ["offers another protocol with its answer", ends(whole("upgrade: h2c\r\nconnection: upgrade\r\n")), ANSWERED],
  ["says that it may go on, again and again", goesOn("", "HTTP/1.1 100 Continue\r\n\r\n"), TIMED_OUT],
  ["answers with no body", ends("HTTP/1.1 204 No Content\r\n\r\n"), { status: 204, body: "" }],
  [
    "answers 205 with a body that has no end",
    goesOn(`HTTP/1.1 205 Reset Content\r\n${CHUNKED}\r\n`, chunk("tea")),
    { status: 205, body: "" },
  ],
  ["redirects", ends(REDIRECT), { status: 307, body: "" }],
  ["is no HTTP server", ends("SSH-2.0-OpenSSH_9.6\r\n"), BROKEN],
  ["says more headers than anybody reads", ends(`${OK}${"x-a: 1\r\n".repeat(40_000)}\r\n`), BROKEN],
  [
    "says a shorter length than it sends",
    ends(`${OK}${JSON_TYPE}content-length: 2\r\n\r\n{}garbage`),
    { status: 200, body: "{}" },
  ],
  ["says a longer length than it sends", ends(`${OK}${JSON_BEGUN}`), BROKEN],
  ["says two lengths", ends(`${OK}content-length: 2\r\ncontent-length: 3\r\n\r\n{}}`), BROKEN],
  ["sends a chunk that is none in a stream", ends(`${EVENTS_BEGUN}zz\r\n`), BEGUN],
  ["resets a stream", says(EVENTS_BEGUN), { ...BEGUN, next: "resets" }],
  ["falls silent in a stream", says(EVENTS_BEGUN), { ...BEGUN, next: "stalls" }],
  ["falls silent in an answer that comes whole", says(`${OK}${JSON_BEGUN}`), STALLED],
  [
    "falls silent in an error",
    says(`HTTP/1.1 429 No\r\n${JSON_BEGUN}`),
    { status: 429, body: "{", next: "stalls", isCut: true },
  ],
  ["says garbage behind its answer", ends(`${whole()}garbage`), ANSWERED],
  ["answers with no status", ends("HTTP/1.1 000 Nothing\r\ncontent-length: 2\r\n\r\n{}"), BROKEN],
  ["answers by closing, with no length", ends(`${OK}${JSON_TYPE}\r\n${WHOLE}`), ANSWERED],
  ["says what is no JSON", ends(`${OK}${JSON_TYPE}content-length: 5\r\n\r\nHello`), { status: 200, body: "Hello" }],
  [
    "has an error page in front",
    ends("HTTP/1.1 502 Bad\r\ncontent-type: text/html\r\ncontent-length: 7\r\n\r\n<h1>Bad"),
    { status: 502, body: "<h1>Bad" },
  ],
];

const ROUTES = doorsOf([user("Tea?")]).map(([path, body]) => ({
  path,
  asked: { ...body, memprefix: { user_id: "ada" } },
}));
const [CHAT] = ROUTES as [(typeof ROUTES)[number]];

/** Has the engine do something at as many calls, and what follows it happen. */
async function happens(
  { engine, timers }: { engine: RawEngine; timers: HeldTimers },
  conduct: Conduct,
  next?: Outcome["next"],
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

describe.each(ROUTES)("an engine that, requested at $path,", ({ path, asked }) => {
  const { engine, timers, nothingIsLeft, post, client } = proxied(path, asked);
  // All routes are proxied by the same code, so that some of the rows tell for the others.
  const tried = ROWS.filter((_, at) => IS_WHOLE || path === CHAT.path || at % 4 === 0);

  it.each(tried)("%s, leaves nothing behind", async (_what, conduct, { status, body, error, next, isCut = false }) => {
    const happening = happens({ engine, timers }, conduct, next);
    for (const exchange of await Promise.all([post({ stream: false }), post({ stream: true })])) {
      expect(exchange).toMatchObject({ status, isCut, ...(body !== undefined && { text: body }) });
      if (error === undefined) continue;
      const [code, type, message] = error;
      const said = path === "/v1/messages" ? `"type":"${type}","message":"[^"]*${message}` : `"code":"${code}"`;
      expect(exchange.text).toMatch(new RegExp(said));
    }
    await happening;
    await nothingIsLeft();
  });

  it("is left in the middle of its stream, leaves nothing behind", async () => {
    await happens({ engine, timers }, goesOn(`${EVENTS}${CHUNKED}\r\n`, chunk(FIRST)));
    const { head, body } = streamed(path, asked);
    const reading = await client(head + body);
    await once(reading, "data");
    reading.resetAndDestroy();
    await vi.waitFor(() => expect(engine.connections).toBe(0), PATIENCE);
    await nothingIsLeft();
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
    const happening = happens({ engine, timers }, says(`${OK}${JSON_BEGUN}`), "resets", 1);
    expect((await post()).status).toBe(502);
    await happening;
    expect(engine.heads).toHaveLength(2);
    await nothingIsLeft();
  });

  it("lists models without an end, is let go when only the head was asked for", async () => {
    engine.does(goesOn(`${OK}${JSON_TYPE}${CHUNKED}\r\n`, chunk("tea")));
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
    engine.does(ends(`${EVENTS}connection: close\r\n\r\ndata: 1\n\ndata: [DONE]\n\n`));
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
