/*
 * Attacked: the places among the requests in flight and the memory for bodies, by requests whose bodies never come, come drop by drop, or are
 * nobody's to read, by answers that nobody takes, and by pipelining. Broke: an answer that nobody took held its place for good, and so did
 * pipelined requests whose client left before their turn. Held: requests without a valid key, heads without an end.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { openAiProblemSchema } from "../../src/http/problems/problem.js";
import { callerOf } from "../http/guards/callers.js";
import { type ServedApp, servedApp } from "../http/server/served-app.js";
import { rawEngine } from "./raw-engine.js";

const compose = (user: string) => ({ user_id: user, query: "Tea?", memories: [] });

/** Sends bytes on a connection of their own. */
async function begin({ base }: Pick<ServedApp, "base">, text: string): Promise<Socket> {
  const socket = connect(Number(new URL(base).port), "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

function head(path: string, length: number | "chunked", more = "", method = "POST"): string {
  const size = length === "chunked" ? "transfer-encoding: chunked" : `content-length: ${length}`;
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${more}${size}\r\n\r\n`;
}

async function answerOf(socket: Socket): Promise<{ status: number; head: string; body: unknown }> {
  const text = Buffer.concat(await socket.toArray()).toString();
  const end = text.indexOf("\r\n\r\n");
  const json = text
    .slice(end + 4)
    .replace(/^[0-9a-f]+\r\n/i, "")
    .replace(/\r\n0\r\n\r\n$/, "");
  return { status: Number(text.slice(9, 12)), head: text.slice(0, end).toLowerCase(), body: JSON.parse(json) };
}

const metric = async (app: ServedApp, line: string, key = ""): Promise<number> => {
  const answer = await fetch(`${app.base}/metrics`, { headers: { connection: "close", "x-api-key": key } });
  return Number(new RegExp(`^${line.replaceAll(/[{}]/g, "\\$&")} (\\d+)$`, "m").exec(await answer.text())?.[1] ?? 0);
};

describe("a body that does not come", () => {
  const app = servedApp({
    times: { limits: { silentMs: 300 } },
    environment: { MEMPREFIX_UPSTREAM_URL: "http://127.0.0.1:1/v1" },
  });

  it.each([
    ["/compose", 100],
    ["/compose", "chunked"],
    ["/compose/batch", 100],
    ["/compose/batch", "chunked"],
    ["/feedback", 100],
    ["/v1/chat/completions", 100],
    ["/nowhere", 100],
  ] as const)("at %s (%s) is 408, and the connection is closed", async (path, length) => {
    const half = length === "chunked" ? '9\r\n{"user_id\r\n' : '{"user_id';
    const { status, head: sent, body } = await answerOf(await begin(app, head(path, length) + half));
    expect(status).toBe(408);
    expect(sent).toContain("content-type: application/problem+json");
    expect(sent).toContain("retry-after: 1");
    expect(sent).toContain("connection: close");
    expect(body).toMatchObject({
      status: 408,
      detail: "no byte of the body arrived for 300 ms",
    });
    if (path.startsWith("/v1")) expect(openAiProblemSchema.parse(body)).toEqual(body);
    expect(await metric(app, 'memprefix_refused_requests_total{reason="slow_body"}')).toBe(1);
    expect(await metric(app, "memprefix_requests_in_flight")).toBe(0);
    expect(app.faults).toEqual([]);
  });

  it("though it was told to, is 408 behind the 100", async () => {
    const socket = await begin(app, head("/compose", 100, "expect: 100-continue\r\n"));
    const text = Buffer.concat(await socket.toArray()).toString();
    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 408 /);
    expect(text).toContain("no byte of the body arrived for 300 ms");
  });

  it("that nobody reads keeps no connection open", async () => {
    for (const path of ["/healthz", "/users/ada/export", "/metrics"]) {
      const socket = await begin(app, `${head(path, 100, "", "GET")}{"user_id`);
      expect(Buffer.concat(await socket.toArray()).toString()).toContain("HTTP/1.1 200");
    }
    expect(await metric(app, "memprefix_requests_in_flight")).toBe(0);
  });

  it("because its client leaves is no fault of ours", async () => {
    for (const path of ["/compose", "/compose/batch", "/v1/chat/completions"]) {
      (await begin(app, `${head(path, 100)}{"user_id`)).resetAndDestroy();
      (await begin(app, `${head(path, 100)}{"user_id`)).destroy();
    }
    await vi.waitFor(() => expect(app.log.filter(({ status }) => status === 499)).toHaveLength(6));
    expect(await metric(app, "memprefix_requests_in_flight")).toBe(0);
    expect(app.faults).toEqual([]);
  });
});

const ATTACKERS = 300;

