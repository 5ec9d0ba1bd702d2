import { describe, expect, it } from "vitest";
import { createMemprefixClient } from "../../src/client/index.js";
import { ROUTES } from "../../src/client/routes.js";
import { callerOf } from "../http/guards/callers.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { servedApp } from "../http/server/served-app.js";

describe("the client's routes", () => {
  const source = answeringSource(["in Paris"]);
  const app = servedApp({ source: () => source });
  const clientOf = () => createMemprefixClient({ url: app.base });

  it("are all of the service's own: a new operation needs a method", async () => {
    const { paths } = JSON.parse((await app.send("GET", "/openapi.json")).text) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    // Engines' APIs and MCP have clients of their own; the others are for Mem0, Prometheus and Kubernetes.
    const others = ["/mcp", "/webhooks/mem0", "/metrics", "/livez"];
    const own = Object.entries(paths).filter(([path]) => !path.startsWith("/v1/") && !others.includes(path));
    const documented = own.flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId));
    const called = new Set(Object.values(ROUTES).map(({ operation }) => operation));
    expect([...called].sort()).toEqual(documented.filter((id) => !id.endsWith("ByQuery")).sort());
    for (const { method, path } of Object.values(ROUTES))
      expect(Object.keys(paths[path] ?? {}), path).toContain(method.toLowerCase());
  });

  it("are each a method", () => {
    const client = clientOf();
    expect(Object.keys(client).sort()).toEqual(Object.keys(ROUTES).sort());
  });

  it("explain, export, and say how the service is", async () => {
    const client = clientOf();
    const { requestId } = await client.compose({ userId: ".", agentId: "guide", query: "Where?" });
    const explained = await client.explain({ userId: ".", agentId: "guide", requestId });
    expect(explained).toMatchObject({ requestId, miss: null, continued: null });
    expect(explained.words[0]).toContain(requestId);
    const exported = await client.exportUser({ userId: "." });
    expect(exported).toMatchObject({
      userId: ".",
      forgottenMemories: [],
      source: { name: "answering", memories: null },
    });
    expect(exported.scopes[0]?.tables["memories"]?.[0]).toHaveProperty("memory_id", "m-in Paris");
    expect(await client.health()).toEqual({ status: "ok", version: "1.2.3", source: "answering" });
    await client.forgetUser({ userId: "." });
    expect((await client.exportUser({ userId: "." })).scopes).toEqual([]);
  });

  it("send the key", async () => {
    const { key } = callerOf(app, "acme");
    const asked = { userId: "ana", query: "Where?" };
    await expect(clientOf().compose(asked)).rejects.toMatchObject({ name: "MemprefixError", status: 401 });
    const client = createMemprefixClient({ url: app.base, apiKey: key });
    expect((await client.compose(asked)).blocks).toHaveLength(1);
  });

  const requests = [
    { userId: "ana", requestId: "b-0", query: "Where?" },
    { userId: "", requestId: "b-1", query: "Where?" },
    { userId: "ben", query: "Why?", topK: 1 },
  ];
  const invalid = { index: 1, problem: { status: 422, errors: [{ field: "user_id", message: "must not be empty" }] } };

  it("compose batches, as a whole", async () => {
    const { answers, end } = await clientOf().composeBatch({ requests, workers: ["gpu-0"], planner: "context-pilot" });
    expect(end).toEqual({ read: 3, found: 2, composed: 2, failed: 1 });
    const byIndex = answers.toSorted((a, b) => a.index - b.index);
    expect(byIndex[0]).toMatchObject({
      rank: 0,
      worker: "gpu-0",
      answer: { requestId: "b-0", plan: { totalTokens: 18 } },
    });
    expect(byIndex[1]).toMatchObject(invalid);
    expect(byIndex[2]).toMatchObject({ answer: { requestId: expect.stringMatching(/^req-[0-9a-f]{32}$/) } });
  });
});
