/*
 * Attacked: the call to the engine behind `/v1/messages`, in Anthropic's form and converted. The ways in which an engine fails, and a client
 * that leaves, on raw sockets. After each of them no slot, connection, timer or listener may be left, and the error is Anthropic's.
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

/** What an engine does, and what its client gets: a status, and what its body holds. */
const OUTCOMES: readonly (readonly [what: string, conduct: Conduct, status: number, body: RegExp])[] = [
  ["closes the connection", (socket) => void socket.end(), 502, /"type":"api_error","message":".*could not be reached/],
  ["says nothing", () => {}, 504, /"type":"timeout_error","message":".*did not begin to answer/],
  [
    "answers with another protocol",
    says("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    502,
    /"type":"api_error","message":".*broke off/,
  ],
  [
    "resets a stream",
    saysAndResets(EVENTS + chunk('data: {"a":1}\n\n')),
    200,
    /\n\nevent: error\ndata: \{"type":"error","error":\{"type":"api_error","message":".*broke off/,
  ],
  [
    "falls silent in a stream",
    says(EVENTS + chunk('data: {"a":1}\n\n')),
    200,
    /\n\nevent: error\ndata: \{"type":"error","error":\{"type":"timeout_error","message":".*stalled/,
  ],
  [
    "dies in an answer that comes whole",
    saysAndEnds(`${OK}content-type: application/json\r\ncontent-length: 999\r\n\r\n{`),
    502,
    /"type":"api_error","message":".*broke off/,
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

describe.each(["anthropic", "openai"])("an engine that, asked for a message in the form of %s,", (api) => {
  const engine = rawEngine();
  const app = servedApp({
    upstream: engine,
    environment: {
      MEMSTEM_UPSTREAM_API: api,
      MEMSTEM_UPSTREAM_TIMEOUT_MS: "311",
      MEMSTEM_UPSTREAM_IDLE_MS: "317",
    },
  });
  const bodyOf = (stream: boolean) =>
    JSON.stringify({
      model: "m",
      max_tokens: 9,
      messages: [{ role: "user", content: "Tea?" }],
      metadata: { user_id: "ada" },
      stream,
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
    for (const stream of [false, true]) {
      engine.does(conduct);
      const exchange = await app.send("POST", "/v1/messages", bodyOf(stream));
      expect(exchange.status).toBe(status);
      expect(exchange.text).toMatch(body);
      await nothingIsLeft();
    }
  });

  it("is left in the middle of its stream, leaves nothing behind", async () => {
    engine.does((socket) => {
      socket.write(EVENTS);
      const on = setInterval(() => socket.write(chunk('data: {"a":1}\n\n')), 5);
      socket.once("close", () => clearInterval(on));
    });
    const body = bodyOf(true);
    const socket = connect(Number(new URL(app.base).port), "127.0.0.1").on("error", () => {});
    await once(socket, "connect");
    socket.write(
      `POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await once(socket, "data");
    socket.resetAndDestroy();
    await vi.waitFor(() => expect(engine.connections).toBe(0), 5_000);
    await nothingIsLeft();
  });
});