describe("bodies that come drop by drop, from more clients than may be in flight", () => {
  const app = servedApp({ times: { limits: { maxInFlight: 16 } } });

  it("are not in flight, so that others are served meanwhile; and are served themselves once they are whole", async () => {
    const text = JSON.stringify({ ...compose("ada"), system: "x".repeat(5_000) });
    const sockets = await Promise.all(
      Array.from({ length: ATTACKERS }, () => begin(app, `${head("/compose", text.length)}${text.slice(0, 5)}`)),
    );
    let at = 5;
    const drops = setInterval(() => {
      for (const socket of sockets) socket.write(text.slice(at, at + 1));
      at++;
    }, 200);
    for (let n = 0; n < 20; n++) expect((await app.send("POST", "/compose", compose(`user-${n}`))).status).toBe(200);
    expect(await metric(app, "memprefix_requests_in_flight")).toBe(0);
    clearInterval(drops);
    const [one, ...others] = sockets as [Socket, ...Socket[]];
    one.write(text.slice(at));
    expect((await once(one, "data"))[0].toString()).toMatch(/^HTTP\/1.1 200/);
    for (const socket of [one, ...others]) socket.destroy();
    expect(app.faults).toEqual([]);
  });

  it("without a key that holds are not read", async () => {
    callerOf(app, "acme");
    const half = `${head("/compose", 100, "x-api-key: mst_no\r\n")}{"user_id`;
    const sockets = await Promise.all(Array.from({ length: 200 }, () => begin(app, half)));
    for (const socket of sockets) expect((await once(socket, "data"))[0].toString()).toMatch(/^HTTP\/1.1 401/);
    for (const socket of sockets) socket.destroy();
  });
});

describe("bytes of bodies that are being read", () => {
  const app = servedApp({ times: { limits: { maxBytesRead: 4 * 65_536, maxBodyBytes: 2 * 65_536 } } });

  it("are bounded over the service and per tenant: beyond that is 503, and small bodies that come whole are served", async () => {
    const [greedy, modest] = [callerOf(app, "acme"), callerOf(app, "other")];
    const halfOf = (key: string, bytes: number, path = "/compose") =>
      begin(app, `${head(path, 2 * 65_536, `x-api-key: ${key}\r\n`)}${"x".repeat(bytes)}`);
    const held = await halfOf(greedy.key, 100_000);
    const refused = await answerOf(await halfOf(greedy.key, 60_000));
    expect(refused).toMatchObject({ status: 503, body: { status: 503, title: "Not available" } });
    expect(refused.head).toContain("retry-after: 1");
    expect(refused.head).toContain("connection: close");
    const chat = await answerOf(await halfOf(greedy.key, 60_000, "/v1/chat/completions"));
    expect(openAiProblemSchema.parse(chat.body)).toEqual(chat.body);
    expect((await greedy.send("POST", "/compose", compose("ada"))).status).toBe(200);
    const long = { ...compose("bob"), system: "x".repeat(100_000) };
    expect((await modest.send("POST", "/compose", long)).status).toBe(200);
    expect(await metric(app, 'memprefix_refused_requests_total{reason="body_bytes"}', modest.key)).toBe(2);
    held.destroy();
    await vi.waitFor(async () => expect((await greedy.send("POST", "/compose", long)).status).toBe(200));
  });
});

describe("an answer that nobody takes", () => {
  const app = servedApp({ times: { limits: { answerTimeoutMs: 2_000 } } });
  const get = "GET /users/ada/export HTTP/1.1\r\nhost: localhost\r\n\r\n";
  const pending = () => metric(app, "memprefix_requests_in_flight");

  it("is cut off, and so are those that wait behind it on its connection: their places are free again", async () => {
    const memories = Array.from({ length: 40 }, (_, n) => ({ id: `m${n}`, memory: `${n} ${"tea ".repeat(20_000)}` }));
    await app.compose({ user_id: "ada", query: "Tea?", memories });
    const deaf = await begin(app, get.repeat(20));
    deaf.pause();
    await vi.waitFor(async () => expect(await pending()).toBeGreaterThan(0));
    await vi.waitFor(async () => expect(await pending()).toBe(0));
    deaf.destroy();
  });
});

describe("pipelined requests", () => {
  const engine = rawEngine();
  const app = servedApp({ upstream: engine });

  it("that are answered, but wait behind one that is not, have no place once their client has left", async () => {
    engine.does(() => {});
    const chat = JSON.stringify({ messages: [{ role: "user", content: "Tea?" }], user: "ada" });
    const behind = "GET /users/ada/export HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(20);
    const socket = await begin(app, `${head("/v1/chat/completions", chat.length)}${chat}${behind}`);
    await vi.waitFor(async () => expect(await metric(app, "memprefix_requests_in_flight")).toBeGreaterThan(1));
    socket.resetAndDestroy();
    await vi.waitFor(async () => expect(await metric(app, "memprefix_requests_in_flight")).toBe(0));
    expect(app.memprefix.load).toMatchObject({ jobs: 0, busyUsers: 0 });
    expect(app.faults).toEqual([]);
  });
});
