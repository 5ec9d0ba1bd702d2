import { describe, expect, it } from "vitest";
import { sendWith } from "../guards/callers.js";
import { answeringSource } from "../routes/answering-source.js";
import { openAiEngine, sendJson, wholeAnswer } from "../routes/openai-engine.js";
import { problemOf, servedApp } from "../server/served-app.js";
import { usageOf } from "./usage-client.js";

const MEMORIES = [
  { id: "m1", memory: "Ana is a vegetarian since she was twelve years old." },
  { id: "m2", memory: "Ana lives in Lisbon, in a flat near the river." },
  { id: "m3", memory: "Ana's brother Rui is allergic to nuts." },
];
const system = (day: string) => `You plan trips for people who like to eat well. Today is ${day}.`;
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

/** Prices: 1 for a token, 1.25 written, 0.1 read; nothing is too short. */
const PRICES = JSON.stringify({
  cost: { kind: "money", uncached: 1, written: 1.25, cached: 0.1 },
  blockTokens: 1,
  minimumPrefixTokens: 1,
});

describe("GET /usage/…", () => {
  const app = servedApp({ environment: { MEMPREFIX_ENGINE_COST: PRICES, MEMPREFIX_RETENTION: "keep" } });
  const turn = (request: string, messages: readonly object[], more: object = {}) =>
    app.compose({
      user_id: "ana",
      conversation_id: "trip",
      request_id: request,
      messages,
      memories: MEMORIES,
      ...more,
    });
  const first = [user("Where do we eat tonight?")];
  const second = [...first, assistant("At Jardim das Cerejas."), user("And tomorrow?")];
  const feedback = (body: object) => app.send("POST", "/feedback", { user_id: "ana", ...body });

  it("counts a prompt under the model that its report names", async () => {
    await turn("t1", first);
    await turn("t2", second);
    expect((await feedback({ request_id: "t1", cached_tokens: 0, model: "sonnet" })).status).toBe(200);
    expect((await feedback({ request_id: "t2", cached_tokens: 0 })).status).toBe(200);
    const { by_model } = await usageOf(app, "summary");
    expect(by_model.map(({ model, prompts }) => [model, prompts])).toEqual(
      expect.arrayContaining([
        ["sonnet", 1],
        ["unknown", 1],
      ]),
    );
    expect((await usageOf(app, "requests", { model: "sonnet" })).requests).toMatchObject([{ request_id: "t1" }]);
    for (const model of ["", 7, "m".repeat(201)])
      expect((await feedback({ request_id: "t1", cached_tokens: 0, model })).status).toBe(422);
  });

  it("shows prompts as they were planned and reported", async () => {
    await turn("t1", first, { system: system("Monday") });
    const { plan } = await turn("t2", second, { system: system("Monday") });
    await feedback({
      request_id: "t2",
      prompt_tokens: plan.total_tokens,
      cached_tokens: plan.expected_cached_tokens,
      ttft_ms: 40,
    });
    const { requests, next } = await usageOf(app, "requests");
    expect(requests.map(({ request_id }) => request_id)).toEqual(["t2", "t1"]);
    expect(next).toBeNull();
    expect(requests[0]).toMatchObject({
      user_id: "ana",
      agent_id: null,
      conversation_id: "trip",
      model: "unknown",
      engine: "generic",
      layout: "conversation",
      prompt_tokens: plan.total_tokens,
      expected_cached_tokens: plan.expected_cached_tokens,
      new_tokens: plan.uncached_tokens,
      miss: null,
      reported_cached_tokens: plan.expected_cached_tokens,
      first_token_ms: 40,
    });
    const saved = plan.total_tokens - 0.1 * plan.expected_cached_tokens - 1.25 * plan.uncached_tokens;
    expect(requests[0]?.saved_money).toBeCloseTo(saved, 6);
    const { total, points, by_model, has_prices, cache } = await usageOf(app, "summary");
    expect(total).toMatchObject({
      prompts: 2,
      reported_prompts: 1,
      reported_cached_tokens: plan.expected_cached_tokens,
      cached_share: plan.expected_cached_tokens / plan.total_tokens,
      // Of the prompt that was reported, not of the one before it, too.
      expected_share: plan.expected_cached_tokens / plan.total_tokens,
      first_token_ms: { prompts: 1, mean: 40, p50: expect.closeTo(40, -1) },
    });
    // Two turns by hand: the first in full, the second after the first question's history or after the instructions.
    const { by_hand: byHand } = total;
    expect(byHand.uncached_tokens).toBe(total.uncached_tokens);
    expect(byHand.in_message_tokens).toBeGreaterThan(byHand.uncached_tokens);
    expect(byHand.in_system_tokens).toBeGreaterThan(byHand.uncached_tokens);
    expect(has_prices).toBe(true);
    expect(cache).toBeNull();
    expect(points).toHaveLength(60);
    expect(points.reduce((sum, { prompts }) => sum + prompts, 0)).toBe(2);
    expect(by_model[0]?.model).toBe("unknown");
  });

  it.each([
    ["instructions_changed", second, { system: system("Tuesday") }],
    ["history_changed", [user("Where do we go tonight?"), ...second.slice(1)], { system: system("Monday") }],
  ])("names why it missed: %s", async (cause, messages, more) => {
    await turn("t1", first, { system: system("Monday") });
    await turn("t2", messages, more);
    const { requests } = await usageOf(app, "requests", { cause });
    expect(requests.map(({ request_id }) => request_id)).toEqual(["t2"]);
    expect(requests[0]?.miss).toMatchObject({ cause });
    const { misses: causes, total } = await usageOf(app, "summary", { window: "day" });
    const tokens = requests[0]?.miss?.tokens;
    expect(causes.find((found) => found.cause === cause)).toMatchObject({ prompts: 1, tokens });
    expect(causes.reduce((sum, found) => sum + found.tokens, 0)).toBe(total.missed_tokens);
    expect(causes[0]?.advice).not.toBe("");
    expect(causes).toHaveLength(10);
    expect((await usageOf(app, "requests", { cause: "evicted" })).requests).toEqual([]);
  });

  it("shows a prompt beside the one that it continued, without text", async () => {
    await turn("t1", first, { system: system("Monday") });
    const { plan } = await turn("t2", second, { system: system("Monday") });
    const { request, messages, continued_messages, explanation, has_text } = await usageOf(app, "request", {
      user_id: "ana",
      request_id: "t2",
    });
    expect(request?.request_id).toBe("t2");
    expect(has_text).toBe(false);
    expect(messages?.map(({ role, is_shared }) => [role, is_shared])).toEqual([
      ["system", true],
      ["user", true],
      ["assistant", false],
      ["user", false],
    ]);
    expect(continued_messages?.map(({ role }) => role)).toEqual(["system", "user"]);
    expect(messages?.every(({ text }) => text === null)).toBe(true);
    expect(explanation).toMatchObject({ miss: null, total_tokens: plan.total_tokens, continued: { request_id: "t1" } });
    const missing = await app.send("GET", "/usage/request?user_id=ana&request_id=t9");
    expect(problemOf(missing)).toMatchObject({ status: 404, errors: [{ field: "request_id" }] });
  });

  it("rejects what it does not know", async () => {
    for (const query of ["window=year", "windows=hour", "model=", "engine=gpt"])
      expect(problemOf(await app.send("GET", `/usage/summary?${query}`)), query).toMatchObject({ status: 422 });
    expect(problemOf(await app.send("GET", "/usage/requests?cursor=%20"))).toMatchObject({ status: 422 });
    expect((await usageOf(app, "requests", { cursor: "zzzzzzzzzzzzzzzzzzzz" })).requests).toEqual([]);
  });
});

