import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openAiEngine, sendJson } from "../routes/openai-engine.js";
import { servedApp } from "../server/served-app.js";
import { OpenApiDocument } from "./openapi-document.js";

describe("an example of the OpenAPI document", () => {
  afterEach(() => void vi.useRealTimers());
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });
  let document: OpenApiDocument;
  beforeEach(async () => {
    document = await OpenApiDocument.of(app);
    // Only Date is held, not the timers: at the examples' time.
    vi.useFakeTimers({ toFake: ["Date"], now: 1_793_426_450_000 });
  });

  const find = (operationId: string, part: "request" | "answer") =>
    document.examples.find((example) => example.operationId === operationId && example.part === part)?.value;

  it("is what its schema says", () => {
    const { examples } = document;
    expect(new Set(examples.map(({ part }) => part)).size).toBe(3);
    expect(examples.filter((example) => document.issuesOf(example).length > 0)).toEqual([]);
  });

  it("stands with every JSON body and answer", () => {
    const described = new Set(document.examples.map(({ operationId, part }) => `${operationId} ${part}`));
    const expected = document.jsonBodies.filter((body) => !described.has(body));
    expect(expected).toEqual([]);
  });

  it("is what the service answers to the requests, in their order", async () => {
    engine.behave((_request, response) => sendJson(response, 200, find("createChatCompletion", "answer")));
    const steps = [
      ["compose", "POST", "/compose"],
      ["feedback", "POST", "/feedback"],
      ["getIndex", "GET", "/users/ana/index"],
      ["getIndexByQuery", "GET", "/user/index?user_id=ana"],
      ["explainRequest", "GET", "/requests/trip-1/explain?user_id=ana"],
      ["explainRequestByQuery", "GET", "/request/explain?user_id=ana&request_id=trip-1"],
      ["evict", "POST", "/evict"],
      ["composeBatch", "POST", "/compose/batch"],
      ["createChatCompletion", "POST", "/v1/chat/completions"],
      ["forgetMemory", "DELETE", "/users/ana/memories/m-2"],
      ["forgetUser", "DELETE", "/users/ana"],
      ["exportUser", "GET", "/users/ana/export"],
    ] as const;
    for (const [operationId, method, path] of steps) {
      const { status, text } = await app.send(method, path, find(operationId, "request"));
      expect({ operationId, status, answer: JSON.parse(text) }).toEqual({
        operationId,
        status: 200,
        answer: find(operationId, "answer"),
      });
    }
  });

  it("of a problem is what the service answers, but for its words", async () => {
    const compose = find("compose", "request") as object;
    const feedback = find("feedback", "request");
    const sent = [
      [400, await app.send("POST", "/compose", "{")],
      [404, await app.send("POST", "/feedback", feedback)],
      [415, await app.send("POST", "/compose", compose, "text/plain")],
      [422, await app.send("POST", "/compose", { ...compose, user_id: "" })],
    ] as const;
    const problems = document.examples.filter(({ part }) => part === "problem").map(({ value }) => value);
    for (const [status, exchange] of sent) {
      const { detail, errors, ...rest } = JSON.parse(exchange.text);
      expect(exchange.status).toBe(status);
      expect(problems).toContainEqual({
        ...rest,
        detail: expect.any(String),
        errors: errors.map(({ field }: { field: string }) => ({ field, message: expect.any(String) })),
      });
    }
  });
});
