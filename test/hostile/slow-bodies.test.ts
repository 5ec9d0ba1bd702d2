/*
 * Attacked: the places among the requests in work, by requests whose bodies never come, come drop by drop, or are nobody's to read, by answers
 * that nobody takes, and by pipelining. Broke: 1,024 half bodies held all places for 331 s; an answer that nobody took held its own for good, and
 * so did pipelined requests whose client left before their turn. Held: requests without a key that holds, heads without an end.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { clientOf, PendingRequests } from "../../src/http/guards/limits.js";
import { openAiProblemSchema } from "../../src/http/problems/problem.js";
import { callerOf } from "../http/guards/callers.js";
import { problemOf, type ServedApp, servedApp } from "../http/server/served-app.js";
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
    times: { bodyRate: { idleMs: 300, bytesPerSecond: 4_096 } },
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
      detail: expect.stringMatching(/no byte of the body arrived for 300 ms|less than 4096 bytes a second/),
    });
    if (path.startsWith("/v1")) expect(openAiProblemSchema.parse(body)).toEqual(body);
    expect(await metric(app, 'memprefix_refused_requests_total{reason="slow_body"}')).toBe(1);
    expect(await metric(app, "memprefix_pending_requests")).toBe(0);
    expect(app.faults).toEqual([]);
  });

  it("though it was told to, is 408 behind the 100", async () => {
    const socket = await begin(app, head("/compose", 100, "expect: 100-continue\r\n"));
    const text = Buffer.concat(await socket.toArray()).toString();
    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 408 /);
    expect(text).toContain("no byte of the body arrived for 300 ms");
  });

  it("that nobody reads keeps no connection open", async () => {
    for (const path of ["/healthz", "/users/ada/index", "/metrics"]) {
      const socket = await begin(app, `${head(path, 100, "", "GET")}{"user_id`);
      expect(Buffer.concat(await socket.toArray()).toString()).toContain("HTTP/1.1 200");
    }
    expect(await metric(app, "memprefix_pending_requests")).toBe(0);
  });

  it("of a batch that comes line by line ends it, and is no fault of ours", async () => {
    const line = `${JSON.stringify(compose("ada"))}\n`;
    const sent = head("/compose/batch?window=1", "chunked").replace("application/json", "application/x-ndjson");
    const socket = await begin(app, `${sent}${line.length.toString(16)}\r\n${line}\r\n`);
    expect(Buffer.concat(await socket.toArray()).toString()).toContain("HTTP/1.1 200");
    await vi.waitFor(async () => expect(await metric(app, "memprefix_pending_requests")).toBe(0));
    expect(app.faults).toEqual([]);
  });

  it("because its client leaves is no fault of ours", async () => {
    for (const path of ["/compose", "/compose/batch", "/v1/chat/completions"]) {
      (await begin(app, `${head(path, 100)}{"user_id`)).resetAndDestroy();
      (await begin(app, `${head(path, 100)}{"user_id`)).destroy();
    }
    await vi.waitFor(() => expect(app.log.filter(({ status }) => status === 499)).toHaveLength(6));
    expect(await metric(app, "memprefix_pending_requests")).toBe(0);
    expect(app.faults).toEqual([]);
  });
});

describe("a body that comes drop by drop", () => {
  const app = servedApp({
    times: { bodyRate: { idleMs: 400, bytesPerSecond: 1_000 } },
  });

  it("is 408 where it is slower than it may be, though some always comes", async () => {
    const text = JSON.stringify({ ...compose("ada"), system: "x".repeat(2_000) });
    const socket = await begin(app, head("/compose", text.length, "connection: close\r\n"));
    let at = 0;
    const drops = setInterval(() => {
      socket.write(text.slice(at, at + 10));
      at += 10;
    }, 20);
    const { status, body } = await answerOf(socket).finally(() => clearInterval(drops));
    expect(status).toBe(408);
    // A machine that stands still for as long counts as silence.
    expect(body).toMatchObject({ detail: expect.stringMatching(/less than 1000 bytes a second|for 400 ms/) });
  });
});

/** As many as the machine lets a process open, two ends each in this process. */
const ATTACKERS = 1_024;