describe("GET /usage/… of chats with tools", () => {
  const engine = openAiEngine();
  const app = servedApp({
    source: () => answeringSource([]),
    upstream: engine,
    environment: { MEMPREFIX_ENGINE_COST: PRICES.replace('"minimumPrefixTokens":1', '"minimumPrefixTokens":2000') },
  });
  /** Some 3,000 tokens. */
  const tools = [{ type: "function", function: { name: "say", description: "say ".repeat(3_000) } }];

  it("is of what memprefix composed: an engine that has the tools alone missed all that was expected", async () => {
    const messages = [{ role: "system", content: "Monday ".repeat(600) }, user("Where?")];
    const chat = async (more: readonly object[], cached: number) => {
      engine.behave((_request, response, { prompt_tokens: prompt, ...usage }) => {
        const counted = { prompt_tokens: prompt + 3_000, prompt_tokens_details: { cached_tokens: cached } };
        sendJson(response, 200, wholeAnswer("Indeed.", { ...usage, ...counted }));
      });
      const named = { "x-memprefix-user": "ana", "x-memprefix-conversation": "trip" };
      const body = { model: "stub-1", tools, messages: [...messages, ...more] };
      const response = await sendWith(app, named, "POST", "/v1/chat/completions", body);
      expect(response.status).toBe(200);
      const { usage } = JSON.parse(response.text) as { usage: { prompt_tokens: number } };
      return { ...usage, request_id: response.headers.get("x-memprefix-request-id") ?? "" };
    };
    await chat([], 0);
    const { prompt_tokens, request_id } = await chat([assistant("Indeed."), user("When?")], 3_000);
    const shown = () => usageOf(app, "request", { user_id: "ana", request_id });
    const rowOf = async () => (await shown()).request;
    await expect.poll(async () => (await rowOf())?.reported_cached_tokens).not.toBeNull();
    const row = await rowOf();
    expect(row?.expected_cached_tokens).toBeGreaterThan(600);
    expect(row?.miss?.cause).toBe("unknown");
    expect(row?.miss?.tokens).toBeGreaterThan((row?.expected_cached_tokens ?? 0) - 10);
    expect(row?.uncached_tokens).toBeLessThanOrEqual(row?.prompt_tokens ?? 0);
    expect((await usageOf(app, "summary")).total.below_minimum.prompts).toBe(0);
    const { explanation } = await shown();
    expect(explanation.miss).toEqual(row?.miss);
    expect(explanation.reported_cached_tokens).toBeLessThan(10);
    // The client may repeat what the engine said, tools included.
    const again = { user_id: "ana", request_id, prompt_tokens, cached_tokens: 3_000 };
    const { text } = await app.send("POST", "/feedback", again);
    expect(JSON.parse(text).difference).toBeCloseTo(-(row?.miss?.tokens ?? 0), -1);
    expect(await rowOf()).toEqual(row);
  });
});

describe("GET /usage/request with text", () => {
  const app = servedApp({ environment: { MEMPREFIX_DASHBOARD_TEXT: "on" } });
  it("has the text of every message", async () => {
    await app.compose({
      user_id: "ana",
      request_id: "r1",
      system: "Be brief.",
      query: "Where?",
      memories: MEMORIES.slice(0, 1),
    });
    const { messages, has_text } = await usageOf(app, "request", { user_id: "ana", request_id: "r1" });
    expect(has_text).toBe(true);
    expect(messages?.map(({ text }) => text)).toEqual(["Be brief.", expect.stringContaining(`${MEMORIES[0]?.memory}`)]);
  });
});
