import OpenAI from "openai";
import { describe, expect, it, vi } from "vitest";
import { type ServedApp, servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { openAiEngine, sendJson, wholeAnswer } from "./openai-engine.js";

const TEA = "Ada drinks green tea";
const LONG = "Be kind, and say what you know. ".repeat(60);

const complete = (app: ServedApp, system: string, question = "Which tea?", user = "ada") =>
  new OpenAI({
    baseURL: `${app.base}/v1`,
    apiKey: "sk-of-the-client",
    maxRetries: 0,
    defaultHeaders: { connection: "close", "x-memprefix-user": user },
  }).chat.completions.create({
    model: "stub-1",
    messages: [
      { role: "system", content: system },
      { role: "user", content: question },
    ],
  });

/** The proxy over sockets, before an engine with a simulated cache, and a search that ends when `until` does. */
function proxied(environment: Readonly<Record<string, string>>, until: { search: () => Promise<unknown> }) {
  const engine = openAiEngine();
  const source = answeringSource([TEA]);
  const slow = {
    ...source,
    search: async (...of: Parameters<typeof source.search>) => {
      await until.search();
      return source.search(...of);
    },
  };
  const app = servedApp({
    source: () => slow,
    upstream: engine,
    environment: { ...environment, MEMPREFIX_SEARCH_TIMEOUT_MS: "60000" },
  });
  return { engine, app };
}

describe("while memories are searched for, with MEMPREFIX_WARM_UP=on", () => {
  const until = { search: async (): Promise<unknown> => null };
  const { engine, app } = proxied({ MEMPREFIX_WARM_UP: "on", MEMPREFIX_ENGINE_FAMILY: "vllm" }, until);
  const isAsked = () => vi.waitFor(() => expect(engine.requests.length).toBeGreaterThan(0));

  it("the engine computes what the prompt begins with, which then is cached", async () => {
    until.search = isAsked;
    const { usage } = await complete(app, LONG);
    const [warm, real] = engine.requests;
    expect(warm?.body).toMatchObject({
      max_tokens: 1,
      messages: [{ role: "system", content: LONG }, { role: "user" }],
    });
    expect(warm?.body["cache_salt"]).toBe(real?.body["cache_salt"]);
    expect(warm?.headers["x-request-id"]).not.toBe(real?.headers["x-request-id"]);
    expect(real?.body.messages).toHaveLength(2);
    expect(JSON.stringify(real?.body.messages)).toContain(TEA);
    expect(real?.body).not.toHaveProperty("max_tokens");
    expect(usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan(400);
    // What is there needs no second one, and what is short none at all.
    until.search = async () => null;
    await complete(app, LONG, "And coffee?");
    await complete(app, "Be kind.");
    expect(engine.requests).toHaveLength(4);
    // Nor what two other users have sent.
    until.search = () => vi.waitFor(() => expect(engine.requests.length).toBeGreaterThan(4));
    await complete(app, LONG, "Which tea?", "bob");
    expect(engine.requests).toHaveLength(6);
    // One with others, sent after it, says when it would have come.
    const other = `Be brief. ${LONG}`;
    const isWarm = () => engine.requests.some(({ body }) => body.messages?.[0]?.content === other);
    until.search = () => vi.waitFor(() => expect(isWarm()).toBe(true));
    await Promise.all([complete(app, LONG, "Which tea?", "cleo"), complete(app, other, "Which tea?", "dora")]);
    expect(engine.requests).toHaveLength(9);
  });

  it("an engine that does not get done with it is not waited for", async () => {
    until.search = isAsked;
    engine.behave((request, response, usage) => {
      if (engine.requests[0] !== request) sendJson(response, 200, wholeAnswer("Green.", usage));
    });
    expect((await complete(app, LONG)).choices[0]?.message.content).toBe("Green.");
    await engine.requests[0]?.abandoned;
  });
});
