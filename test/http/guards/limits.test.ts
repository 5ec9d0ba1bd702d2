import { connect } from "node:net";
import { describe, expect, it, vi } from "vitest";
import type { HttpLimits } from "../../../src/http/guards/limits.js";
import { openAiProblemSchema } from "../../../src/http/problems/problem.js";
import { heldSource } from "../routes/answering-source.js";
import { openAiEngine } from "../routes/openai-engine.js";
import { problemOf, servedApp } from "../server/served-app.js";
import { callerOf } from "./callers.js";

const compose = (user: string) => ({ user_id: user, query: "Tea?", memories: [] });
const search = (user: string) => ({ user_id: user, query: "Tea?" });

function heldApp(environment: Readonly<Record<string, string>>, limits: Partial<HttpLimits> = {}) {
  let source = heldSource();
  const app = servedApp({
    environment,
    times: { limits },
    source: () => {
      source = heldSource();
      return source;
    },
  });
  const came = (searches: number) => vi.waitFor(() => expect(source.queries).toHaveLength(searches));
  return { app, came, letGo: () => source.letGo() };
}

const refused = async (app: ReturnType<typeof servedApp>, reason: string): Promise<number> => {
  const { text } = await callerOf(app, "operator").send("GET", "/metrics");
  return Number(new RegExp(`memprefix_refused_requests_total{reason="${reason}"} (\\d+)`).exec(text)?.[1] ?? 0);
};

describe("requests in flight", () => {
  const { app, came, letGo } = heldApp({}, { maxInFlight: 4 });
  /** Only the head of a request is sent; its body never comes. */
  const half = (key: string) => {
    const socket = connect(Number(new URL(app.base).port), "127.0.0.1").on("error", () => {});
    const type = `host: localhost\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\n`;
    socket.write(`POST /compose HTTP/1.1\r\n${type}content-length: 100\r\n\r\n{`);
    return socket;
  };

  it("beyond the limit are rejected with 503, those of one tenant beyond half of it; half bodies do not count", async () => {
    const [greedy, same, other] = [callerOf(app, "acme"), callerOf(app, "acme"), callerOf(app, "other")];
    const sockets = Array.from({ length: 8 }, () => half(greedy.key));
    const held = [greedy.send("POST", "/compose", search("ada")), same.send("POST", "/compose", search("bob"))];
    await came(2);
    const exchange = await greedy.send("POST", "/compose", search("cy"));
    expect(problemOf(exchange)).toMatchObject({ status: 503, title: "Not available" });
    expect(problemOf(exchange).detail).toContain("at most 4, half of them of one tenant");
    expect(exchange.headers.get("content-type")).toBe("application/problem+json");
    expect(exchange.headers.get("retry-after")).toBe("1");
    expect((await other.send("POST", "/compose", compose("dee"))).status).toBe(200);
    held.push(other.send("POST", "/compose", search("dee")), other.send("POST", "/compose", search("eve")));
    await came(4);
    expect((await callerOf(app, "third").send("POST", "/compose", compose("fay"))).status).toBe(503);
    expect((await app.send("GET", "/healthz")).status).toBe(200);
    expect(await refused(app, "in_flight")).toBe(2);
    letGo();
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await greedy.send("POST", "/compose", compose("cy"))).status).toBe(200);
    for (const socket of sockets) socket.destroy();
  });

  it("are done when their clients go away", async () => {
    const { send, key } = callerOf(app, "acme");
    const gone = new AbortController();
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const held = ["ada", "bob"].map((user) => {
      const body = JSON.stringify(search(user));
      return fetch(`${app.base}/compose`, { method: "POST", headers, body, signal: gone.signal });
    });
    await came(2);
    expect((await send("GET", "/users/cy/export")).status).toBe(503);
    gone.abort();
    await Promise.allSettled(held);
    await expect.poll(async () => (await send("GET", "/users/cy/export")).status).toBe(200);
    letGo();
  });
});

describe("a chat", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, times: { limits: { maxInFlight: 1 } } });
  const chat = { stream: true, user: "ada", messages: [{ role: "user", content: "Tea?" }] };
  const send = () => fetch(`${app.base}/v1/chat/completions`, { method: "POST", body: JSON.stringify(chat) });

  it("is in flight until the engine begins to answer; one beyond the limit is rejected in OpenAI's words", async () => {
    let begin = () => {};
    let end = () => {};
    engine.behave((_request, response) => {
      begin = () => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write('data: {"choices":[]}\n\n');
      };
      end = () => response.end("data: [DONE]\n\n");
    });
    const first = send();
    await vi.waitFor(() => expect(engine.requests).toHaveLength(1));
    const beyond = await send();
    expect(beyond.status).toBe(503);
    expect(beyond.headers.get("retry-after")).toBe("1");
    const error = openAiProblemSchema.parse(await beyond.json());
    expect(error.error).toMatchObject({ type: "server_error", message: expect.stringContaining("in flight") });
    begin();
    const streamed = await first;
    expect(streamed.status).toBe(200);
    expect((await app.send("GET", "/users/ada/export")).status).toBe(200);
    end();
    expect(await streamed.text()).toContain("[DONE]");
  });
});

describe("a user with as many requests waiting as there may be", () => {
  const { app, came, letGo } = heldApp({});

  it("has to wait, and no other user does, of this tenant or another", async () => {
    const [acme, other] = [callerOf(app, "acme"), callerOf(app, "other")];
    const held = Array.from({ length: 64 }, () => acme.send("POST", "/compose", search("ada")));
    await came(1);
    await expect.poll(() => app.memprefix.load.jobs).toBe(64);
    const exchange = await acme.send("POST", "/compose", compose("ada"));
    expect(problemOf(exchange)).toMatchObject({ status: 429 });
    expect(problemOf(exchange).detail).toContain("64 requests of this user");
    expect(exchange.headers.get("retry-after")).toBe("1");
    expect((await acme.send("POST", "/compose", compose("bob"))).status).toBe(200);
    expect((await other.send("POST", "/compose", compose("ada"))).status).toBe(200);
    const pump = setInterval(letGo, 5);
    expect(new Set((await Promise.all(held)).map(({ status }) => status))).toEqual(new Set([200]));
    clearInterval(pump);
    expect((await acme.send("POST", "/compose", compose("ada"))).status).toBe(200);
    expect(await refused(app, "user_queue")).toBe(1);
  });
});

describe("a body beyond the limit", () => {
  const app = servedApp({ times: { limits: { maxBodyBytes: 1_024 } } });

  it("is refused, and counted", async () => {
    const { send } = callerOf(app, "acme");
    const exchange = await send("POST", "/compose", { ...compose("ada"), system: "x".repeat(2_000) });
    expect(problemOf(exchange)).toMatchObject({ status: 413 });
    expect(await refused(app, "too_large")).toBe(1);
  });
});
