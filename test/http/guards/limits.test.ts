import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { openAiProblemSchema } from "../../../src/http/problems/problem.js";
import type { MemorySource } from "../../../src/memory/memory-source.js";
import { openAiEngine } from "../routes/openai-engine.js";
import { problemOf, servedApp } from "../server/served-app.js";
import { callerOf, sendWith } from "./callers.js";

const compose = (user: string) => ({ user_id: user, query: "Tea?", memories: [] });
const search = (user: string) => ({ user_id: user, query: "Tea?" });

/** A memory source whose searches wait until they are let go. */
class HeldSource implements MemorySource {
  readonly name = "held";
  readonly owned = false;
  #letGo: (() => void)[] = [];
  #arrived: (() => void)[] = [];
  searches = 0;

  async search(): Promise<[]> {
    this.searches++;
    for (const tell of this.#arrived.splice(0)) tell();
    await new Promise<void>((go) => this.#letGo.push(go));
    return [];
  }

  /** Resolves when this many searches have come. */
  async came(count: number): Promise<void> {
    while (this.searches < count) await new Promise<void>((tell) => this.#arrived.push(tell));
  }

  letGo(): void {
    for (const go of this.#letGo.splice(0)) go();
  }

  add = () => Promise.resolve([]);
  delete = () => Promise.resolve(false);
  deleteUser = () => Promise.resolve();
  close = () => Promise.resolve();
}

/** A held source for each test. */
function heldApp(environment: Readonly<Record<string, string>>) {
  let source = new HeldSource();
  const app = servedApp({
    environment,
    source: () => {
      source = new HeldSource();
      return source;
    },
  });
  return { app, source: () => source };
}

const refused = async (app: ReturnType<typeof servedApp>, reason: string): Promise<number> => {
  const { text } = await callerOf(app, "operator").send("GET", "/metrics");
  return Number(new RegExp(`memprefix_refused_requests_total{reason="${reason}"} (\\d+)`).exec(text)?.[1] ?? 0);
};

describe("the rate of a key", () => {
  const app = servedApp({ environment: { MEMPREFIX_RATE_PER_SECOND: "1" } });

  it("is told with every answer, and refuses what goes beyond it, of that key alone", async () => {
    const [greedy, modest] = [callerOf(app, "acme"), callerOf(app, "acme")];
    const answers = [];
    for (let at = 0; at < 12; at++) answers.push(await greedy.send("POST", "/compose", compose("ada")));
    const [first] = answers;
    expect(first?.status).toBe(200);
    expect(first?.headers.get("ratelimit-policy")).toBe('"key";q=2;w=2');
    expect(first?.headers.get("ratelimit")).toBe('"key";r=1;t=1');
    const beyond = answers.filter(({ status }) => status === 429);
    expect(beyond.length).toBeGreaterThan(0);
    expect(beyond.length + answers.filter(({ status }) => status === 200).length).toBe(12);
    for (const exchange of beyond) {
      expect(problemOf(exchange).detail).toContain("MEMPREFIX_RATE_PER_SECOND");
      expect(exchange.headers.get("retry-after")).toBe("1");
      expect(exchange.headers.get("ratelimit")).toBe('"key";r=0;t=1');
    }
    expect((await modest.send("POST", "/compose", compose("ada"))).status).toBe(200);
    expect(await refused(app, "rate")).toBe(beyond.length);
    expect((await sendWith(app, {}, "GET", "/healthz")).headers.has("ratelimit")).toBe(false);
  });

  it("refuses chats in OpenAI's words", async () => {
    const { send } = callerOf(app, "acme");
    let exchange = await send("POST", "/v1/chat/completions", {});
    for (let at = 0; at < 20 && exchange.status !== 429; at++)
      exchange = await send("POST", "/v1/chat/completions", {});
    expect(openAiProblemSchema.parse(JSON.parse(exchange.text)).error).toMatchObject({ code: "rate_limit_exceeded" });
  });

  it("is everybody's together without keys", async () => {
    const statuses = [];
    for (let at = 0; at < 12; at++) statuses.push((await app.send("POST", "/compose", compose(`user-${at}`))).status);
    expect(statuses).toContain(429);
    expect(statuses[0]).toBe(200);
  });
});

describe("the requests of a key that are under way", () => {
  const { app, source } = heldApp({ MEMPREFIX_MAX_CONCURRENT: "2" });

  it("are at most so many, and another key's are its own", async () => {
    const [greedy, modest] = [callerOf(app, "acme"), callerOf(app, "acme")];
    const held = [greedy.send("POST", "/compose", search("ada")), greedy.send("POST", "/compose", search("bob"))];
    await source().came(2);
    const exchange = await greedy.send("POST", "/compose", search("cy"));
    expect(problemOf(exchange)).toMatchObject({ status: 429, title: "Too many requests" });
    expect(problemOf(exchange).detail).toContain("MEMPREFIX_MAX_CONCURRENT");
    expect(exchange.headers.get("retry-after")).toBe("1");
    const other = modest.send("POST", "/compose", search("dee"));
    await source().came(3);
    source().letGo();
    expect((await Promise.all([...held, other])).map(({ status }) => status)).toEqual([200, 200, 200]);
    const after = greedy.send("POST", "/compose", search("cy"));
    await source().came(4);
    source().letGo();
    expect((await after).status).toBe(200);
    expect(await refused(app, "concurrency")).toBe(1);
  });

  it("are done when their clients go away", async () => {
    const { send, key } = callerOf(app, "acme");
    const gone = new AbortController();
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const held = ["ada", "bob"].map((user) =>
      fetch(`${app.base}/compose`, {
        method: "POST",
        headers,
        body: JSON.stringify(search(user)),
        signal: gone.signal,
      }),
    );
    await source().came(2);
    expect((await send("GET", "/users/ada/index")).status).toBe(429);
    gone.abort();
    await Promise.allSettled(held);
    await expect.poll(async () => (await send("GET", "/users/ada/index")).status).toBe(200);
    source().letGo();
  });
});

describe("a chat that streams", () => {
  const engine = openAiEngine();
  const app = servedApp({
    get environment() {
      return { MEMPREFIX_MAX_CONCURRENT: "1", MEMPREFIX_MAX_PENDING: "1", MEMPREFIX_UPSTREAM_URL: engine.url };
    },
  });

  it("is one of the key's requests to its end, but in work only until it begins", async () => {
    let end = () => {};
    engine.behave((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"choices":[]}\n\n');
      end = () => response.end("data: [DONE]\n\n");
    });
    const { key, send } = callerOf(app, "acme");
    const chat = { stream: true, user: "ada", messages: [{ role: "user", content: "Tea?" }] };
    const streamed = await fetch(`${app.base}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify(chat),
    });
    expect(streamed.status).toBe(200);
    expect((await send("GET", "/v1/models")).status).toBe(429);
    expect((await callerOf(app, "acme").send("GET", "/users/ada/index")).status).toBe(200);
    end();
    expect(await streamed.text()).toContain("[DONE]");
    await expect.poll(async () => (await send("GET", "/users/ada/index")).status).toBe(200);
  });
});

describe("a service with as much in work as it may have", () => {
  const { app, source } = heldApp({ MEMPREFIX_MAX_PENDING: "2" });

  it("turns more away before it reads their bodies, but still says how it is", async () => {
    const held = [app.send("POST", "/compose", search("ada")), app.send("POST", "/compose", search("bob"))];
    await source().came(2);
    const exchange = await sendWith(app, {}, "POST", "/compose", search("cy"));
    expect(problemOf(exchange)).toMatchObject({ status: 503, title: "Not available" });
    expect(problemOf(exchange).detail).toContain("MEMPREFIX_MAX_PENDING");
    expect(exchange.headers.get("retry-after")).toBe("1");
    // Only the head of a request is sent here; its body never comes.
    const { port } = new URL(app.base);
    const socket = connect(Number(port), "127.0.0.1");
    socket.write(
      "POST /compose HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n",
    );
    const [bytes] = (await once(socket, "data")) as [Buffer];
    expect(bytes.toString()).toMatch(/^HTTP\/1\.1 503 /);
    socket.destroy();
    expect((await app.send("GET", "/healthz")).status).toBe(200);
    expect((await app.send("GET", "/metrics")).text).toContain('memprefix_refused_requests_total{reason="pending"} 2');
    source().letGo();
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await app.send("POST", "/compose", compose("cy"))).status).toBe(200);
  });
});

/**
 * Sends bodies on connections that were taken up before: the first half in one go, so that the service finds them together, and the others
 * when one of those is answered, before it has caught up. Gives the answers, heads included, in the bodies' order.
 */
async function inTwoRushes(
  { base }: { readonly base: string },
  path: string,
  bodies: readonly object[],
): Promise<string[]> {
  const port = Number(new URL(base).port);
  const sockets = await Promise.all(
    bodies.map(async () => {
      const socket = connect(port, "127.0.0.1");
      // Once it was answered it is taken up; else the service would take up one after the other.
      socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
      await once(socket, "data");
      return socket;
    }),
  );
  const answer = async (body: object, socket: Socket) => {
    const text = JSON.stringify(body);
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n` +
        `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
    return Buffer.concat(await socket.toArray()).toString();
  };
  const rush = (from: number, to: number) =>
    bodies.slice(from, to).map((body, n) => answer(body, sockets[from + n] as Socket));
  const half = bodies.length / 2;
  const first = rush(0, half);
  await Promise.race(first);
  return Promise.all([...first, ...rush(half, bodies.length)]);
}

async function requestsOf(app: ReturnType<typeof servedApp>, user: string): Promise<number> {
  return (await app.memprefix.describeIndex(user as UserId, null, 1)).counts.requests;
}

describe("more requests at once than can be served in time", () => {
  const app = servedApp({ environment: { MEMPREFIX_MAX_LAG_MS: "1" } });

  it("are turned away, those that are served are kept, and the service still says how it is", async () => {
    const asked = Array.from({ length: 200 }, (_, n) => `user-${n}`);
    const answers = await inTwoRushes(
      app,
      "/compose",
      asked.map((user) => compose(user)),
    );
    const statuses = answers.map((answer) => answer.slice(9, 12));
    expect(statuses[0]).toBe("200");
    expect(new Set(statuses)).toEqual(new Set(["200", "503"]));
    for (const answer of answers.filter((_, n) => statuses[n] === "503")) {
      expect(answer).toMatch(/\r\nretry-after: 1\r\n/i);
      expect(answer).toContain("MEMPREFIX_MAX_LAG_MS");
    }
    const stored = await Promise.all(asked.map((user) => requestsOf(app, user)));
    expect(stored).toEqual(statuses.map((status) => (status === "200" ? 1 : 0)));
    expect((await app.send("GET", "/healthz")).status).toBe(200);
    const away = statuses.filter((status) => status === "503").length;
    const { text } = await app.send("GET", "/metrics");
    expect(text).toContain(`memprefix_refused_requests_total{reason="lag"} ${away}`);
    expect(text).toMatch(/^memprefix_admission_wait_seconds_count \d+$/m);
    expect(text).toContain(`memprefix_http_requests_total{method="POST",route="/*",status="503"} ${away}`);
    const logged = app.log.filter(({ status }) => status === 503);
    expect(logged).toHaveLength(away);
    for (const entry of logged)
      expect(entry).toEqual({ method: "POST", route: "/*", status: 503, ms: expect.any(Number) });
    // What a client waited counts whole: of these requests, those that were let in late most of all.
    const waits = /^memprefix_admission_wait_seconds_sum (\S+)$/m.exec(text)?.[1];
    const spent = /^memprefix_http_request_duration_seconds_sum\{route="\/compose"\} (\S+)$/m.exec(text)?.[1];
    expect(Number(spent)).toBeGreaterThan(Number(waits));
  });
});

describe("more chats at once than can be composed in time", () => {
  const engine = openAiEngine();
  const app = servedApp({
    get environment() {
      return { MEMPREFIX_MAX_LAG_MS: "1", MEMPREFIX_UPSTREAM_URL: engine.url };
    },
  });

  it("are all answered: those that are not composed go to the engine as they came", async () => {
    const asked = Array.from({ length: 200 }, (_, n) => `user-${n}`);
    const memories = [{ id: "m", memory: "Ada drinks green tea" }];
    const messages = [{ role: "user", content: "Tea?" }];
    const bodies = asked.map((user) => ({ messages, memprefix: { user_id: user, memories } }));
    const answers = await inTwoRushes(app, "/v1/chat/completions", bodies);
    expect(new Set(answers.map((text) => text.slice(9, 12)))).toEqual(new Set(["200"]));
    const plain = answers.filter((text) => /\r\nx-memprefix-not-composed: lag\r\n/i.test(text)).length;
    expect(plain).toBeGreaterThan(0);
    const sent = engine.requests.filter(({ body }) => body.messages[0]?.content === "Tea?").length;
    expect(sent).toBe(plain);
    const stored = await Promise.all(asked.map((user) => requestsOf(app, user)));
    expect(stored.filter((requests) => requests === 0)).toHaveLength(plain);
    const { text } = await app.send("GET", "/metrics");
    expect(text).toContain(`memprefix_not_composed_chats_total{reason="lag"} ${plain}`);
    expect(text).not.toContain('memprefix_refused_requests_total{reason="lag"}');
  });
});

describe("a user with as many requests waiting as there may be", () => {
  const { app, source } = heldApp({});

  it("has to wait, and no other user does, of this tenant or another", async () => {
    const [acme, other] = [callerOf(app, "acme"), callerOf(app, "other")];
    const held = Array.from({ length: 256 }, () => acme.send("POST", "/compose", search("ada")));
    await source().came(1);
    await expect.poll(() => app.memprefix.load.jobs).toBe(256);
    const exchange = await acme.send("POST", "/compose", compose("ada"));
    expect(problemOf(exchange)).toMatchObject({ status: 429 });
    expect(problemOf(exchange).detail).toContain("256 requests of this user");
    expect(exchange.headers.get("retry-after")).toBe("1");
    expect((await acme.send("POST", "/compose", compose("bob"))).status).toBe(200);
    expect((await other.send("POST", "/compose", compose("ada"))).status).toBe(200);
    const pump = setInterval(() => source().letGo(), 5);
    expect(new Set((await Promise.all(held)).map(({ status }) => status))).toEqual(new Set([200]));
    clearInterval(pump);
    expect((await acme.send("POST", "/compose", compose("ada"))).status).toBe(200);
    expect(await refused(app, "user_queue")).toBe(1);
  });
});

describe("a body beyond the limit", () => {
  const app = servedApp({ environment: { MEMPREFIX_MAX_BODY_BYTES: "1024" } });

  it("is refused, and counted", async () => {
    const { send } = callerOf(app, "acme");
    const exchange = await send("POST", "/compose", { ...compose("ada"), system: "x".repeat(2_000) });
    expect(problemOf(exchange)).toMatchObject({ status: 413 });
    expect(await refused(app, "too_large")).toBe(1);
  });
});
