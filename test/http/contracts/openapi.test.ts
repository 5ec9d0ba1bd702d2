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
      "GET /livez",
      "GET /metrics",
      "GET /request/explain",
      "GET /requests/{request_id}/explain",
      "GET /usage/misses",
      "GET /usage/request",
      "GET /usage/requests",
      "GET /usage/summary",
      "GET /user/export",
      "GET /user/index",
      "GET /users/{user_id}/export",
      "GET /users/{user_id}/index",
      "GET /v1/models",
      "POST /compose",
      "POST /compose/batch",
      "POST /evict",
      "POST /feedback",
      "POST /mcp",
      "POST /memories",
      "POST /v1/chat/completions",
      "POST /v1/messages",
      "POST /v1/messages/count_tokens",
      "POST /v1/responses",
    ]);
  });

  it("asks for a key, in either form, of every route but those that say whether the service works", () => {
    for (const path of ["/healthz", "/livez"]) expect(document.isOpen("get", path)).toBe(true);
    for (const operation of document.operations) {
      const [method = "", path = ""] = operation.split(" ");
      if (operation === "GET /healthz" || operation === "GET /livez") continue;
      expect(document.isOpen(method.toLowerCase(), path), operation).toBe(false);
    }
  });

  it("names ?pretty of every route that makes its own JSON", () => {
    const unmodified = [
      "POST /compose/batch",
      "POST /v1/chat/completions",
      "POST /v1/responses",
      "POST /v1/messages",
      "POST /v1/messages/count_tokens",
      "GET /v1/models",
      "POST /mcp",
    ];
    const named = document.operations.filter((operation) => {
      const [method = "", path = ""] = operation.split(" ");
      return document.queryParameters(method.toLowerCase(), path).includes("pretty");
    });
    const expected = document.operations.filter((operation) => ![...unmodified, "GET /metrics"].includes(operation));
    expect(named).toEqual(expected);
  });

  it("has the same schemas of messages in requests and in answers", () => {
    const message = { $ref: "#/components/schemas/Message" };
    const messages = { type: "array", items: { anyOf: [message, { $ref: "#/components/schemas/ResponsesItem" }] } };
    expect(document.component("ComposeRequest")).toMatchObject({
      properties: { messages: { ...messages, type: ["array", "null"] } },
    });
    expect(document.component("ComposeAnswer")).toMatchObject({ properties: { messages } });
    expect(document.component("ChatRequest")).toMatchObject({ properties: { messages: { items: message } } });
  });

  it("gives messages no index signature, to which the types of OpenAI's client could not be assigned", () => {
    for (const name of ["Message", "ResponsesItem"])
      expect(JSON.stringify(document.component(name))).not.toContain("additionalProperties");
    expect(document.accepts("Message", { role: "user", content: [{ type: "text", text: "Tea?", more: 1 }] })).toBe(
      true,
    );
  });

  it.each([
    ["instructions", { role: "developer", content: "Be brief." }, true],
    ["parts", { role: "user", name: "ana", content: [{ type: "text", text: "Tea?" }, { type: "image_url" }] }, true],
    [
      "a call of a tool",
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call-1", type: "function", function: { name: "brew", arguments: "{}" } }],
      },
      true,
    ],
    ["a tool's result", { role: "tool", content: "Brewed.", tool_call_id: "call-1" }, true],
    ["a field that is not named", { role: "user", content: "Tea?", cache_control: { type: "ephemeral" } }, true],
    ["a role that there is not", { role: "robot", content: "Tea?" }, false],
    ["content that is a number", { role: "user", content: 7 }, false],
    ["a call without an id", { role: "assistant", tool_calls: [{ type: "function" }] }, false],
  ])("has OpenAI's messages: %s", (_what, message, isOne) => {
    expect(document.accepts("Message", message)).toBe(isOne);
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
    ["ContextPilot's annotations", { user_id: "ada", query: "Tea?", annotations: "paper" }],
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
