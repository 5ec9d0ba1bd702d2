import { describe, expect, it } from "vitest";
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
    expect(await metric('memstem_http_requests_total{method="POST",route="/compose",status="200"}')).toBe(3);
    expect(await metric('memstem_http_requests_total{method="POST",route="/compose",status="422"}')).toBe(1);
    expect(await metric('memstem_http_request_duration_seconds_count{route="/compose"}')).toBe(4);
    expect(await metric('memstem_prompt_tokens_total{expected="uncached"}')).toBe(
      plan.uncached_tokens + second.plan.uncached_tokens,
    );
    expect(await metric('memstem_prompt_tokens_total{expected="cached"}')).toBe(cached);
    expect(await metric('memstem_warnings_total{code="memory_budget_unused"}')).toBe(1);
    expect(await metric('memstem_reported_cached_tokens_total{of="expected"}')).toBe(cached);
    expect(await metric('memstem_reported_cached_tokens_total{of="observed"}')).toBe(0);
    expect(await metric("memstem_reported_gap_tokens_total")).toBe(cached);
    expect(await metric("memstem_working_scopes")).toBe(1);
    expect(await metric("memstem_busy_users")).toBe(0);
  });

  it("counts a batch's prompts too", async () => {
    const requests = [1, 2].map((n) => ({ user_id: "ada", query: `${n}?`, memories: [{ id: "m", memory: SECRET }] }));
    const { text } = await app.send("POST", "/compose/batch", { requests });
    const { answers } = JSON.parse(text) as { answers: { answer: { plan: { total_tokens: number } } }[] };
    const total = answers.reduce((sum, { answer }) => sum + answer.plan.total_tokens, 0);
    const counted = await Promise.all(
      ["cached", "uncached"].map((kind) => metric(`memstem_prompt_tokens_total{expected="${kind}"}`)),
    );
    expect((counted[0] ?? 0) + (counted[1] ?? 0)).toBe(total);
  });

  it("shows the engine's law once it was measured, and never a name or a text", async () => {
    expect(await metric('memstem_engine_law{part="per_token"}')).toBeUndefined();
    for (let n = 0; n < 40; n++) {
      const { request_id } = await app.compose({
        user_id: "ada",
        query: SECRET,
        memories: [{ id: "m", memory: SECRET }],
      });
      const tokens = { prompt_tokens: 1_000 + 100 * n, cached_tokens: 20 * n, ttft_ms: 5 + 0.1 * (1_000 + 80 * n) };
      await app.send("POST", "/feedback", { user_id: "ada", request_id, ...tokens });
    }
    expect(await metric('memstem_engine_law{part="per_token"}')).toBeCloseTo(0.1, 3);
    const { text, contentType } = await app.send("GET", "/metrics", undefined, null);
    expect(contentType).toContain("text/plain");
    expect(text).not.toMatch(/ada|flower/i);
  });
});
