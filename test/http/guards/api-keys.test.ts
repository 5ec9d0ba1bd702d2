import { readdir, readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { openAiProblemSchema } from "../../../src/http/problems/problem.js";
import { authenticate, DEFAULT_TENANT, newApiKey, withConfiguredKey } from "../../../src/service/base/tenant.js";
import { OpenApiDocument } from "../contracts/openapi-document.js";
import { openAiEngine } from "../routes/openai-engine.js";
import { problemOf, servedApp } from "../server/served-app.js";
import { callerOf, revoke, sendWith } from "./callers.js";

const compose = { user_id: "ada", query: "Tea?", memories: [{ id: "m-1", memory: "Ada drinks tea" }] };
const chat = { model: "m", user: "ada", messages: [{ role: "user", content: "Tea?" }] };
const OPEN = ["GET /healthz", "GET /livez"];

describe("a service with an API key", () => {
  const app = servedApp();

  it("answers nobody without one, on no route but those that say whether it works and how", async () => {
    const document = await OpenApiDocument.of(app);
    callerOf(app, "acme");
    for (const operation of document.operations) {
      const [method = "", path = ""] = operation.split(" ");
      const at = path.replaceAll(/\{\w+\}/g, "x");
      const exchange = await sendWith(app, {}, method, at, method === "POST" ? {} : undefined);
      expect(exchange.status, operation).toBe(OPEN.includes(operation) ? 200 : 401);
      if (exchange.status === 200) continue;
      expect(exchange.headers.get("www-authenticate")).toBe('Bearer realm="memprefix"');
      expect(exchange.contentType).toBe("application/problem+json");
      document.expectDocumented(method.toLowerCase() as "get", path, exchange);
    }
    expect((await sendWith(app, {}, "GET", "/openapi.json")).status).toBe(200);
    expect((await sendWith(app, {}, "GET", "/nowhere")).status).toBe(401);
    expect(app.faults).toEqual([]);
  });

  it("takes it from either header", async () => {
    const { key } = callerOf(app, "acme");
    for (const headers of [
      { authorization: `Bearer ${key}` },
      { authorization: `bearer  ${key} ` },
      { authorization: `BeArEr ${key}` },
      { "x-api-key": key },
    ]) {
      expect((await sendWith(app, headers, "POST", "/compose", compose)).status).toBe(200);
    }
  });

  it("takes nothing that is not the whole of it", async () => {
    const { key, id } = callerOf(app, "acme");
    const other = newApiKey();
    // A secret may hold the sign that parts it from the id.
    const secret = key.slice(-43);
    const last = key.endsWith("A") ? "B" : "A";
    const wrong = [
      "",
      "mst_",
      id,
      secret,
      `mst_${id}_`,
      key.slice(0, -1),
      `${key}A`,
      `${key.slice(0, -1)}${last}`,
      key.toUpperCase(),
      `mst_${id}_${other.key.slice(-43)}`,
      other.key,
      key.replace(id, "%".repeat(12)),
      `${"mst_".repeat(10_000)}`.slice(0, 8_000),
    ];
    for (const given of wrong) {
      const exchange = await sendWith(app, { "x-api-key": given }, "POST", "/compose", compose);
      expect(problemOf(exchange), given).toMatchObject({ status: 401, title: "No valid API key" });
      expect(exchange.headers.get("www-authenticate")).toBe('Bearer realm="memprefix", error="invalid_token"');
      expect(exchange.text).not.toContain(secret);
    }
    const basic = await sendWith(app, { authorization: `Basic ${btoa(key)}` }, "POST", "/compose", compose);
    expect(basic.status).toBe(401);
  });

  it("is rotated while it runs: a new key holds at once, a revoked one does no more, and the last one leaves nothing open", async () => {
    expect((await app.send("POST", "/compose", compose)).status).toBe(200);
    const first = callerOf(app, "acme");
    expect((await app.send("POST", "/compose", compose)).status).toBe(401);
    expect((await first.send("POST", "/compose", compose)).status).toBe(200);
    const second = callerOf(app, "acme");
    await revoke(app, first.id);
    expect((await first.send("POST", "/compose", compose)).status).toBe(401);
    expect((await second.send("POST", "/compose", compose)).status).toBe(200);
    await revoke(app, second.id);
    expect((await second.send("POST", "/compose", compose)).status).toBe(401);
    expect((await app.send("POST", "/compose", compose)).status).toBe(401);
  });

  it("keeps what was there before keys were, for those of the tenant default", async () => {
    const before = await app.compose({ ...compose, request_id: "r-1" });
    const heir = await callerOf(app, "default").send("POST", "/compose", { ...compose, request_id: "r-1" });
    expect(JSON.parse(heir.text)).toEqual(before);
    const exported = await callerOf(app, "acme").send("GET", "/users/ada/export");
    expect(JSON.parse(exported.text)).toMatchObject({ scopes: [] });
  });

  it("counts who was turned away, and names nobody", async () => {
    const { send, id, key } = callerOf(app, "acme");
    await app.send("POST", "/compose", compose);
    await sendWith(app, { "x-api-key": newApiKey().key }, "GET", "/metrics");
    const { text } = await send("GET", "/metrics");
    expect(text).toContain('memprefix_refused_requests_total{reason="no_key"} 2');
    for (const name of ["acme", id, key, "ada"]) expect(text).not.toContain(name);
  });
});

describe("the database of a service with API keys", () => {
  const app = servedApp();

  it("has no key's secret in it", async () => {
    const { key } = callerOf(app, "acme");
    const secret = key.slice(-43);
    for (const name of await readdir(app.dataDir)) {
      const bytes = await readFile(`${app.dataDir}/${name}`);
      expect(bytes.includes(secret) || bytes.includes(Buffer.from(secret, "base64url")), name).toBe(false);
    }
  });
});

describe("the proxy of a service with an API key", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });

  it("refuses in OpenAI's words", async () => {
    callerOf(app, "acme");
    const exchange = await sendWith(app, {}, "POST", "/v1/chat/completions", chat);
    expect(exchange).toMatchObject({ status: 401, contentType: "application/problem+json" });
    expect(openAiProblemSchema.parse(JSON.parse(exchange.text))).toMatchObject({
      status: 401,
      error: { type: "invalid_request_error", code: "invalid_api_key" },
    });
    expect(engine.requests).toEqual([]);
  });

  it("without keys, sends the client's own authorization on, but no key of memprefix's", async () => {
    await sendWith(app, { authorization: "Bearer sk-theirs" }, "GET", "/v1/models");
    expect(engine.requests.at(-1)?.headers["authorization"]).toBe("Bearer sk-theirs");
    await sendWith(app, { authorization: `Bearer ${newApiKey().key}` }, "GET", "/v1/models");
    expect(engine.requests.at(-1)?.headers["authorization"]).toBeUndefined();
  });
});

