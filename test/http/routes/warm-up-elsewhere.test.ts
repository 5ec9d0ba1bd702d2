import { setTimeout } from "node:timers/promises";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { encodeO200k } from "../../../src/cli/o200k.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { anthropicServer } from "./anthropic-server.js";
import { clientOf } from "./chat-client.js";
import { messagesClientOf } from "./messages-client.js";
import { openAiEngine } from "./openai-engine.js";
import { answersResponses, type ReceivedResponses } from "./responses-engine.js";

const LONG = "Be kind, and say what you know. ".repeat(60);

// Its first call takes seconds on a busy machine, and a prompt that takes 5 is not composed.
beforeAll(() => void encodeO200k(LONG));

/** A source whose search ends once the engine was asked, or after a moment where `waits` is false. */
function searchesUntil(asked: () => number, waits: { for: boolean }) {
  const source = answeringSource(["Ada drinks green tea"]);
  const search = async (...of: Parameters<typeof source.search>) => {
    if (waits.for) await vi.waitFor(() => expect(asked()).toBeGreaterThan(0));
    else await setTimeout(100);
    return source.search(...of);
  };
  return { ...source, search };
}

describe("the warm-up of a response", () => {
  const engine = openAiEngine();
  const waits = { for: true };
  const app = servedApp({
    source: () => searchesUntil(() => engine.requests.length, waits),
    upstream: engine,
    environment: { MEMPREFIX_WARM_UP: "on", MEMPREFIX_CACHE_TTL_SECONDS: "1", MEMPREFIX_RETENTION: "keep" },
  });
  const received = () => engine.requests.map(({ raw }) => JSON.parse(raw) as ReceivedResponses);
  const create = (input: string, fields: object = {}) =>
    clientOf(app)
      .responses.create({ model: "m", instructions: LONG, input, ...fields } as never)
      .withResponse();

  it("has its prefix, for the fewest tokens that the API takes, and is kept nowhere", async () => {
    waits.for = true;
    engine.behave(answersResponses());
    const { response } = await create("Which tea?", { max_output_tokens: 500, metadata: { of: "mine" } });
    const [warm, real] = received();
    expect(engine.requests[0]?.url).toBe("/v1/responses");
    expect(warm).toEqual({
      model: "m",
      instructions: LONG,
      metadata: { of: "mine" },
      input: ".",
      store: false,
      max_output_tokens: 16,
    });
    expect(real).toMatchObject({ max_output_tokens: 500 });
    expect(Number(response.headers.get("x-memprefix-cached-tokens"))).toBeGreaterThan(400);
  });

  it("is not sent where the engine has what was said before", async () => {
    waits.for = false;
    engine.behave(answersResponses());
    const first = (await create("Which tea?")).data as unknown as { id: string };
    const before = engine.requests.length;
    // The engine's cache keeps nothing for so long: the prefix is cold.
    await setTimeout(1_100);
    await create("And now?", { previous_response_id: first.id });
    expect(engine.requests).toHaveLength(before + 1);
  });
});

describe("the warm-up of a message", () => {
  const server = anthropicServer();
  const app = servedApp({
    source: () => searchesUntil(() => server.calls.length, { for: true }),
    upstream: server,
    environment: { MEMPREFIX_WARM_UP: "on", MEMPREFIX_ENGINE_FAMILY: "anthropic" },
  });
  const create = (fields: object = {}) =>
    messagesClientOf(app).messages.create({
      model: "claude-opus-4-8",
      max_tokens: 500,
      system: LONG,
      messages: [{ role: "user", content: "Which tea?" }],
      ...fields,
    } as never);

  it("has the instructions with their cache mark, for one token", async () => {
    await create();
    const [warm, real] = server.calls.map(({ body }) => body);
    expect(warm).toMatchObject({ model: "claude-opus-4-8", max_tokens: 1 });
    expect(JSON.stringify(warm?.system)).toBe(JSON.stringify(real?.system));
    expect(JSON.stringify(warm?.system)).toContain("cache_control");
    expect(warm?.messages).toHaveLength(1);
    expect(real).toMatchObject({ max_tokens: 500 });
  });
});

describe("the warm-up of a message with a budget of thinking", () => {
  const server = anthropicServer();
  const app = servedApp({
    source: () => answeringSource(["Ada drinks green tea"]),
    upstream: server,
    environment: { MEMPREFIX_WARM_UP: "on", MEMPREFIX_ENGINE_FAMILY: "anthropic" },
  });

  it("is not sent: with other fields it would be another prompt", async () => {
    await messagesClientOf(app).messages.create({
      model: "claude-opus-4-8",
      max_tokens: 2_000,
      thinking: { type: "enabled", budget_tokens: 1_024 },
      system: LONG,
      messages: [{ role: "user", content: "Which tea?" }],
    });
    expect(server.calls).toHaveLength(1);
  });
});
