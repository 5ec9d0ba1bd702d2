import { describe, expect, it, vi } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { composedOf, type ServedApp, servedApp } from "../server/served-app.js";
import { ask, clientOf } from "./chat-client.js";
import { likeliest, openAiEngine, type Received, sendJson, wholeAnswer } from "./openai-engine.js";

/** Log probabilities of an engine that is sure of its first token, and of one that is not. */
const SURE = [Math.log(0.98), Math.log(0.01), Math.log(0.009)];
const UNSURE = Array.from({ length: 20 }, () => Math.log(1 / 20));

const memories = Array.from({ length: 12 }, (_, at) => ({
  id: `m${at}`,
  memory: `Ada owns the book number ${at * 7}.`,
}));

const QUESTION = "Which books does Ada own?";

async function complete(app: ServedApp, memprefix: object = {}, body: object = {}) {
  const asked = { ...ask(QUESTION), ...body, memprefix: { memories, ...memprefix } };
  const { data, response } = await clientOf(app).chat.completions.create(asked).withResponse();
  return { answer: data, headers: response.headers, depth: response.headers.get("x-memprefix-depth") };
}

/** The blocks of a prompt's last message, as they stand there. */
function blocksOf({ body }: Received): string[] {
  return String(body.messages.at(-1)?.content).match(/^(?:\d+|-) .*$/gm) ?? [];
}

/** What a prompt's last message begins with, up to where its blocks end. */
function upToBlocks(request: Received): string {
  const text = String(request.body.messages.at(-1)?.content);
  const last = blocksOf(request).at(-1) ?? "";
  return text.slice(0, text.indexOf(last) + last.length + 1);
}

const isTry = ({ body }: Received) => body["max_tokens"] === 1;

