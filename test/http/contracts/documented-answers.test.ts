import { describe, expect, it } from "vitest";
import { openEmbeddedMem0 } from "../../../src/memory/embedded-mem0.js";
import { servedApp } from "../server/served-app.js";
import { OpenApiDocument } from "./openapi-document.js";

const memories = [
  { id: "m-tea", memory: "Ada drinks green tea" },
  { id: "m-paris", memory: "Ada lives in Paris" },
];

describe("what the OpenAPI document says of every answer", () => {
  const app = servedApp({ source: (dataDir) => openEmbeddedMem0({ dataDir }) });

  it("is true of every route that did what it was asked", async () => {
    const document = await OpenApiDocument.of(app);
    const compose = { user_id: "ada", conversation_id: "c", request_id: "r-1", query: "Tea?", memories };
    const warned = { ...compose, request_id: "r-2", memories: [...memories, ...memories], memory_budget_tokens: 1 };
    for (const body of [compose, compose, warned, { ...compose, query: "Coffee?" }]) {
      const exchange = await app.send("POST", "/compose", body);
      expect(exchange.status).toBe(200);
      document.expectDocumented("post", "/compose", exchange);
    }
    const add = { user_id: "ada", memories: ["Ada rides a bicycle"], metadata: { from: "test" } };
    const added = await app.send("POST", "/memories", add);
    expect(added.status).toBe(201);
    document.expectDocumented("post", "/memories", added);

    const feedback = { user_id: "ada", request_id: "r-1", prompt_tokens: 40, cached_tokens: 16, ttft_ms: 12.5 };
    const documented = [
      ["post", "/feedback", "/feedback", feedback],
      ["post", "/feedback", "/feedback", { user_id: "ada", request_id: "r-1" }],
      ["get", "/users/{user_id}/export", "/users/ada/export", undefined],
      ["get", "/users/{user_id}/export", "/users/nobody/export", undefined],
      ["get", "/requests/{request_id}/explain", "/requests/r-1/explain?user_id=ada", undefined],
      ["get", "/requests/{request_id}/explain", "/requests/r-2/explain?user_id=ada", undefined],
      ["post", "/evict", "/evict", { request_ids: ["r-1", "r-9"] }],
      ["delete", "/users/{user_id}/memories/{memory_id}", "/users/ada/memories/m-tea", undefined],
      ["delete", "/users/{user_id}", "/users/ada", undefined],
      ["get", "/healthz", "/healthz", undefined],
      ["get", "/livez", "/livez", undefined],
    ] as const;
    for (const [method, path, at, body] of documented) {
      const exchange = await app.send(method.toUpperCase(), at, body);
      expect(exchange).toMatchObject({ status: 200, contentType: "application/json" });
      document.expectDocumented(method, path, exchange);
    }
  });

  it("is true of every route that refused", async () => {
    const document = await OpenApiDocument.of(app);
    const refused = [
      ["post", "/compose", "/compose", {}],
      ["post", "/memories", "/memories", { user_id: "ada", memories: [] }],
      ["post", "/evict", "/evict", { request_ids: "r-1" }],
      ["post", "/feedback", "/feedback", { user_id: "ada", request_id: "r-1" }],
      ["get", "/users/{user_id}/export", "/users/%20/export", undefined],
      ["get", "/requests/{request_id}/explain", "/requests/r-1/explain?user_id=ada", undefined],
      ["delete", "/users/{user_id}", "/users/%20", undefined],
      ["delete", "/users/{user_id}/memories/{memory_id}", "/users/ada/memories/%00", undefined],
    ] as const;
    for (const [method, path, at, body] of refused) {
      const exchange = await app.send(method.toUpperCase(), at, body);
      expect(exchange.status).toBeGreaterThanOrEqual(400);
      expect(exchange.contentType).toBe("application/problem+json");
      document.expectDocumented(method, path, exchange);
    }
  });
});
