import { describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { MemorySourceError } from "../../../src/memory/memory-source.js";
import { storedCounts } from "../../stored-counts.js";
import { answeringSource } from "../routes/answering-source.js";
import { ask, clientOf } from "../routes/chat-client.js";
import { openAiEngine, sendJson } from "../routes/openai-engine.js";
import { servedApp } from "./served-app.js";

const SECRET = "Ada hides the key under the third flower pot";

describe("GET /metrics", () => {
  const app = servedApp();

  async function metric(name: string): Promise<number | undefined> {
    const { text } = await app.send("GET", "/metrics", undefined, null);
    const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
    return line === undefined ? undefined : Number(line.slice(name.length + 1));
  }

  it("counts requests, tokens as they were expected and reported, and warnings", async () => {
    const body = { user_id: "ada", query: "Where?", request_id: "r-1", memories: [{ id: "m", memory: SECRET }] };
    const { plan } = await app.compose(body);
    await app.compose(body);
    const second = await app.compose({ ...body, request_id: "r-2", memory_budget_tokens: 900 });
    await app.send("POST", "/compose", { query: "Whose?" });
    const cached = second.plan.expected_cached_tokens;
    await app.send("POST", "/feedback", { user_id: "ada", request_id: "r-2", cached_tokens: 0 });
    expect(await metric('memprefix_http_requests_total{method="POST",route="/compose",status="200"}')).toBe(3);
    expect(await metric('memprefix_http_requests_total{method="POST",route="/compose",status="422"}')).toBe(1);
    expect(await metric('memprefix_http_request_duration_seconds_count{route="/compose"}')).toBe(4);
    expect(await metric('memprefix_prompt_tokens_total{expected="uncached"}')).toBe(
      plan.uncached_tokens + second.plan.uncached_tokens,
    );
    expect(await metric('memprefix_prompt_tokens_total{expected="cached"}')).toBe(cached);
    expect(await metric('memprefix_warnings_total{code="memory_budget_unused"}')).toBe(1);
    expect(await metric('memprefix_reported_cached_tokens_total{of="expected"}')).toBe(cached);
    expect(await metric('memprefix_reported_cached_tokens_total{of="observed"}')).toBe(0);
    expect(await metric("memprefix_reported_gap_tokens_total")).toBe(cached);
    expect(await metric("memprefix_working_scopes")).toBe(1);
    expect(await metric("memprefix_busy_users")).toBe(0);
  });

  it("counts composed prompts by layout and policy, and the nodes that they left in the index", async () => {
    const body = { user_id: "ada", query: "Where?", memories: [{ id: "m", memory: SECRET }] };
    await app.compose({ ...body, request_id: "r-1" });
    await app.compose({ ...body, request_id: "r-1" });
    await app.compose({ ...body, conversation_id: "c", policy: "sorted" });
    expect(await metric('memprefix_composes_total{layout="single",policy="prefix-exact"}')).toBe(1);
    expect(await metric('memprefix_composes_total{layout="conversation",policy="sorted"}')).toBe(1);
    const { nodes } = storedCounts(await app.memprefix.exportUser("ada" as UserId));
    expect(nodes).toBeGreaterThan(0);
    expect(await metric("memprefix_working_index_nodes")).toBe(nodes);
  });

  it("has the times to the first token, of each request the first that was reported", async () => {
    const { request_id } = await app.compose({ user_id: "ada", query: "Where?", memories: [] });
    for (const ttft_ms of [40, 4_000])
      await app.send("POST", "/feedback", { user_id: "ada", request_id, cached_tokens: 0, ttft_ms });
    expect(await metric("memprefix_first_token_seconds_count")).toBe(1);
    expect(await metric("memprefix_first_token_seconds_sum")).toBeCloseTo(0.04, 9);
  });

  it("counts a batch's prompts too", async () => {
    const requests = [1, 2].map((n) => ({ user_id: "ada", query: `${n}?`, memories: [{ id: "m", memory: SECRET }] }));
    const { text } = await app.send("POST", "/compose/batch", { requests });
    const { answers } = JSON.parse(text) as { answers: { answer: { plan: { total_tokens: number } } }[] };
    const total = answers.reduce((sum, { answer }) => sum + answer.plan.total_tokens, 0);
    const counted = await Promise.all(
      ["cached", "uncached"].map((kind) => metric(`memprefix_prompt_tokens_total{expected="${kind}"}`)),
    );
    expect((counted[0] ?? 0) + (counted[1] ?? 0)).toBe(total);
  });

  it("shows what the engine's cache is taken to hold: nothing until it is known", async () => {
    const part = (name: string) => metric(`memprefix_engine_cache{part="${name}"}`);
    expect(await part("capacity_tokens")).toBeUndefined();
    expect(await part("conversations")).toBe(0);
    const cache = app.memprefix.cachingEngine;
    cache?.read({ capacityTokens: 8_960, blockTokens: 128, computedTokens: 0 }, Date.now());
    await app.compose({ user_id: "ada", query: SECRET, memories: [{ id: "m", memory: SECRET }] });
    cache?.read({ capacityTokens: 8_960, blockTokens: 128, computedTokens: 5_000 }, Date.now());
    expect(await part("capacity_tokens")).toBe(8_960);
    expect(await part("block_tokens")).toBe(128);
    expect(await part("conversations")).toBe(1);
    expect(await part("foreign_tokens")).toBeGreaterThan(4_000);
  });

  it("shows the engine's law once it was measured, and never a name or a text", async () => {
    expect(await metric('memprefix_engine_law{part="per_token"}')).toBeUndefined();
    for (let n = 0; n < 40; n++) {
      const { request_id } = await app.compose({
        user_id: "ada",
        query: SECRET,
        memories: [{ id: "m", memory: SECRET }],
      });
      const [promptTokens, cached] = [1_000 + 100 * n, (370 * n) % 1_000];
      const tokens = { prompt_tokens: promptTokens, cached_tokens: cached, ttft_ms: 5 + 0.1 * (promptTokens - cached) };
      await app.send("POST", "/feedback", { user_id: "ada", request_id, ...tokens });
    }
    expect(await metric('memprefix_engine_law{part="per_token"}')).toBeCloseTo(0.1, 3);
    // No answer was streamed.
    expect(await metric('memprefix_engine_law{part="per_held_token"}')).toBe(0);
    const { text, contentType } = await app.send("GET", "/metrics", undefined, null);
    expect(contentType).toContain("text/plain");
    expect(text).not.toMatch(/ada|flower/i);
  });
});

describe("GET /metrics, of a memory source and an engine", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada drinks green tea"]);
  const app = servedApp({ source: () => source, upstream: engine });

  async function count(name: string, outcome: string): Promise<number | undefined> {
    const { text } = await app.send("GET", "/metrics", undefined, null);
    const found = new RegExp(`^${name}_count\\{outcome="${outcome}"\\} (\\d+)$`, "m").exec(text);
    return found === null ? undefined : Number(found[1]);
  }

  it("counts searches and calls by how they ended", async () => {
    const chat = () => clientOf(app).chat.completions.create(ask("Which tea?"));
    await chat();
    engine.behave((_request, response) => sendJson(response, 429, { error: { message: "slow down" } }));
    await expect(chat()).rejects.toThrow("slow down");
    source.failure = new MemorySourceError("answering", { kind: "unreachable", cause: "ECONNREFUSED" });
    engine.behave((_request, response) => void response.destroy());
    await expect(chat()).rejects.toThrow();
    expect(await count("memprefix_search_duration_seconds", "ok")).toBe(2);
    expect(await count("memprefix_search_duration_seconds", "unreachable")).toBe(1);
    expect(await count("memprefix_engine_answer_seconds", "ok")).toBe(1);
    expect(await count("memprefix_engine_answer_seconds", "client_error")).toBe(1);
    expect(await count("memprefix_engine_answer_seconds", "unreachable")).toBe(1);
    expect(await count("memprefix_engine_answer_seconds", "server_error")).toBeUndefined();
  });
});
