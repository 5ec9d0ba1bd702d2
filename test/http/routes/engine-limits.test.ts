import { describe, expect, it, vi } from "vitest";
import { composeBody, readCompose } from "../../../src/http/contracts/compose-contract.js";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import {
  type Behaviour,
  openAiEngine,
  type Received,
  sendEvents,
  sendJson,
  streamedAnswer,
  wholeAnswer,
} from "./openai-engine.js";

const CONTEXT = 600;
const MEMORIES = Array.from({ length: 100 }, (_, n) => `Ada's fact ${n}: house ${n * 31} on street ${n * 7}.`);
const LONG = "word ".repeat(700);

const entry = { object: "model", created: 1, owned_by: "engine" };
/** What engines say of a context of {@link CONTEXT} tokens. */
const LISTS = {
  vLLM: { object: "list", data: [{ ...entry, id: "stub-1", root: "stub-1", parent: null, max_model_len: CONTEXT }] },
  "llama.cpp": {
    object: "list",
    models: [{ name: "/models/stub.gguf" }],
    data: [{ ...entry, id: "/models/stub.gguf", meta: { n_ctx: CONTEXT, n_ctx_train: 131_072, n_vocab: 1 } }],
  },
  OpenRouter: {
    data: [
      { id: "another/model", context_length: 1_000_000, top_provider: { context_length: 1_000_000 } },
      { id: "stub-1", context_length: CONTEXT, pricing: {}, top_provider: { context_length: CONTEXT } },
    ],
  },
};

/** An engine that counts `ratio` of the stub's tokens, and refuses none. */
const counting =
  (ratio: number): Behaviour =>
  (request, response, usage) => {
    const counted = { ...usage, prompt_tokens: Math.ceil(ratio * usage.prompt_tokens) };
    if (request.body.stream) return sendEvents(response, streamedAnswer("So.", counted));
    return sendJson(response, 200, wholeAnswer("So.", counted));
  };