describe("the proxy of a service with a configured API key", () => {
  const KEY = "Kk7-not-of-our-form-but-long-enough-for-it";

  it("lets it in while the stored keys cannot be read", async () => {
    const keys = withConfiguredKey(
      {
        find: async () => {
          throw new Error("the disk is gone");
        },
        any: async () => false,
      },
      KEY,
    );
    expect(await keys.any()).toBe(true);
    expect(await authenticate(KEY, keys)).toMatchObject({ keyId: "configured", tenant: { name: DEFAULT_TENANT.name } });
    expect(await authenticate(`${KEY}x`, keys)).toBeNull();
    await expect(authenticate(newApiKey().key, keys)).rejects.toThrow("the disk is gone");
  });

  it("gives its salts to the stored keys of the same tenant, and to no other's", async () => {
    const { key, secretDigest } = newApiKey();
    const kept = { secretDigest, label: null, createdAt: 1, revokedAt: null, cacheSecret: "drawn" };
    const secretsOf = async (tenant: string) => {
      const keys = withConfiguredKey({ find: async (id) => ({ ...kept, id, tenant }), any: async () => true }, KEY);
      const found = [await authenticate(key, keys), await authenticate(KEY, keys)];
      return found.map((one) => one?.tenant.cacheSecret);
    };
    const [stored, configured] = await secretsOf(DEFAULT_TENANT.name);
    expect(stored).toBe(configured);
    expect((await secretsOf("acme"))[0]).toBe("drawn");
  });
});
