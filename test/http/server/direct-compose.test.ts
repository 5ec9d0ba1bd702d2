import type { IncomingMessage } from "node:http";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { composeBodyWithNulls } from "../../../src/http/contracts/compose-contract.js";
import { isPlainCompose } from "../../../src/http/server/direct-compose.js";
import { fuzzedRequest } from "../contracts/fuzzed-requests.js";
import { servedApp } from "./served-app.js";

const KEY = "a-key-of-the-operator-0123456789";
const app = servedApp({
  environment: {
    MEMSTEM_API_KEY: KEY,
    MEMSTEM_RATE_PER_SECOND: "500",
    MEMSTEM_MAX_CONCURRENT: "5",
    MEMSTEM_MAX_BODY_BYTES: "20000",
  },
});

/** The plain form, which is served directly; and another, which is the app's. */
const DIRECT = "application/json";
const OF_THE_APP = "application/json;charset=utf-8";

const good = { query: "What does Ada drink?", memories: [{ id: "1", memory: "Ada drinks tea." }] };

/** What is sent: the body, which may have the name of its user in it, and headers in place of the key's. */
const requests: readonly (readonly [
  string,
  (user: string) => string | Uint8Array,
  Readonly<Record<string, string>>?,
])[] = [
  ["a prompt", (user) => JSON.stringify({ ...good, user_id: user, request_id: "one" })],
  ["a conversation", (user) => JSON.stringify({ ...good, user_id: user, request_id: "one", conversation_id: "c" })],
  ["text beyond ASCII", (user) => JSON.stringify({ ...good, user_id: user, request_id: "one", query: "Ça va? 🙂" })],
  ["no key", (user) => JSON.stringify({ ...good, user_id: user }), {}],
  ["a key that is not valid", (user) => JSON.stringify({ ...good, user_id: user }), { authorization: "Bearer no" }],
  [
    "the key in its own header",
    (user) => JSON.stringify({ ...good, user_id: user, request_id: "one" }),
    { "x-api-key": KEY },
  ],
  ["no JSON", () => "{"],
  ["nothing", () => ""],
  ["JSON that is no object", () => "[]"],
  ["fields that are wrong", () => JSON.stringify({ ...good, top_k: "many", nope: 1 })],
  [
    "a part of a message without its type",
    (user) => JSON.stringify({ user_id: user, messages: [{ role: "user", content: [{ text: "a" }] }] }),
  ],
  ["fields that do not fit each other", (user) => JSON.stringify({ user_id: user, memories: [] })],
  ["a name that sets a prototype", () => '{"__proto__":{}}'],
  ["nesting that is too deep", () => "[".repeat(200)],
  ["bytes that are not UTF-8", () => new Uint8Array([0x7b, 0xff, 0x7d])],
  ["a body that is too long", () => " ".repeat(20_001)],
];

describe("POST /compose served directly", () => {
  it.each(
    requests.map(([name, bodyFor, headers = { authorization: `Bearer ${KEY}` }]) => ({ name, bodyFor, headers })),
  )("is answered and logged as by the app: $name", async ({ bodyFor, headers }) => {
    const send = async (type: string, user: string) => {
      const answer = await fetch(`${app.base}/compose`, {
        method: "POST",
        headers: { "content-type": type, ...headers },
        body: new Uint8Array(Buffer.from(bodyFor(user))),
      });
      const { date: _, ratelimit, ...others } = Object.fromEntries(answer.headers);
      return { status: answer.status, limited: ratelimit !== undefined, others, body: await answer.text() };
    };
    const direct = await send(DIRECT, "ada");
    const ofTheApp = await send(OF_THE_APP, "bob");
    expect(direct).toEqual({ ...ofTheApp, body: ofTheApp.body.replaceAll("bob", "ada") });
    const [first, second] = app.log.map(({ ms: _, ...entry }) => entry);
    expect(first).toEqual(second);
    expect(first?.status).toBe(direct.status);
    const metrics = await (await fetch(`${app.base}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })).text();
    const { route, status } =
      direct.status === 200 ? { route: "/compose", status: 200 } : (first as { route: string; status: number });
    expect(metrics).toContain(`memstem_http_requests_total{method="POST",route="${route}",status="${status}"} 2`);
  });

  it("accepts and reads the bodies that the app does", async () => {
    await fc.assert(
      fc.asyncProperty(fuzzedRequest, async ({ body }) => {
        let value: unknown;
        try {
          value = JSON.parse(String(body));
        } catch {
          return;
        }
        const plain = composeBodyWithNulls.safeParse(value);
        const { success, data } = await composeBodyWithNulls.safeParseAsync(value);
        expect({ success: plain.success, data: plain.data }).toEqual({ success, data });
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    [true, {}],
    [true, { host: "memstem.example:8080" }],
    [true, { type: "application/json; charset=utf-8" }],
    [false, { method: "PUT" }],
    [false, { url: "/compose?pretty" }],
    [false, { url: "/compose/" }],
    [false, { url: "http://127.0.0.1/compose" }],
    [false, { host: "127.0.0.1:99999" }],
    [false, { host: "a b" }],
    [false, { host: "" }],
    [false, { type: "text/plain" }],
    [false, { type: "application/json, application/json" }],
    [false, { type: "" }],
  ])("is it %s for %j", (isPlain, changed) => {
    const { method, url, host, type } = {
      method: "POST",
      url: "/compose",
      host: "127.0.0.1:3000",
      type: DIRECT,
      ...changed,
    };
    const incoming = { method, url, headers: { host }, rawHeaders: ["Host", host, "Content-Type", type] };
    expect(isPlainCompose(incoming as unknown as IncomingMessage)).toBe(isPlain);
  });

  it("is not it where a content type comes twice", () => {
    const rawHeaders = ["content-type", DIRECT, "Content-Type", DIRECT];
    const incoming = { method: "POST", url: "/compose", headers: { host: "localhost" }, rawHeaders };
    expect(isPlainCompose(incoming as unknown as IncomingMessage)).toBe(false);
  });
});