describe("adaptive depth, configured", () => {
  const engine = openAiEngine();
  const app = servedApp({
    upstream: engine,
    environment: { MEMPREFIX_ADAPTIVE_DEPTH: '{"firstBlocks":3,"timeLimitMs":60000}' },
  });

  const tries = () => engine.requests.filter(isTry).length;

  it("gives more memories until the engine is sure, each prompt a prefix hit on the one before", async () => {
    engine.firstTokens.push(UNSURE, SURE);
    const { answer, depth, headers } = await complete(app, { request_id: "r1" }, { temperature: 0.2, max_tokens: 50 });
    expect(engine.requests).toHaveLength(3);
    expect(engine.requests.map((request) => blocksOf(request).length)).toEqual([3, 6, 6]);
    const [first, second, last] = engine.requests as [Received, Received, Received];
    expect(upToBlocks(second).startsWith(upToBlocks(first))).toBe(true);
    expect(last.body.messages).toEqual(second.body.messages);
    // The most relevant ones.
    expect(blocksOf(last).sort()).toEqual(
      memories
        .slice(0, 6)
        .map(({ memory }) => `- ${memory}`)
        .sort(),
    );
    expect(first.body).toMatchObject({ max_tokens: 1, logprobs: true, top_logprobs: 20, temperature: 1 });
    expect(last.body).toMatchObject({ max_tokens: 50, temperature: 0.2 });
    expect(last.body).not.toHaveProperty("logprobs");
    expect(first.headers["x-request-id"]).not.toBe(last.headers["x-request-id"]);
    // The second try was the same prompt, of which the last token is always computed.
    expect(answer.usage?.prompt_tokens_details?.cached_tokens).toBe((answer.usage?.prompt_tokens ?? 0) - 1);
    expect(depth).toMatch(/^given=6, retrieved=12, outcome=sure, entropies=\(\d\.\d{3} 0\.\d{3}\)$/);
    expect(headers.get("x-memprefix-warnings")).toBe("memory_held_back");
    // What was sent is what was stored.
    const again = composedOf(await app.send("POST", "/compose", { user_id: "ada", request_id: "r1", query: "?" }));
    expect(again.messages).toEqual(last.body.messages);
    expect(again.blocks).toHaveLength(6);
    const { prompt_tokens: tried = 0, cached_tokens: hit = 0 } = again.plan.depth?.probes[1] ?? {};
    expect(hit).toBeGreaterThan(again.plan.depth?.probes[0]?.cached_tokens ?? Number.NaN);
    expect(tried).toBe(answer.usage?.prompt_tokens);
    const held = again.warnings.find(({ code }) => code === "memory_held_back");
    expect(held?.memory_ids).toEqual(memories.slice(6).map(({ id }) => id));
    // The index is told what was cached, and what it says of later prompts follows from what was sent.
    const why = JSON.parse((await app.send("GET", "/requests/r1/explain?user_id=ada")).text);
    expect(why).toMatchObject({ miss: null, reported_cached_tokens: expect.any(Number) });
    const next = composedOf(
      await app.send("POST", "/compose", { user_id: "ada", model: last.body["model"], query: QUESTION, memories }),
    );
    expect(next.blocks.filter(({ placement }) => placement === "cached_prefix")).toHaveLength(6);
    expect(app.faults).toEqual([]);
  });

  it("gives all of them to an engine that stays unsure, without a try of the whole", async () => {
    engine.firstTokens.push(UNSURE, UNSURE, UNSURE);
    const { depth } = await complete(app);
    expect(engine.requests.map((request) => blocksOf(request).length)).toEqual([3, 6, 12]);
    expect(engine.requests.map(isTry)).toEqual([true, true, false]);
    expect(upToBlocks(engine.requests[2] as Received).startsWith(upToBlocks(engine.requests[1] as Received))).toBe(
      true,
    );
    expect(depth).toContain("given=12, retrieved=12, outcome=unsure");
  });

  it("names tries by names of their own, and sends the client's other headers", async () => {
    engine.firstTokens.push(SURE);
    const headers = { "x-memprefix-user": "ada", "x-request-id": "mine", "idempotency-key": "once", "x-session": "s" };
    await clientOf(app, headers).chat.completions.create({ ...ask(QUESTION), ...{ memprefix: { memories } } });
    const [tried, real] = engine.requests;
    expect(real?.headers).toMatchObject({ "x-request-id": "mine", "idempotency-key": "once", "x-session": "s" });
    expect(tried?.headers).toMatchObject({ authorization: "Bearer sk-of-the-client", "x-session": "s" });
    expect(tried?.headers["x-request-id"]).not.toBe("mine");
    expect(tried?.headers).not.toHaveProperty("idempotency-key");
  });

  it("is switched off by a request", async () => {
    expect((await complete(app, { adaptive_depth: false })).depth).toBeNull();
    expect(engine.requests).toHaveLength(1);
  });

  it("makes no tries where there is nothing to hold back, or the first token is fixed", async () => {
    expect((await complete(app, { memories: memories.slice(0, 3) })).depth).toContain("outcome=few");
    const schema = { response_format: { type: "json_object" } };
    expect((await complete(app, {}, schema)).depth).toContain("outcome=fixed_start");
    const tool = { type: "function", function: { name: "look", parameters: {} } };
    expect((await complete(app, {}, { tools: [tool], tool_choice: "required" })).depth).toContain("fixed_start");
    expect(engine.requests.map(isTry)).toEqual([false, false, false]);
  });

  it("an engine that gives no log probabilities gets all memories at once, says so once, and is not asked again", async () => {
    const first = await complete(app);
    expect(first.depth).toContain("given=12, retrieved=12, outcome=unavailable");
    expect(first.headers.get("x-memprefix-warnings")).toBe("depth_unavailable");
    const second = await complete(app);
    expect(second.depth).toContain("outcome=unavailable");
    expect(second.headers.get("x-memprefix-warnings")).toBeNull();
    expect(tries()).toBe(1);
    // Another model may give them.
    engine.firstTokens.push(SURE);
    expect((await complete(app, {}, { model: "stub-2" })).depth).toContain("given=3, retrieved=12, outcome=sure");
  });

  it.each(["fails", "breaks off", "answers no JSON", "thinks first"])(
    "an engine that %s at tries answers the prompt all the same",
    async (how) => {
      engine.behave((request, response, usage) => {
        if (!isTry(request)) return sendJson(response, 200, wholeAnswer("Two.", usage));
        if (how === "fails") return sendJson(response, 500, { error: { message: "out of order" } });
        if (how === "thinks first") {
          const logprobs = likeliest([Math.log(0.9999)], "<think>");
          return sendJson(response, 200, wholeAnswer("<think>", usage, {}, { logprobs }));
        }
        if (how === "answers no JSON") return void response.end("indeed");
        if (how === "breaks off") {
          response.writeHead(200, { "content-type": "application/json" });
          response.write('{"choices":[');
          setTimeout(() => response.destroy(), 20);
        }
        return undefined;
      });
      for (let chat = 0; chat < 4; chat++) {
        const { answer, depth, headers } = await complete(app);
        const isUnclear = how === "thinks first";
        expect(headers.get("x-memprefix-warnings")).toBe(isUnclear && chat === 0 ? "depth_unavailable" : null);
        expect(answer.choices[0]?.message.content).toBe("Two.");
        const outcome = isUnclear ? (chat === 0 ? "unclear" : "unavailable") : "failed";
        expect(depth).toContain(`given=12, retrieved=12, outcome=${outcome}`);
      }
      expect(tries()).toBe(how === "thinks first" ? 1 : 4);
      const given = engine.requests.filter((request) => !isTry(request)).map((request) => blocksOf(request).length);
      expect(given).toEqual([12, 12, 12, 12]);
      expect(app.faults).toEqual([]);
    },
  );

  it("a client that goes away ends the try, and nothing of its prompt is kept", async () => {
    engine.behave(() => {});
    const leaving = new AbortController();
    const body = { ...ask(QUESTION), memprefix: { memories } };
    const chat = clientOf(app).chat.completions.create(body, { signal: leaving.signal });
    await vi.waitFor(() => expect(engine.requests).toHaveLength(1));
    leaving.abort();
    await expect(chat).rejects.toThrow("abort");
    await engine.requests[0]?.abandoned;
    expect((await app.memprefix.exportUser("ada" as UserId)).scopes).toEqual([]);
    expect(engine.requests).toHaveLength(1);
  });
});