describe("the proxy before an engine that lists its context", () => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({ source: () => source, upstream: engine });

  const ask = async (content: string, more: object = {}, headers: Record<string, string> = {}) => {
    const before = engine.requests.length;
    const body = { model: "stub-1", messages: [{ role: "user", content }], ...more };
    const named = { "x-memprefix-user": "ada", ...headers };
    const response = await sendWith(app, named, "POST", "/v1/chat/completions", body);
    const { usage } = JSON.parse(response.text) as { usage?: { prompt_tokens: number } };
    return {
      status: response.status,
      warnings: response.headers.get("x-memprefix-warnings"),
      sends: engine.requests.length - before,
      tokens: usage?.prompt_tokens ?? 0,
    };
  };
  /** Asks until the engine's limit is known, which it is soon after the first answer. */
  const untilLimited = async (headers: Record<string, string> = {}) => {
    source.found = MEMORIES;
    await vi.waitFor(async () => expect((await ask("What?", {}, headers)).warnings).toBe("memory_left_out"));
  };

  it.each(Object.entries(LISTS))(
    "as %s does, keeps prompts within it, and names what it leaves out",
    async (_, list) => {
      engine.list((_request, response) => sendJson(response, 200, list));
      source.found = MEMORIES;
      const unlimited = await ask("What?");
      expect(unlimited).toMatchObject({ status: 200, warnings: null, sends: 1 });
      expect(unlimited.tokens).toBeGreaterThan(CONTEXT);
      await untilLimited();
      expect(engine.limitRequests).toHaveLength(1);
      // A quarter of a small context is left for an answer whose length is not said.
      const plain = await ask("What?");
      expect(plain.tokens).toBeGreaterThan(0.65 * CONTEXT);
      expect(plain.tokens).toBeLessThanOrEqual(0.75 * CONTEXT);
      const short = await ask("What?", { max_tokens: 20 });
      expect(short).toMatchObject({ warnings: "memory_left_out", sends: 1 });
      expect(short.tokens).toBeGreaterThan(plain.tokens);
      expect(short.tokens).toBeLessThanOrEqual(CONTEXT - 20);
      expect(engine.limitRequests).toHaveLength(1);
      expect(app.faults).toEqual([]);
    },
  );

  it("lets the engine judge messages that come to more, and a request name a limit of its own", async () => {
    engine.list((_request, response) => sendJson(response, 200, LISTS.vLLM));
    await untilLimited();
    expect(await ask(LONG)).toMatchObject({ status: 200, warnings: "memory_left_out", sends: 1 });
    expect(engine.requests.at(-1)?.body.messages).toEqual([{ role: "user", content: LONG }]);
    const own = await ask("What?", { memprefix: { max_prompt_tokens: 10_000 } });
    expect(own).toMatchObject({ warnings: null, sends: 1 });
    expect(own.tokens).toBeGreaterThan(CONTEXT);
  });

  it("counts tools, which the engine puts into the prompt", async () => {
    engine.list((_request, response) => sendJson(response, 200, LISTS.vLLM));
    await untilLimited();
    const tools = [{ type: "function", function: { name: "look_up", description: "word ".repeat(200) } }];
    const { tokens, warnings } = await ask("What?", { tools });
    expect(warnings).toBe("memory_left_out");
    expect(tokens).toBeLessThanOrEqual(0.75 * CONTEXT - 200);
  });

  it("asks each client's engine with that client's credentials", async () => {
    engine.list((request, response) =>
      sendJson(response, 200, request.headers.authorization === "Bearer small" ? LISTS.vLLM : { data: [] }),
    );
    await untilLimited({ authorization: "Bearer small", "x-thread": "t-1", traceparent: "t-2" });
    const { headers } = engine.limitRequests[0] as Received;
    expect(headers).toMatchObject({ authorization: "Bearer small", "user-agent": "memprefix" });
    expect(Object.keys(headers).sort()).toEqual([
      "accept-encoding",
      "authorization",
      "connection",
      "host",
      "user-agent",
    ]);
    for (let asked = 0; asked < 3; asked++) {
      expect((await ask("What?", {}, { authorization: "Bearer large" })).warnings).toBeNull();
      await vi.waitFor(() => expect(engine.limitRequests.length).toBeGreaterThan(0));
    }
  });

  it.each<[string, Behaviour]>([
    ["answers 500", (_request, response) => sendJson(response, 500, { error: "none" })],
    ["answers 404", (_request, response) => sendJson(response, 404, { error: "none" })],
    ["answers 4 MB", (_request, response) => sendJson(response, 200, { ...LISTS.vLLM, more: "x".repeat(4 << 20) })],
    [
      "breaks off",
      (_request, response) =>
        void response.writeHead(200, { "content-length": "99" }).write("{", () => response.destroy()),
    ],
    ["answers another JSON", (_request, response) => sendJson(response, 200, { data: { "stub-1": CONTEXT } })],
    ["answers no JSON", (_request, response) => void response.end('{"data": [{"id": "stub-1", "max_model_len": 600}')],
  ])("whose list %s, leaves prompts as they are, and is left alone", async (_what, list) => {
    engine.list(list);
    source.found = MEMORIES;
    for (let chat = 0; chat < 4; chat++) {
      expect(await ask("What?")).toMatchObject({ status: 200, warnings: null, sends: 1 });
      await vi.waitFor(() => expect(engine.limitRequests).toHaveLength(1));
      await new Promise((done) => setTimeout(done, 30));
    }
    expect(app.faults).toEqual([]);
  });

  it("whose list never comes, answers at once; the call is ended", async () => {
    engine.list(() => {});
    source.found = MEMORIES;
    const answered = { status: 200, warnings: null, sends: 1 };
    expect(await ask("What?")).toMatchObject(answered);
    await vi.waitFor(() => expect(engine.limitRequests).toHaveLength(1));
    const listed = engine.limitRequests[0]?.abandoned.then(() => "ended");
    expect(await Promise.race([listed, Promise.resolve("open")])).toBe("open");
    for (let chat = 0; chat < 3; chat++) expect(await ask("What?")).toMatchObject(answered);
    expect(engine.limitRequests).toHaveLength(1);
    await listed;
    expect(app.faults).toEqual([]);
  });
});

