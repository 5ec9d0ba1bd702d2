import { describe, expect, it } from "vitest";
import { problemOf, servedApp } from "../server/served-app.js";
import { callerOf, rawGet, sendWith } from "./callers.js";

const EXPORT = "/users/ada/export";

describe("a service without API keys", () => {
  const app = servedApp();
  const at = (host: string) => rawGet(app.base, EXPORT, { host });

  it.each(["localhost", "LOCALHOST:4600", "127.0.0.1", "127.0.0.1:80", "127.1.2.3", "[::1]", "[::1]:4600"])(
    "answers to %s",
    async (host) => {
      expect((await at(host)).status).toBe(200);
    },
  );

  it.each([
    "memprefix.example.org",
    "evil.example:4600",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "10.0.0.1",
  ])("does not answer to %s, which a page could have pointed here", async (host) => {
    expect(problemOf(await at(host))).toMatchObject({ status: 421 });
    expect((await rawGet(app.base, "/healthz", { host })).status).toBe(200);
  });

  it.each(["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1:1"])(
    "does nothing for a page of %s, and lets it read nothing",
    async (origin) => {
      const asked = await sendWith(app, { origin }, "DELETE", "/users/ada");
      expect(problemOf(asked)).toMatchObject({ status: 403 });
      expect([...asked.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
      const preflight = await sendWith(app, { origin, "access-control-request-method": "POST" }, "OPTIONS", "/compose");
      expect(preflight.status).toBe(403);
      expect([...preflight.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    },
  );

  it("answers a page of its own", async () => {
    expect((await sendWith(app, { origin: app.base }, "GET", EXPORT)).status).toBe(200);
  });

  it("counts what it turned away", async () => {
    await at("evil.example");
    await sendWith(app, { origin: "null" }, "GET", EXPORT);
    const { text } = await app.send("GET", "/metrics");
    expect(text).toContain('memprefix_refused_requests_total{reason="host"} 1');
    expect(text).toContain('memprefix_refused_requests_total{reason="origin"} 1');
  });
});

describe("a service with API keys", () => {
  const app = servedApp();

  it("answers to any name, for who has a key; but lets no other page read it", async () => {
    const { key, send } = callerOf(app, "acme");
    const named = await rawGet(app.base, EXPORT, { host: "memprefix.example.org", "x-api-key": key });
    expect(named.status).toBe(200);
    const other = await send("GET", EXPORT, undefined, { origin: "https://evil.example" });
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("every answer", () => {
  const app = servedApp();

  it.each([
    ["GET", "/healthz", 200],
    ["GET", EXPORT, 200],
    ["GET", "/nowhere", 404],
    ["POST", "/compose", 422],
    ["POST", "/v1/chat/completions", 501],
  ] as const)("%s %s says what browsers may do with it: nothing", async (method, path, status) => {
    const asked = await sendWith(app, {}, method, path, method === "POST" ? {} : undefined);
    expect(asked.status).toBe(status);
    expect(Object.fromEntries(asked.headers)).toMatchObject({
      "cache-control": "no-store",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
    });
    expect(asked.headers.has("x-powered-by")).toBe(false);
    expect(asked.headers.has("strict-transport-security")).toBe(false);
  });
});