describe("adaptive depth, before an engine that hangs at tries", () => {
  const engine = openAiEngine();
  const app = servedApp({
    upstream: engine,
    environment: { MEMPREFIX_ADAPTIVE_DEPTH: '{"firstBlocks":3,"timeLimitMs":100}' },
  });

  it("sends all memories once the time is up, and does not try again", async () => {
    engine.behave((request, response, usage) => {
      if (!isTry(request)) sendJson(response, 200, wholeAnswer("Two.", usage));
    });
    for (const [outcome, warning] of [
      ["failed", "depth_unavailable"],
      ["unavailable", null],
    ]) {
      const { answer, depth, headers } = await complete(app);
      expect(answer.choices[0]?.message.content).toBe("Two.");
      expect(depth).toContain(`given=12, retrieved=12, outcome=${outcome}`);
      expect(headers.get("x-memprefix-warnings")).toBe(warning);
    }
    expect(engine.requests.map(isTry)).toEqual([true, false, false]);
  });
});

describe("adaptive depth, not configured", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, environment: { MEMPREFIX_ENGINE_FAMILY: "anthropic" } });

  it("sends all memories at once", async () => {
    expect((await complete(app)).depth).toBeNull();
    expect(engine.requests).toHaveLength(1);
  });

  it("says why it cannot be had with Anthropic's models", async () => {
    const { depth, headers } = await complete(app, { adaptive_depth: true });
    expect(depth).toContain("given=12, retrieved=12, outcome=unavailable");
    expect(headers.get("x-memprefix-warnings")).toBe("depth_unavailable");
    expect(engine.requests).toHaveLength(1);
    engine.firstTokens.push(SURE);
    expect((await complete(app, { adaptive_depth: true, engine: "vllm" })).depth).toContain("outcome=sure");
    // A try is the same user's, of the same tenant.
    const [tried, real] = engine.requests.slice(1);
    expect(tried?.body["cache_salt"]).toMatch(/./);
    expect(tried?.body["cache_salt"]).toBe(real?.body["cache_salt"]);
  });
});
