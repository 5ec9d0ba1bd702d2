import { beforeEach, describe, expect, it } from "vitest";
import { SECURITY_HEADERS } from "../../../src/http/guards/guard.js";
import { type FullExchange, sendWith } from "../guards/callers.js";
import { openAiEngine, sendJson, wholeAnswer } from "../routes/openai-engine.js";
import { servedApp } from "../server/served-app.js";
import { OpenApiDocument } from "./openapi-document.js";

/** What HTTP itself, browsers and the engine say. */
const NOT_OURS = new Set<string>([
  ...["connection", "content-length", "content-type", "date", "keep-alive", "transfer-encoding", "x-request-id"],
  ...SECURITY_HEADERS.map(([name]) => name),
]);

describe("the headers of an answer", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, environment: { MEMPREFIX_RATE_PER_SECOND: "1" } });
  let document: OpenApiDocument;
  beforeEach(async () => {
    document = await OpenApiDocument.of(app);
  });

  const rate = ["ratelimit", "ratelimit-policy"];
  const own = ["x-memprefix-expected-cached-tokens", "x-memprefix-request-id"];
  const chat = { model: "m", user: "ana", messages: [{ role: "user", content: "Tea?" }] };
  const usage = {
    prompt_tokens: 9,
    completion_tokens: 1,
    total_tokens: 10,
    prompt_tokens_details: { cached_tokens: 4 },
  };

  it.each([
    ["a prompt", "/compose", { user_id: "ana", query: "Tea?", memories: [] }, 200, rate],
    ["a refusal", "/compose", {}, 422, rate],
    ["a chat", "/v1/chat/completions", chat, 200, [...rate, ...own, "x-memprefix-cached-tokens"]],
    [
      "a chat that is not composed",
      "/v1/chat/completions",
      { ...chat, messages: [] },
      200,
      [...rate, "x-memprefix-not-composed", "x-memprefix-warnings"],
    ],
    ["a chat of nobody", "/v1/chat/completions", { ...chat, user: "" }, 422, [...rate, "x-memprefix-error-origin"]],
  ] as const)("are described: %s", async (_what, path, body, status, expected) => {
    engine.behave((_request, response) => sendJson(response, 200, wholeAnswer("Yes.", usage)));
    const answer = await send(path, body);
    expect(answer.status).toBe(status);
    const sent = ownHeaders(answer);
    expect(sent.toSorted()).toEqual([...expected].toSorted());
    expect(document.headers("post", path, status)).toEqual(expect.arrayContaining(sent));
  });

  it("are described: too many requests", async () => {
    for (;;) {
      const answer = await send("/evict", { request_ids: [] });
      if (answer.status === 200) continue;
      expect(answer.status).toBe(429);
      expect(ownHeaders(answer).toSorted()).toEqual([...rate, "retry-after"].toSorted());
      expect(document.headers("post", "/evict", 429)).toEqual(expect.arrayContaining([...rate, "retry-after"]));
      return;
    }
  });

  const send = (path: string, body: unknown) => sendWith(app, {}, "POST", path, body);
  const ownHeaders = ({ headers }: FullExchange) => [...headers.keys()].filter((name) => !NOT_OURS.has(name));
});