describe("the proxy with MEMPREFIX_MAX_PROMPT_TOKENS", () => {
  const engine = openAiEngine();
  const source = answeringSource(MEMORIES);
  const MOST = 900;
  const environment = { MEMPREFIX_MAX_PROMPT_TOKENS: String(MOST), MEMPREFIX_API_KEY: "k".repeat(40) };
  const app = servedApp({ source: () => source, upstream: engine, environment });

  const ask = async (messages: readonly object[], more: object = {}, user = "ada") => {
    const named = { authorization: `Bearer ${environment.MEMPREFIX_API_KEY}`, "x-memprefix-user": user };
    const body = { model: "stub-1", messages, ...more };
    const { text, headers } = await sendWith(app, named, "POST", "/v1/chat/completions", body);
    return { text, notComposed: headers.get("x-memprefix-not-composed") };
  };

  it.each([1.3, 2.5, 0.8])("keeps to it by the count of an engine with %f times our tokens", async (ratio) => {
    const counted: number[] = [];
    engine.behave((request, response, usage) => {
      counted.push(Math.ceil(ratio * usage.prompt_tokens));
      return counting(ratio)(request, response, usage);
    });
    const history: object[] = [];
    for (let turn = 0; turn < 12; turn++) {
      source.found = MEMORIES.slice(0, 50).map((memory) => `${turn}: ${memory}`);
      history.push({ role: "user", content: `Question ${turn}?` });
      const more = { stream: turn % 2 === 0, memprefix: { conversation_id: "c", history: "exact" } };
      expect((await ask(history, more)).notComposed).toBeNull();
      history.push({ role: "assistant", content: "So." });
    }
    expect(Math.max(...counted.slice(1))).toBeLessThanOrEqual(MOST);
    expect(Math.max(...counted.slice(6))).toBeGreaterThan(0.85 * MOST);
    // The limit is the operator's: the engine's is not asked for.
    expect(engine.limitRequests).toEqual([]);
  });

  it("learns from one user's prompts for that user and model alone", async () => {
    engine.behave(counting(4));
    source.found = MEMORIES;
    const promptOf = async (user: string, model = "stub-1") => {
      const { usage } = JSON.parse((await ask([{ role: "user", content: "What?" }], { model }, user)).text);
      return usage.prompt_tokens / 4;
    };
    const first = await promptOf("ada");
    expect(await promptOf("ada")).toBeLessThan(0.3 * first);
    expect(await promptOf("bob")).toBe(first);
    expect(await promptOf("ada", "stub-2")).toBe(first);
  });
});

describe("max_prompt_tokens of prompts that the caller sends", () => {
  const app = servedApp();
  const memories = MEMORIES.map((memory, at) => ({ id: `m${at}`, memory }));

  it("holds by the engine's count as it is reported, in answers to refuse too", async () => {
    const body = { user_id: "ada", query: "What?", memories, max_prompt_tokens: 700 };
    const { request_id, plan } = await app.compose(body);
    expect(plan.total_tokens).toBeGreaterThan(650);
    const prompt_tokens = Math.ceil(1.3 * plan.total_tokens);
    // A request is reported once: what is said of it again counts for nothing.
    for (const tokens of [prompt_tokens, 3 * prompt_tokens])
      await app.send("POST", "/feedback", { user_id: "ada", request_id, prompt_tokens: tokens });
    const next = await app.compose(body);
    expect(1.3 * next.plan.total_tokens).toBeLessThanOrEqual(700);
    expect(1.3 * next.plan.total_tokens).toBeGreaterThan(650);
    // A repeated request has its own answer.
    expect(await app.compose({ ...body, request_id })).toMatchObject({ request_id, plan });
    const long = await app.send("POST", "/compose", { ...body, query: "word ".repeat(600) });
    expect(long.status).toBe(422);
    expect(long.text).toMatch(/come to 7[89]\d tokens without any memory, more than max_prompt_tokens, 700/);
    expect((await app.compose({ ...body, user_id: "bob" })).plan.total_tokens).toBe(plan.total_tokens);
    const other = app.memprefix.forTenant({ name: "other", cacheSecret: "s" });
    const theirs = await other.compose(readCompose(composeBody.parse(body)));
    expect(theirs.plan.totalTokens).toBe(plan.total_tokens);
  });
});
