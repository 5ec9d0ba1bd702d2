/*
 * Attacked: the call to the engine behind `/v1/messages` and `/v1/responses`, in their own form and converted. The ways in which an engine
 * fails, and a client that leaves, on raw sockets. After each of them no slot, connection, timer or listener may be left, and the error is
 * in the form of the client's API.
 */
import { once } from "node:events";
import { globalAgent } from "node:http";
import { connect } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { servedApp } from "../http/server/served-app.js";
import { type Conduct, rawEngine } from "./raw-engine.js";

const OK = "HTTP/1.1 200 OK\r\n";
const EVENTS = `${OK}content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n`;
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
/** The first event of a stream, of either API. */
const BEGINNING = chunk(
  'data: {"type":"message_start","message":{"id":"m"},"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n',
);
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

/** How each API names a failure: Anthropic's by its type and message, OpenAI's by its code. */
const FAILURES = {
  unreachable: [/"type":"api_error","message":".*could not be reached/, /"code":"upstream_unreachable"/],
  timeout: [/"type":"timeout_error","message":".*did not begin to answer/, /"code":"upstream_timeout"/],
  broken: [/"type":"api_error","message":".*broke off/, /"code":"upstream_broken"/],
  brokenStream: [
    /\n\nevent: error\ndata: \{"type":"error","error":\{"type":"api_error","message":".*broke off/,
    /\n\ndata: \{"error":\{.*"code":"upstream_broken"/,
  ],
  stalledStream: [
    /\n\nevent: error\ndata: \{"type":"error","error":\{"type":"timeout_error","message":".*stalled/,
    /\n\ndata: \{"error":\{.*"code":"upstream_stalled"/,
  ],
} as const satisfies Record<string, readonly [RegExp, RegExp]>;

/** What an engine does, and what its client gets: a status, and what its body holds. */
const OUTCOMES: readonly (readonly [
  what: string,
  conduct: Conduct,
  status: number,
  body: keyof typeof FAILURES | RegExp,
])[] = [
  ["closes the connection", (socket) => void socket.end(), 502, "unreachable"],
  ["says nothing", () => {}, 504, "timeout"],
  [
    "answers with another protocol",
    says("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    502,
    "broken",
  ],
  ["resets a stream", saysAndResets(EVENTS + BEGINNING), 200, "brokenStream"],
  ["falls silent in a stream", says(EVENTS + BEGINNING), 200, "stalledStream"],
  [
    "dies in an answer that comes whole",
    saysAndEnds(`${OK}content-type: application/json\r\ncontent-length: 999\r\n\r\n{`),
    502,
    "broken",
  ],
  [
    "says what is no JSON",
    saysAndEnds(`${OK}content-type: application/json\r\ncontent-length: 5\r\n\r\nHello`),
    200,
    /^Hello$/,
  ],
  [
    "has an error page in front",
    saysAndEnds("HTTP/1.1 502 Bad\r\ncontent-type: text/html\r\ncontent-length: 7\r\n\r\n<h1>Bad"),
    502,
    /^<h1>Bad$/,
  ],
];

const MESSAGES = {
  path: "/v1/messages",
  body: { model: "m", max_tokens: 9, messages: [{ role: "user", content: "Tea?" }], metadata: { user_id: "ada" } },
};
const RESPONSES = { path: "/v1/responses", body: { model: "m", input: "Tea?", user: "ada" } };

/** Ways through the proxy; the engine of the last has chat completions only. */
const WAYS = [
  { way: "messages, as a message", api: "anthropic", ...MESSAGES, lacks: null },
  { way: "messages, as a chat", api: "openai", ...MESSAGES, lacks: null },
  { way: "responses, as a response", api: "openai", ...RESPONSES, lacks: null },
  { way: "responses, as a message", api: "anthropic", ...RESPONSES, lacks: null },
  { way: "responses, as a chat", api: "openai", ...RESPONSES, lacks: "POST /v1/responses " },
] as const;
const NOT_THERE = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

describe.each(WAYS)("an engine that, asked for $way,", ({ api, path, body: asked, lacks }) => {
  const engine = rawEngine();
  const app = servedApp({
    upstream: engine,
    environment: {
      MEMSTEM_UPSTREAM_API: api,
      // With room for a busy machine's pauses: an engine that answers has not been slow.
      MEMSTEM_UPSTREAM_TIMEOUT_MS: "1511",
      MEMSTEM_UPSTREAM_IDLE_MS: "1517",
    },
  });
  const bodyOf = (stream: boolean) => JSON.stringify({ ...asked, stream });
  const does = (conduct: Conduct) =>
    engine.does((socket, head) => {
      if (lacks !== null && head.startsWith(lacks)) socket.end(NOT_THERE);
      else conduct(socket, head);
    });
  const nothingIsLeft = async () => {
    const waiting = () => [...Object.keys(globalAgent.sockets), ...Object.keys(globalAgent.requests)];
    await vi.waitFor(() => expect(waiting()).toEqual([]), 5_000);
    const pending = async () => (await app.send("GET", "/metrics")).text.includes("\nmemstem_pending_requests 0\n");
    await vi.waitFor(async () => expect(await pending()).toBe(true), 5_000);
    expect(app.faults).toEqual([]);
    expect(app.memstem.load).toMatchObject({ jobs: 0, busyUsers: 0 });
  };

  it.each(OUTCOMES)("%s, leaves nothing behind", async (_what, conduct, status, body) => {
    does(conduct);
    const wanted = body instanceof RegExp ? body : FAILURES[body][path === MESSAGES.path ? 0 : 1];
    for (const exchange of await Promise.all([false, true].map((stream) => app.send("POST", path, bodyOf(stream))))) {
      expect(exchange.status).toBe(status);
      expect(exchange.text).toMatch(wanted);
    }
    await nothingIsLeft();
  });

  it("is left in the middle of its stream, leaves nothing behind", async () => {
    does((socket) => {
      socket.write(EVENTS);
      const on = setInterval(() => socket.write(BEGINNING), 5);
      socket.once("close", () => clearInterval(on));
    });
    const body = bodyOf(true);
    const socket = connect(Number(new URL(app.base).port), "127.0.0.1").on("error", () => {});
    await once(socket, "connect");
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await once(socket, "data");
    socket.resetAndDestroy();
    await vi.waitFor(() => expect(engine.connections).toBe(0), 5_000);
    await nothingIsLeft();
  });
});
