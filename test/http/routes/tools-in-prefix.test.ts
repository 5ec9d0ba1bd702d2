import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { ApiName } from "../../../src/apis/api/api.js";
import { itemTexts } from "../../../src/apis/api/edited-json.js";
import { APIS } from "../../../src/apis/apis.js";
import { encodeO200k } from "../../../src/cli/o200k.js";
import { readSettings } from "../../../src/cli/settings.js";
import { SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import type { JsonObject } from "../../../src/core/text/json.js";
import { standIn } from "../../stand-in.js";
import { type ServedApp, servedApp, startApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { isLimitRequest, sendJson } from "./openai-engine.js";

/*
 * Tools are part of the prompt's prefix: the engine of these tests computes model, tools, instructions and messages in this order, as chat
 * templates write them.
 */

interface ToolEngine {
  url: string;
  readonly raws: string[];
  /** Prompt and cached tokens of each request. */
  readonly counts: { readonly prompt: number; readonly cached: number }[];
}

const called = z.looseObject({ model: z.string(), tools: z.array(z.looseObject({})).optional() });

/** Anthropic's marks are no part of the prompt. */
const withoutMarks = (tool: JsonObject) => ({ ...tool, cache_control: undefined });

function toolEngine(): ToolEngine {
  const engine: ToolEngine = { url: "", raws: [], counts: [] };
  beforeEach(async () => {
    engine.raws.length = 0;
    engine.counts.length = 0;
    const cache = new SimulatedCache("radix");
    const known = new Map<string, readonly number[]>();
    const encode = (text: string) => {
      const tokens = known.get(text) ?? encodeO200k(text);
      known.set(text, tokens);
      return tokens;
    };
    engine.url = `${await standIn(async (incoming, response) => {
      const raw = Buffer.concat(await incoming.toArray()).toString("utf8");
      if (isLimitRequest(incoming.headers)) return sendJson(response, 404, {});
      engine.raws.push(raw);
      const { model, tools = [], instructions, system, messages, input } = called.parse(JSON.parse(raw));
      const parts = [model, ...tools.map(withoutMarks), instructions ?? system ?? "", ...[messages ?? input].flat()];
      const prompt = parts.flatMap((part) => encode(typeof part === "string" ? part : JSON.stringify(part)));
      const counts = { prompt: prompt.length, cached: cache.serve(prompt) };
      engine.counts.push(counts);
      sendJson(response, 200, ANSWERS[apiOf(incoming.url ?? "")](counts));
    })}/v1`;
  });
  return engine;
}

const apiOf = (url: string): ApiName =>
  url.endsWith("/messages") ? "messages" : url.endsWith("/responses") ? "responses" : "chat";

const ANSWERS: Readonly<Record<ApiName, (counts: { prompt: number; cached: number }) => object>> = {
  chat: ({ prompt, cached }) => ({
    choices: [{ index: 0, message: { role: "assistant", content: "Indeed." }, finish_reason: "stop" }],
    usage: { prompt_tokens: prompt, completion_tokens: 2, prompt_tokens_details: { cached_tokens: cached } },
  }),
  messages: ({ prompt, cached }) => ({
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "Indeed." }],
    stop_reason: "end_turn",
    usage: {
      input_tokens: prompt - cached,
      cache_read_input_tokens: cached,
      cache_creation_input_tokens: 0,
      output_tokens: 2,
    },
  }),
  responses: ({ prompt, cached }) => ({
    object: "response",
    status: "completed",
    output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "Indeed." }] }],
    usage: { input_tokens: prompt, output_tokens: 2, input_tokens_details: { cached_tokens: cached } },
  }),
};

/** A tool's JSON in one API's form. Keys and the white space in it are the client's. */
const TOOL: Readonly<Record<ApiName, (name: string, schema: string) => string>> = {
  chat: (name, schema) =>
    `{"type":"function","function":{"name":"${name}","description":"Finds ${name}.","parameters":${schema}}}`,
  messages: (name, schema) => `{"name":"${name}","description":"Finds ${name}.","input_schema":${schema}}`,
  responses: (name, schema) =>
    `{"type":"function","name":"${name}","description":"Finds ${name}.","parameters":${schema}}`,
};

const SCHEMA = '{"type":"object","properties":{"place":{"type":"string"},"days":{"type":"integer"}}}';
const REORDERED = '{"properties":{"days":{"type":"integer"},"place":{"type":"string"}},"type":"object"}';
const INSTRUCTIONS = "You help Ada with what she asks, in few words, and say no more than you know. ".repeat(8).trim();

/** One conversation of a client that writes its bodies itself. */
class Client {
  readonly #said: object[] = [];

  constructor(
    private readonly app: Pick<ServedApp, "base">,
    private readonly api: ApiName,
    private readonly user = "ada",
  ) {}