describe("half bodies in all the places that there are", () => {
  const app = servedApp();

  it("of one key leave places for others", async () => {
    const [greedy, modest] = [callerOf(app, "acme"), callerOf(app, "other")];
    const half = `${head("/compose", 100, `x-api-key: ${greedy.key}\r\n`)}{"user_id`;
    const sockets = await Promise.all(Array.from({ length: ATTACKERS }, () => begin(app, half)));
    const pending = () => metric(app, "memprefix_pending_requests", modest.key);
    await vi.waitFor(async () => expect(await pending()).toBeGreaterThan(700));
    await vi.waitFor(
      async () =>
        expect(
          (await metric(app, 'memprefix_refused_requests_total{reason="pending_share"}', modest.key)) +
            (await pending()),
        ).toBeGreaterThanOrEqual(ATTACKERS),
      10_000,
    );
    expect(await pending()).toBe(768);
    for (let n = 0; n < 20; n++) {
      expect((await modest.send("POST", "/compose", compose(`user-${n}`))).status).toBe(200);
    }
    const beyond = await greedy.send("POST", "/compose", compose("ada"));
    expect(problemOf(beyond)).toMatchObject({ status: 429, detail: expect.stringContaining("MEMPREFIX_MAX_PENDING") });
    expect(beyond.headers.get("retry-after")).toBe("1");
    for (const socket of sockets) socket.destroy();
    await vi.waitFor(async () => expect(await pending()).toBe(0));
    expect((await greedy.send("POST", "/compose", compose("ada"))).status).toBe(200);
  });

  it("of one address, where there are no keys, leave places for bodies that come", async () => {
    const half = `${head("/compose", 100)}{"user_id`;
    const sockets = await Promise.all(Array.from({ length: ATTACKERS }, () => begin(app, half)));
    await vi.waitFor(async () => expect(await metric(app, "memprefix_pending_requests")).toBe(768));
    for (let n = 0; n < 20; n++) expect((await app.send("POST", "/compose", compose(`user-${n}`))).status).toBe(200);
    expect(await metric(app, 'memprefix_refused_requests_total{reason="body_share"}')).toBe(ATTACKERS - 768);
    // What a header says of an address changes nothing.
    const forged = await begin(
      app,
      `${head("/compose", 100, "x-forwarded-for: 203.0.113.9\r\nforwarded: for=203.0.113.9\r\n")}{"`,
    );
    expect((await answerOf(forged)).status).toBe(429);
    for (const socket of sockets) socket.destroy();
    await vi.waitFor(async () => expect(await metric(app, "memprefix_pending_requests")).toBe(0));
    expect(app.faults).toEqual([]);
  });

  it("without a key that holds have no place", async () => {
    callerOf(app, "acme");
    const half = `${head("/compose", 100, "x-api-key: mst_no\r\n")}{"user_id`;
    const sockets = await Promise.all(Array.from({ length: 200 }, () => begin(app, half)));
    for (const socket of sockets) expect((await once(socket, "data"))[0].toString()).toMatch(/^HTTP\/1.1 401/);
    const { key } = callerOf(app, "operator");
    expect(await metric(app, "memprefix_pending_requests", key)).toBe(0);
    for (const socket of sockets) socket.destroy();
  });
});

describe("an answer that nobody takes", () => {
  const app = servedApp({ times: { answerTimeoutMs: 2_000 } });
  const get = "GET /users/ada/export HTTP/1.1\r\nhost: localhost\r\n\r\n";
  const pending = () => metric(app, "memprefix_pending_requests");

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
    await vi.waitFor(async () => expect(await metric(app, "memprefix_pending_requests")).toBeGreaterThan(1));
    socket.resetAndDestroy();
    await vi.waitFor(async () => expect(await metric(app, "memprefix_pending_requests")).toBe(0));
    expect(app.faults).toEqual([]);
  });

  it("whose client leaves have no place any longer, also those whose turn had not come", async () => {
    const text = JSON.stringify(compose("ada"));
    const one = `${head("/compose", text.length)}${text}`;
    for (let n = 0; n < 5; n++) {
      const socket = await begin(app, `${head("/compose", 100)}{"`);
      socket.resetAndDestroy();
      const piped = await begin(app, one.repeat(50));
      await once(piped, "data");
      piped.resetAndDestroy();
      (await begin(app, one.repeat(50))).resetAndDestroy();
    }
    await vi.waitFor(async () => expect(await metric(app, "memprefix_pending_requests")).toBe(0));
    expect(app.memprefix.load).toMatchObject({ jobs: 0, busyUsers: 0 });
    expect(app.faults).toEqual([]);
  });
});

describe("a share of what may be in work", () => {
  it("is three quarters for one, and leaves something free however many want everything", () => {
    for (const [holders, most] of [
      [1, 768],
      [2, 439],
      [3, 308],
      [50, 21],
    ] as const) {
      const pending = new PendingRequests(1_024);
      const held = Array.from({ length: holders }, () => 0);
      for (let round = 0; round < 1_024; round++) {
        for (let holder = 0; holder < holders; holder++) {
          const entered = pending.enter();
          if (entered?.slot.share(`key ${holder}`) === true) held[holder] = (held[holder] ?? 0) + 1;
          else entered?.leave();
        }
      }
      expect(Math.max(...held)).toBeLessThanOrEqual(most);
      expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(1);
      const newcomer = pending.enter();
      expect(newcomer?.slot.share("another")).toBe(true);
    }
  });

  it("goes with its requests, and one of one slot is whole", () => {
    const pending = new PendingRequests(1);
    for (let n = 0; n < 3; n++) {
      const entered = pending.enter();
      expect(entered?.slot.share("key")).toBe(true);
      expect(pending.enter()).toBeNull();
      entered?.leave();
    }
    expect(pending.count).toBe(0);
  });
});

describe("an address", () => {
  it.each([
    ["203.0.113.9", "203.0.113.9"],
    ["::ffff:203.0.113.9", "203.0.113.9"],
    ["::FFFF:203.0.113.9", "203.0.113.9"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0db8:0001:0002::1", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["64:ff9b::203.0.113.9", "64:ff9b:0:0::/64"],
    [undefined, ""],
  ])("%s counts as %s: of IPv6 what one subscriber has", (address, client) => {
    expect(clientOf(address)).toBe(client);
  });
});
