import { describe, expect, it } from "vitest";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { openAiEngine, sendJson } from "./openai-engine.js";

const HEAD = `Extract facts. ${"Be careful with names and dates. ".repeat(200)}`;
const HELD = 4_000;

/** What Mem0 sends its model of one exchange. */
const extraction = (n: number) => ({
  model: "gpt-5-mini",
  messages: [
    { role: "system", content: HEAD },
    { role: "user", content: `## New messages\nuser: ${`I like tea number ${n}. `.repeat(40)}` },
  ],
});

interface Summary {
  readonly total: { readonly prompts: number };
  readonly writes: Record<"prompts" | "prompt_tokens" | "reported_cached_tokens" | "uncached_tokens", number> & {
    readonly saved_money: number | null;
  };
  readonly by_model: readonly object[];
}

describe.each(["openai", "openai-breakpoints", "vllm", "anthropic"])("Mem0's calls of its own model (%s)", (family) => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, environment: { MEMPREFIX_ENGINE_FAMILY: family } });
  const write = (n: number, path = "/plain/v1/chat/completions", body: object = extraction(n)) =>
    sendWith(app, {}, "POST", path, body);
  const sent = (at: number) => JSON.parse(engine.requests[at]?.raw ?? "{}") as Record<string, unknown>;

  it("are sent with the hints that the engine takes, else as they came", async () => {
    for (const n of [1, 2]) expect((await write(n)).headers.get("x-memprefix-not-composed")).toBe("bypass");
    const { messages, prompt_cache_key: key, cache_salt: salt, request_id: _id, ...others } = sent(0);
    const mark = {
      openai: null,
      "openai-breakpoints": "prompt_cache_breakpoint",
      vllm: null,
      anthropic: "cache_control",
    }[family];
    const text = { type: "text", text: HEAD };
    const head = mark ? [{ ...text, [String(mark)]: expect.anything() as unknown }] : HEAD;
    const [, user] = extraction(1).messages;
    expect(messages).toEqual([{ role: "system", content: head }, user]);
    // One key for the tenant: every user's additions begin with the same instructions.
    expect(key).toEqual(family.startsWith("openai") ? expect.any(String) : undefined);
    expect(salt).toEqual(family === "vllm" ? expect.any(String) : undefined);
    expect(sent(1)).toMatchObject({ ...others, ...(key === undefined ? {} : { prompt_cache_key: key }) });
  });

  it("are counted apart, as writes, and listed nowhere", async () => {
    for (const n of [1, 2, 3]) await write(n);
    const metrics = (await app.send("GET", "/metrics")).text;
    const metric = (name: string) => Number(new RegExp(`^${name} (\\d+)`, "m").exec(metrics)?.[1] ?? Number.NaN);
    expect(metric("memprefix_write_calls_total")).toBe(3);
    // The stub reports as OpenAI does.
    if (family === "anthropic") return;
    const cached = metric('memprefix_write_tokens_total\\{cached="yes"\\}');
    const computed = metric('memprefix_write_tokens_total\\{cached="no"\\}');
    expect(cached).toBeGreaterThan(computed);
    const { total, writes, by_model } = JSON.parse((await app.send("GET", "/usage/summary")).text) as Summary;
    expect([total.prompts, by_model]).toEqual([0, []]);
    expect(writes).toMatchObject({ prompts: 3, prompt_tokens: cached + computed, reported_cached_tokens: cached });
    expect(writes.uncached_tokens).toBe(computed);
    if (family === "vllm") expect(writes.saved_money).toBeNull();
    else expect(writes.saved_money).toBeGreaterThan(0);
    expect(JSON.parse((await app.send("GET", "/usage/requests")).text)).toMatchObject({ requests: [] });
  });

  it("count for nothing where the engine refuses them", async () => {
    engine.behave((_request, response) => sendJson(response, 500, { error: { message: "No." } }));
    expect((await write(1)).status).toBe(500);
    expect((await app.send("GET", "/metrics")).text).not.toMatch(/memprefix_write_calls_total [1-9]/);
  });
});

describe("Mem0's calls in the engine's cache", () => {
  const engine = openAiEngine({ capacityTokens: HELD });
  const app = servedApp({
    upstream: engine,
    environment: { MEMPREFIX_ENGINE_FAMILY: "vllm", MEMPREFIX_CACHE_SIZE: String(HELD) },
  });

  it("evict what a conversation had cached, and memprefix expects no more", async () => {
    const history: object[] = [{ role: "system", content: "Be brief. ".repeat(500) }];
    const expected: number[] = [];
    const cached: number[] = [];
    for (const writes of [0, 0, 12, 0]) {
      for (let n = 0; n < writes; n++) await sendWith(app, {}, "POST", "/plain/v1/chat/completions", extraction(n));
      history.push({ role: "user", content: `Question ${history.length}? ${"Think of tea. ".repeat(40)}` });
      const headers = { "x-memprefix-user": "ana", "x-memprefix-conversation": "trip" };
      const answer = await sendWith(app, headers, "POST", "/v1/chat/completions", {
        messages: history,
        memprefix: { memories: [] },
      });
      expected.push(Number(answer.headers.get("x-memprefix-expected-cached-tokens")));
      cached.push(Number(answer.headers.get("x-memprefix-cached-tokens")));
      history.push({ role: "assistant", content: "Indeed." });
    }
    expect(cached[1]).toBeGreaterThan(900);
    expect(cached[2]).toBeLessThan(16);
    for (const [at, tokens] of expected.entries()) expect(Math.abs(tokens - (cached[at] ?? 0))).toBeLessThan(64);
  });
});