  /** Asks with these tools, and keeps the answer. Gives what the headers say. */
  async ask(tools: readonly string[] | null, { model = "stub-1", answer = "Indeed." } = {}) {
    this.#said.push({ role: "user", content: `Question number ${this.#said.length}, of several words: what now?` });
    const said = JSON.stringify(this.#said).slice(1);
    const system = JSON.stringify(INSTRUCTIONS);
    const history = {
      chat: `"messages":[{"role":"system","content":${system}},${said}`,
      messages: `"system":${system},"max_tokens":9,"messages":[${said}`,
      responses: `"instructions":${system},"input":[${said}`,
    }[this.api];
    const listed = tools === null ? "" : `"tools":[${tools.join(", ")}],`;
    const response = await fetch(`${this.app.base}/v1/${APIS[this.api].path}`, {
      method: "POST",
      headers: { "x-memprefix-user": this.user, "x-memprefix-conversation": "c-1", connection: "close" },
      body: `{"model":"${model}",${listed}${history}}`,
    });
    expect(response.status, await response.clone().text()).toBe(200);
    await response.text();
    this.#said.push({ role: "assistant", content: answer });
    return {
      requestId: response.headers.get("x-memprefix-request-id") ?? "",
      expected: Number(response.headers.get("x-memprefix-expected-cached-tokens")),
    };
  }

  async explain(requestId: string): Promise<{ cause: string | null; words: string }> {
    const url = `${this.app.base}/requests/${requestId}/explain?user_id=${this.user}`;
    const explained = (await (await fetch(url)).json()) as { miss: { cause: string } | null; words: string[] };
    return { cause: explained.miss?.cause ?? null, words: explained.words.join(" ") };
  }
}

const APIS_TRIED = ["chat", "messages", "responses"] as const;
const sentTools = (raw: string | undefined) => itemTexts(raw ?? "", "tools");

describe.each(APIS_TRIED)("tools through %s", (api) => {
  const engine = toolEngine();
  const app = servedApp({ source: () => answeringSource(["Ada lives in Turin."]), upstream: engine });
  const tool = TOOL[api];
  const names = ["weather", "trains", "hotels", "notes"];
  const first = names.map((name) => tool(name, SCHEMA));

  it("are sent as they were first, in whatever order and with whatever order of keys they come", async () => {
    const client = new Client(app, api);
    await client.ask(first);
    const { expected, requestId } = await client.ask([...names].reverse().map((name) => tool(name, REORDERED)));
    expect(sentTools(engine.raws[1])).toEqual(first);
    expect(expected).toBeGreaterThan(100);
    expect(engine.counts[1]?.cached).toBe(engine.counts[0]?.prompt);
    expect(await client.explain(requestId)).toMatchObject({ cause: null });
  });

  it.each<[string, (tools: readonly string[]) => readonly string[] | null, string]>([
    ["one more", (tools) => [tool("maps", SCHEMA), ...tools], "added: maps"],
    ["one fewer", (tools) => tools.slice(1), "removed: weather"],
    ["another schema", (tools) => [...tools.slice(1), tool("weather", '{"type":"object"}')], "changed: weather"],
    ["none", () => null, "removed: weather, trains, hotels, notes"],
  ])("are a miss that is named with %s", async (_, changed, named) => {
    const client = new Client(app, api);
    await client.ask(first);
    await client.ask(first);
    const { expected, requestId } = await client.ask(changed(first));
    expect(expected).toBe(0);
    const { cause, words } = await client.explain(requestId);
    expect(cause).toBe("tools_changed");
    expect(words).toContain(named);
    // The ones before hit again.
    expect((await client.ask(first)).expected).toBeGreaterThan(100);
  });

  it("are a miss of another model", async () => {
    const client = new Client(app, api);
    await client.ask(first);
    const { expected, requestId } = await client.ask(first, { model: "stub-2" });
    expect(expected).toBe(0);
    expect(await client.explain(requestId)).toMatchObject({ cause: "model_changed" });
  });

  it("are each user's own, and outlive the service", async () => {
    await new Client(app, api, "eve").ask([...first].reverse());
    const client = new Client(app, api);
    await client.ask(first);
    const settings = readSettings({
      MEMPREFIX_DATA_DIR: app.dataDir,
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_UPSTREAM_URL: engine.url,
    });
    await app.memprefix.close();
    const again = await startApp(settings, null, { log: [], faults: [] });
    try {
      Object.assign(client, { app: again });
      await client.ask([...first].reverse());
      expect(sentTools(engine.raws.at(-1))).toEqual(first);
    } finally {
      await again.close();
    }
  });

  it("are computed once, in whatever order 40 of them come", async () => {
    const places = Array.from({ length: 40 }, (_, n) => n);
    const orders = fc.sample(fc.shuffledSubarray(places, { minLength: 40 }), { numRuns: 20, seed: 40 });
    const computed = async (user: string, orderOf: (turn: number) => readonly number[] | undefined) => {
      const client = new Client(app, api, user);
      const from = engine.counts.length;
      // Names of their own: the engine's cache is shared.
      for (let turn = 0; turn < 20; turn++)
        await client.ask((orderOf(turn) ?? []).map((n) => tool(`${user}_${n}`, SCHEMA)));
      return engine.counts.slice(from).reduce((sum, { prompt, cached }) => sum + prompt - cached, 0);
    };
    const stable = await computed("sam", () => orders[0]);
    const random = await computed("rob", (turn) => orders[turn]);
    expect(Math.abs(random / stable - 1)).toBeLessThanOrEqual(0.02);
    expect(stable).toBeLessThan(engine.counts.reduce((sum, { prompt }) => sum + prompt, 0) / 16);
  });

  it("keep numbers, repeated keys and escapes that no parser would", async () => {
    const odd = tool("od\\u0064", '{"n":12345678901234567890, "n":1.0,"t":"caf\\u00e9 \\/"}');
    const other = tool("other", '{"maximum":9007199254740993}');
    const client = new Client(app, api);
    await client.ask([odd, other]);
    await client.ask([other, odd]);
    expect(sentTools(engine.raws[1])).toEqual([odd, other]);
    const next = tool("other", '{"maximum":9007199254740992}');
    const { requestId } = await client.ask([next, odd]);
    expect(sentTools(engine.raws[2])).toEqual([odd, next]);
    expect((await client.explain(requestId)).words).toContain("changed: other");
  });
});

describe("tools with cache marks", () => {
  const engine = toolEngine();
  const app = servedApp({ source: () => answeringSource([]), upstream: engine });
  const MARK = '"cache_control":{"type":"ephemeral", "ttl":"1h"}';
  const marked = (json: string) => `${json.slice(0, -1)},${MARK}}`;
  const [weather, trains, hotels] = ["weather", "trains", "hotels"].map((name) => TOOL.messages(name, SCHEMA)) as [
    string,
    string,
    string,
  ];

  it("have the client's mark at the last one", async () => {
    const client = new Client(app, "messages");
    await client.ask([weather, trains, marked(hotels)]);
    await client.ask([hotels, trains, marked(weather)]);
    const maps = TOOL.messages("maps", SCHEMA);
    await client.ask([maps, hotels, marked(trains), weather]);
    expect(engine.raws.map(sentTools)).toEqual([
      [weather, trains, marked(hotels)],
      [weather, trains, marked(hotels)],
      [weather, trains, hotels, marked(maps)],
    ]);
  });
});

describe("tools as they come", () => {
  const engine = toolEngine();
  const environment = { MEMPREFIX_STABLE_TOOLS: "off" };
  const app = servedApp({ source: () => answeringSource([]), upstream: engine, environment });

  it("are sent byte for byte, and are a miss in another order", async () => {
    const client = new Client(app, "chat");
    const tools = ["weather", "trains"].map((name) => TOOL.chat(name, SCHEMA));
    await client.ask(tools);
    const { expected, requestId } = await client.ask([...tools].reverse());
    expect(sentTools(engine.raws[1])).toEqual([...tools].reverse());
    expect(expected).toBe(0);
    const { cause, words } = await client.explain(requestId);
    expect(cause).toBe("tools_changed");
    expect(words).toContain("another order");
  });
});

describe("tools of POST /compose", () => {
  const app = servedApp();
  const compose = (tools: readonly object[] | undefined, more: object = {}) =>
    app.compose({ user_id: "ada", conversation_id: "c-1", query: "What now?", memories: [], tools, ...more });
  const tools = ["weather", "trains"].map((name) => ({ name, input_schema: { type: "object" } }));

  it("are answered in the order to send them in, and none are without", async () => {
    expect((await compose(tools, { request_id: "r-1" })).tools).toEqual(tools);
    const { tools: sent } = await compose([...tools].reverse(), { request_id: "r-2" });
    expect(sent).toEqual(tools);
    // Repeated requests have the same answer.
    expect((await compose([...tools].reverse(), { request_id: "r-2" })).tools).toEqual(tools);
    expect(await compose(undefined)).not.toHaveProperty("tools");
  });

  it("are named where they changed", async () => {
    await compose(tools);
    const { plan } = await compose(tools.slice(1));
    expect(plan.tool_changes).toEqual({ added: [], removed: ["weather"], changed: [] });
  });

  it("are forgotten with the memory that they quote", async () => {
    const memory = "Ada hides the key under the third flower pot";
    const quoting = [{ name: "house", description: `Knows this: "${memory}".`, input_schema: {} }, ...tools];
    await compose(quoting, { memories: [{ id: "m-key", memory }], conversation_id: "c-2" });
    await compose(quoting);
    await app.send("DELETE", "/users/ada/memories/m-key");
    const { text } = await app.send("GET", "/users/ada/export");
    expect(text).not.toContain("flower pot");
    const reordered = [...quoting].reverse();
    expect((await compose(reordered)).tools).toEqual(reordered);
  });

  it("are refused where they are no objects", async () => {
    const { status, text } = await app.send("POST", "/compose", { user_id: "ada", query: "?", tools: ["weather"] });
    expect(status).toBe(422);
    expect(text).toContain("tools[0]");
  });
});
