import { beforeEach, describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { ABSENT_AS_NULL } from "./absent-as-null.js";
import { OpenApiDocument } from "./openapi-document.js";

describe("GET /openapi.json", () => {
  const app = servedApp();
  let document: OpenApiDocument;
  beforeEach(async () => {
    document = await OpenApiDocument.of(app);
  });

  it("lists every route, and no other", () => {
    expect(document.operations.toSorted()).toEqual([
      "DELETE /user",
      "DELETE /user/memory",
      "DELETE /users/{user_id}",
      "DELETE /users/{user_id}/memories/{memory_id}",
      "GET /healthz",
      "GET /metrics",
      "GET /request/explain",
      "GET /requests/{request_id}/explain",
      "GET /user/export",
      "GET /user/index",
      "GET /users/{user_id}/export",
      "GET /users/{user_id}/index",
      "GET /v1/models",
      "POST /compose",
      "POST /compose/batch",
      "POST /evict",
      "POST /feedback",
      "POST /memories",
      "POST /v1/chat/completions",
    ]);
  });

  it("asks for a key, in either form, of every route but the one that says whether the service works", () => {
    expect(document.isOpen("get", "/healthz")).toBe(true);
    for (const operation of document.operations) {
      const [method = "", path = ""] = operation.split(" ");
      if (operation === "GET /healthz") continue;
      expect(document.isOpen(method.toLowerCase(), path), operation).toBe(false);
      const statuses = document.statuses(method.toLowerCase(), path);
      expect(statuses, operation).toEqual(expect.arrayContaining(["401", "429"]));
      if (path !== "/metrics") expect(statuses, operation).toContain("503");
    }
  });

  it("has something at the end of every reference", () => {
    expect(document.references.length).toBeGreaterThan(10);
    expect(document.references.filter((reference) => !document.resolves(reference))).toEqual([]);
  });

  it.each(["ComposeRequest", "AddRequest", "EvictRequest", "FeedbackRequest"])(
    "lets %s have no unknown field",
    (name) => {
      expect(document.component(name)).toMatchObject({ type: "object", additionalProperties: false });
    },
  );

  it("requires user_id of a compose, and nothing else", () => {
    expect(document.component("ComposeRequest")["required"]).toEqual(["user_id"]);
  });

  it.each([
    ["the least there can be", { user_id: "ada", query: "Tea?" }],
    ["memories in an array", { user_id: "ada", query: "Tea?", memories: [{ id: "m-1", memory: "tea", score: 0.5 }] }],
    [
      "memories as Mem0 gives them",
      { user_id: "ada", memories: { results: [{ id: "m-1", memory: "tea" }], relations: [] } },
    ],
    ["annotations as a switch", { user_id: "ada", query: "Tea?", annotations: false }],
    [
      "annotations one by one",
      { user_id: "ada", annotations: { order: true, top_n: 3, wording: { order: "{labels}:" } } },
    ],
    [
      "null for every field that may be absent",
      {
        user_id: "ada",
        ...ABSENT_AS_NULL,
        query: "Tea?",
      },
    ],
  ])("accepts, as the service does, %s", (_what, body) => {
    expect(document.accepts("ComposeRequest", body)).toBe(true);
  });

  it.each([
    ["no user_id", { query: "Tea?" }],
    ["an unknown field", { user_id: "ada", query: "Tea?", k: 3 }],
    ["an unknown field in annotations", { user_id: "ada", query: "Tea?", annotations: { topN: 3 } }],
    ["memories that are a text", { user_id: "ada", query: "Tea?", memories: "tea" }],
    ["a memory without text", { user_id: "ada", query: "Tea?", memories: [{ id: "m-1" }] }],
    ["a retention that there is not", { user_id: "ada", query: "Tea?", retention: "forever" }],
    ["a negative budget", { user_id: "ada", query: "Tea?", memory_budget_tokens: -1 }],
    ["a budget ratio below 1", { user_id: "ada", query: "Tea?", memory_budget_ratio: 0.5 }],
  ])("refuses, as the service does, %s", (_what, body) => {
    expect(document.accepts("ComposeRequest", body)).toBe(false);
  });
});
