import { describe, expect, it, vi } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";
import { answersResponses } from "./responses-engine.js";

const KEY = /^[\w-]{20,}$/;

describe("the session's key for a router that reads a header", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada drinks green tea"]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: { MEMPREFIX_ROUTER: "dynamo", MEMPREFIX_WARM_UP: "on" },
  });
  const keyOf = async (headers: Record<string, string>, system = "") => {
    const { model, messages } = ask("Which tea?");
    const instructions = system === "" ? [] : [{ role: "system" as const, content: system }];
    await clientOf(app, headers).chat.completions.create({ model, messages: [...instructions, ...messages] });
    return engine.requests.at(-1)?.headers["x-dynamo-session-id"];
  };

  it("is the conversation's: the same for each of its turns, another for others and for other users", async () => {
    const trip = { "x-memprefix-user": "ada", "x-memprefix-conversation": "trip" };
    const key = await keyOf(trip);
    expect(key).toMatch(KEY);
    expect(key).not.toMatch(/ada|trip/);
    expect(await keyOf(trip)).toBe(key);
    const others = [
      await keyOf({ ...trip, "x-memprefix-conversation": "work" }),
      await keyOf({ ...trip, "x-memprefix-user": "bob" }),
      await keyOf({ ...trip, "x-memprefix-agent": "cook" }),
      await keyOf({ "x-memprefix-user": "ada" }),
    ];
    expect(new Set([key, ...others]).size).toBe(5);
    expect(await keyOf({ "x-memprefix-user": "ada" })).toBe(others[3]);
  });

  it("stays where the client sent its own; a chat that is passed unmodified has it, a side call none", async () => {
    const trip = { "x-memprefix-user": "ada", "x-memprefix-conversation": "trip" };
    expect(await keyOf({ ...trip, "x-dynamo-session-id": "mine" })).toBe("mine");
    expect(await keyOf({ ...trip, "x-memprefix-bypass": "true" })).toBe(await keyOf(trip));
    expect(await keyOf({ ...trip, "x-openwebui-task": "title_generation" })).toBeUndefined();
  });

  it("gives way to the worker that memprefix chose, where a request names workers", async () => {
    const { model, messages } = ask("Which tea?");
    const body = { model, messages, user: "ada", memprefix: { workers: ["gpu-0"] } };
    expect((await app.send("POST", "/v1/chat/completions", body)).status).toBe(200);
    expect(engine.requests.at(-1)?.headers["x-dynamo-session-id"]).toBe("gpu-0");
  });

  it("goes with a warm-up too, which would else warm another replica", async () => {
    const trip = { "x-memprefix-user": "ada", "x-memprefix-conversation": "trip" };
    vi.spyOn(source, "search").mockImplementation(async () => {
      await vi.waitFor(() => expect(engine.requests).toHaveLength(1));
      return [];
    });
    const key = await keyOf(trip, "Be kind, and say what you know. ".repeat(60));
    expect(engine.requests.map(({ headers }) => headers["x-dynamo-session-id"])).toEqual([key, key]);
  });
});

describe("the session's key of xAI", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, environment: { MEMPREFIX_ROUTER: "xai" } });

  it("is a header of chats and a field of responses", async () => {
    const client = clientOf(app, { "x-memprefix-user": "ada", "x-memprefix-conversation": "trip" });
    await client.chat.completions.create(ask("Which tea?"));
    const key = engine.requests[0]?.headers["x-grok-conv-id"];
    expect(key).toMatch(KEY);
    engine.behave(answersResponses());
    await client.responses.create({ model: "stub-1", input: "Which tea?" });
    const response = engine.requests[1];
    expect(response?.headers["x-grok-conv-id"]).toBeUndefined();
    expect(JSON.parse(response?.raw ?? "{}")).toMatchObject({ prompt_cache_key: key });
  });
});

describe.each([
  ["llm-d", "vllm", "x-session-token", "headers"],
  ["openai", "openai", "prompt_cache_key", "body"],
] as const)("the session's key for %s", (router, family, name, place) => {
  const engine = openAiEngine();
  const app = servedApp({
    upstream: engine,
    environment: { MEMPREFIX_ROUTER: router, MEMPREFIX_ENGINE_FAMILY: family },
  });
  const keyOf = async (conversation: string, own: Record<string, string> = {}) => {
    const [headers, fields] = place === "headers" ? [own, {}] : [{}, own];
    const named = { "x-memprefix-user": "ada", "x-memprefix-conversation": conversation, ...headers };
    await clientOf(app, named).chat.completions.create({ ...ask("Which tea?"), ...fields });
    return engine.requests.at(-1)?.[place][name];
  };

  it("is one per conversation, and the client's where it has one", async () => {
    const trip = await keyOf("trip");
    expect(trip).toMatch(KEY);
    expect(await keyOf("trip")).toBe(trip);
    expect(await keyOf("work")).not.toBe(trip);
    const own = await keyOf("trip", { [name]: "cG9kLTE=" });
    // A key in the body also chooses a cache: the tenant's own is made of it.
    expect(own).toEqual(place === "headers" ? "cG9kLTE=" : expect.stringMatching(KEY));
    expect([await keyOf("work", { [name]: "cG9kLTE=" }), own === trip]).toEqual([own, false]);
  });
});

describe("the session's key for SGLang's gateway", () => {
  const engine = openAiEngine();
  const app = servedApp({
    upstream: engine,
    environment: { MEMPREFIX_ROUTER: "sglang", MEMPREFIX_ENGINE_FAMILY: "sglang" },
  });

  it("is not beside a `rid`, which the gateway would take for it", async () => {
    await clientOf(app).chat.completions.create(ask("Which tea?"));
    const [request] = engine.requests;
    expect(request?.headers["x-smg-routing-key"]).toMatch(KEY);
    expect(JSON.parse(request?.raw ?? "{}")).toMatchObject({ cache_salt: expect.any(String) });
    expect(JSON.parse(request?.raw ?? "{}")).not.toHaveProperty("rid");
  });
});
