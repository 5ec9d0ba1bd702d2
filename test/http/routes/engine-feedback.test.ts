import { afterEach, describe, expect, it, vi } from "vitest";
import { feedbackResult } from "../../../src/http/contracts/engine-report-contract.js";
import { callerOf, sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";

const a = { id: "a", memory: "Ada drinks green tea" };
const b = { id: "b", memory: "Ada lives in Paris" };

describe("POST /evict", () => {
  const app = servedApp();
  const evict = async (...request_ids: string[]) =>
    JSON.parse((await app.send("POST", "/evict", { request_ids })).text) as unknown;

  it("takes what only the evicted requests had out of what is expected to be cached", async () => {
    const compose = (request_id: string, ...memories: object[]) =>
      app.compose({ user_id: "ada", request_id, query: "Well?", memories });
    await compose("r-1", a, b);
    expect((await compose("r-2", b, a)).plan.expected_cached_tokens).toBeGreaterThan(0);
    expect(await evict("r-1", "r-2")).toEqual({ evicted: ["r-1", "r-2"], unknown: [] });
    const after = await compose("r-3", b, a);
    expect(after.plan.expected_cached_tokens).toBe(0);
    expect(after.blocks.map(({ memory_id }) => memory_id)).toEqual(["b", "a"]);
  });

  it("knows the request by the id that the answer gave it, and only once", async () => {
    const { request_id } = await app.compose({ user_id: "ada", query: "one", memories: [a] });
    expect(await evict("never", request_id, request_id)).toEqual({ evicted: [request_id], unknown: ["never"] });
    expect(await evict(request_id)).toEqual({ evicted: [], unknown: [request_id] });
    expect(await evict()).toEqual({ evicted: [], unknown: [] });
  });

  it.each([
    ["chatcmpl-", "-1a2b3c4d"],
    ["cmpl-", "-0-1a2b3c4d"],
    ["", ""],
  ])("knows it as its engine calls it: %sreq-…%s", async (before, after) => {
    const { request_id } = await app.compose({ user_id: "ada", query: "one", memories: [a] });
    expect(request_id).toMatch(/^req-[0-9a-f]{32}$/);
    expect(await evict(before + request_id + after)).toEqual({ evicted: [request_id], unknown: [] });
  });

  it("takes the key from its path, and for evictions alone", async () => {
    const { key } = callerOf(app, "acme");
    const owner = { "x-api-key": key };
    await sendWith(app, owner, "POST", "/compose", { user_id: "ada", request_id: "r-k", query: "one", memories: [a] });
    const post = (path: string) => sendWith(app, {}, "POST", path, { request_ids: ["r-k"] });
    expect((await post("/evict")).status).toBe(401);
    expect((await post(`/keys/${key}A/evict`)).status).toBe(401);
    expect((await post("/keys/%E0%A4%A/evict")).status).toBe(401);
    expect((await post(`/keys/${key}/feedback`)).status).toBe(401);
    expect(JSON.parse((await post(`/keys/${key}/evict`)).text)).toEqual({ evicted: ["r-k"], unknown: [] });
  });
});

describe("POST /feedback", () => {
  const app = servedApp();
  afterEach(() => {
    vi.useRealTimers();
  });
  const feedback = async (body: object) =>
    feedbackResult.parse(JSON.parse((await app.send("POST", "/feedback", body)).text));

  it("sets what the engine cached against what was expected", async () => {
    await app.compose({ user_id: "ada", request_id: "r-1", query: "one", memories: [a, b] });
    const { plan } = await app.compose({ user_id: "ada", request_id: "r-2", query: "two", memories: [a, b] });
    const expected = plan.expected_cached_tokens;
    expect(expected).toBeGreaterThan(4);
    expect(await feedback({ user_id: "ada", request_id: "r-2", cached_tokens: expected - 4 })).toEqual({
      request_id: "r-2",
      expected_cached_tokens: expected,
      observed_cached_tokens: expected - 4,
      difference: -4,
    });
    const counted = {
      user_id: "ada",
      request_id: "r-2",
      prompt_tokens: 2 * plan.total_tokens,
      cached_tokens: 2 * expected,
    };
    expect(await feedback(counted)).toMatchObject({ expected_cached_tokens: 2 * expected, difference: 0 });
  });

  it("takes an engine that does not say for unknown, and one that says zero for zero", async () => {
    await app.compose({ user_id: "ada", request_id: "r-1", query: "one", memories: [a] });
    expect(await feedback({ user_id: "ada", request_id: "r-1" })).toMatchObject({
      observed_cached_tokens: null,
      difference: null,
    });
    expect(await feedback({ user_id: "ada", request_id: "r-1", cached_tokens: 0 })).toMatchObject({
      observed_cached_tokens: 0,
      difference: 0,
    });
  });

  it("does not take one user's request for another's", async () => {
    await app.compose({ user_id: "ada", request_id: "r-1", query: "one", memories: [a] });
    for (const who of [{ user_id: "bob" }, { user_id: "ada", agent_id: "planner" }]) {
      expect(await app.send("POST", "/feedback", { ...who, request_id: "r-1" })).toMatchObject({ status: 404 });
    }
  });
});
