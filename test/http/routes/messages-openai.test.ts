import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { observedBy } from "./chat-client.js";
import { messagesClientOf, messagesErrorOf } from "./messages-client.js";
import {
  eventOf,
  openAiEngine,
  openEvents,
  sendEvents,
  sendJson,
  streamedAnswer,
  wholeAnswer,
} from "./openai-engine.js";

const TEA = "Ada drinks green tea";
const ASK = {
  model: "stub-1",
  max_tokens: 50,
  system: "Be brief.",
  messages: [{ role: "user" as const, content: "Which tea?" }],
};
const WEATHER = { name: "weather", description: "Now.", input_schema: { type: "object" as const, properties: {} } };
const CALL = { id: "call-1", type: "function", function: { name: "weather", arguments: '{"city":"Turin"}' } };

describe("Anthropic's own client, with OpenAI's API behind", () => {
  const engine = openAiEngine();
  const source = answeringSource([TEA]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: { MEMPREFIX_ENGINE_FAMILY: "vllm" },
  });
  const client = (headers: Record<string, string> = {}) =>
    messagesClientOf(app, { "x-memprefix-user": "ada", ...headers });

  it("gets an answer in its form, with the counts that the engine reported", async () => {
    const params = { ...ASK, stop_sequences: ["."], metadata: { user_id: "u" }, tools: [WEATHER] };
    const { data, response } = await client()
      .messages.create({ ...params, tool_choice: { type: "any", disable_parallel_tool_use: true } })
      .withResponse();
    expect(data).toMatchObject({ type: "message", role: "assistant", model: "stub-1", stop_reason: "end_turn" });
    expect(data.content).toEqual([{ type: "text", text: "Indeed." }]);
    const observed = await observedBy(app);
    expect(data.usage).toMatchObject({
      input_tokens: observed["promptTokens"],
      cache_read_input_tokens: 0,
      output_tokens: 2,
    });
    expect(response.headers.get("x-memprefix-cached-tokens")).toBe("0");
    const [request] = engine.requests;
    expect(request).toMatchObject({ method: "POST", url: "/v1/chat/completions" });
    expect(request?.headers.authorization).toBe("Bearer sk-ant-of-the-client");
    expect(Object.keys(request?.headers ?? {}).filter((name) => name.startsWith("anthropic-"))).toEqual([]);
    expect(JSON.parse(request?.raw ?? "")).toEqual({
      model: "stub-1",
      cache_salt: expect.any(String),
      request_id: expect.any(String),
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: `<memories>\n- ${TEA}\n</memories>\n\nWhich tea?` },
      ],
      max_tokens: 50,
      stop: ["."],
      user: "u",
      tools: [
        {
          type: "function",
          function: { name: "weather", description: "Now.", parameters: WEATHER.input_schema },
        },
      ],
      tool_choice: "required",
      parallel_tool_calls: false,
    });
  });

  it("gets a stream with thinking, text and a call as Anthropic's events", async () => {
    const delta = (given: object, finish_reason: string | null = null) => ({
      id: "chatcmpl-1",
      model: "stub-1",
      choices: [{ index: 0, delta: given, finish_reason }],
    });
    const piece = (args: string) => delta({ tool_calls: [{ index: 0, function: { arguments: args } }] });
    engine.behave((_request, response) =>
      sendEvents(response, [
        delta({ role: "assistant", content: "" }),
        delta({ reasoning_content: "Hm" }),
        delta({ reasoning_content: "m." }),
        delta({ content: "Let me " }),
        delta({ content: "look." }),
        delta({ tool_calls: [{ ...CALL, index: 0, function: { name: "weather", arguments: "" } }] }),
        piece('{"city":'),
        piece('"Turin"}'),
        delta({}, "tool_calls"),
        {
          choices: [],
          usage: { prompt_tokens: 60, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 48 } },
        },
      ]),
    );
    const stream = client().messages.stream({ ...ASK, tools: [WEATHER] });
    const types: string[] = [];
    stream.on("streamEvent", ({ type }) => types.push(type));
    const message = await stream.finalMessage();
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "Hmm." },
      { type: "text", text: "Let me look." },
      { type: "tool_use", id: "call-1", name: "weather", input: { city: "Turin" } },
    ]);
    expect(message).toMatchObject({ stop_reason: "tool_use", usage: { output_tokens: 9 } });
    expect(types.filter((type, at) => type !== types[at - 1])).toEqual([
      "message_start",
      ...["content_block_start", "content_block_delta", "content_block_stop"],
      ...["content_block_start", "content_block_delta", "content_block_stop"],
      ...["content_block_start", "content_block_delta", "content_block_stop"],
      ...["message_delta", "message_stop"],
    ]);
    expect(JSON.parse(engine.requests[0]?.raw ?? "")).toMatchObject({ stream_options: { include_usage: true } });
    expect(await observedBy(app)).toEqual({ promptTokens: 60, cachedTokens: 48, ttftMs: expect.any(Number) });
  });

  it("learns no counts from a stream that reports none", async () => {
    engine.behave((_request, response) => sendEvents(response, streamedAnswer("Green tea.", null)));
    const message = await client().messages.stream(ASK).finalMessage();
    expect(message.content).toEqual([{ type: "text", text: "Green tea." }]);
    expect(Object.keys(await observedBy(app))).toEqual(["ttftMs"]);
  });

  it.each([
    [{ created_cache_tokens: 128 }, {}, 128],
    [{ created_cache_tokens: 0 }, {}, 0],
    [{ created_cache_tokens: null, cached_tokens: null }, {}, null],
    [{ created_cache_tokens: 128, cached_tokens: null }, {}, 128],
    [{ cache_write_tokens: 128 }, {}, 128],
    [{ cache_creation_tokens: 128 }, {}, 128],
    [{ cache_creation_input_tokens: 128 }, {}, 128],
    [{}, { cache_creation_input_tokens: 128, cache_read_input_tokens: 48 }, 128],
  ])("gets what was written to the cache by its name there: %j beside %j", async (details, beside, written) => {
    const given: { readonly cached_tokens: number | null } = { cached_tokens: 48, ...details };
    const counts = { prompt_tokens: 200, completion_tokens: 2, total_tokens: 202, ...beside };
    const usage = { ...counts, prompt_tokens_details: given } as Parameters<typeof wholeAnswer>[1];
    engine.behave(({ url, body }, response) => {
      if (url === "/v1/responses") return sendJson(response, 404, { detail: "Not Found" });
      return body.stream
        ? sendEvents(response, streamedAnswer("Yes.", usage))
        : sendJson(response, 200, wholeAnswer("Yes.", usage));
    });
    const cached = given.cached_tokens;
    const counted = {
      input_tokens: 200 - (cached ?? 0) - (written ?? 0),
      cache_read_input_tokens: cached,
      cache_creation_input_tokens: written,
    };
    expect((await client().messages.create(ASK)).usage).toMatchObject(counted);
    // What is not known is null, which Anthropic's client leaves out of a stream's message.
    const known = Object.fromEntries(Object.entries(counted).filter(([, count]) => count !== null));
    expect((await client().messages.stream(ASK).finalMessage()).usage).toMatchObject(known);
    for (const stream of [false, true]) {
      const body = { model: "stub-1", input: "Which tea?", user: "ada", stream };
      const { text } = await app.send("POST", "/v1/responses", body);
      const last = JSON.parse(stream ? (/^data: (.*"response.completed".*)$/m.exec(text)?.[1] ?? "") : text);
      const read = (stream ? last.response : last).usage.input_tokens_details;
      expect(read.cache_write_tokens ?? null).toBe(written);
    }
  });

  it.each([
    { cached_tokens: 48 },
    { prompt_cache_hit_tokens: 48, prompt_cache_miss_tokens: 152 },
    { cached_tokens: 48, prompt_tokens_details: null },
    { cached_tokens: 48, prompt_tokens_details: { cached_tokens: null, audio_tokens: 0 } },
  ])("gets what was read from the cache where it stands beside the details: %j", async (beside) => {
    const usage = { prompt_tokens: 200, completion_tokens: 2, total_tokens: 202, ...beside } as unknown as Parameters<
      typeof wholeAnswer
    >[1];
    engine.behave(({ url, body }, response) => {
      if (url === "/v1/responses") return sendJson(response, 404, { detail: "Not Found" });
      return body.stream
        ? sendEvents(response, streamedAnswer("Yes.", usage))
        : sendJson(response, 200, wholeAnswer("Yes.", usage));
    });
    const counted = { input_tokens: 152, cache_read_input_tokens: 48 };
    expect((await client().messages.create(ASK)).usage).toMatchObject(counted);
    expect((await client().messages.stream(ASK).finalMessage()).usage).toMatchObject(counted);
    expect(await observedBy(app)).toMatchObject({ promptTokens: 200, cachedTokens: 48 });
    for (const stream of [false, true]) {
      const { text } = await app.send("POST", "/v1/responses", { model: "m", input: "Tea?", user: "ada", stream });
      expect(text).toMatch(/"input_tokens_details":\{[^}]*"cached_tokens":48/);
    }
  });

  it("goes through tools in two steps with a prefix that only grows, which the engine caches", async () => {
    const agent = client({ "x-memprefix-conversation": "kitchen" });
    const messages: Anthropic.MessageParam[] = [...ASK.messages];
    engine.behave((_request, response, usage) =>
      sendJson(
        response,
        200,
        engine.requests.length === 1
          ? wholeAnswer("", usage, { content: null, tool_calls: [CALL] }, { finish_reason: "tool_calls" })
          : wholeAnswer("Hot tea.", usage),
      ),
    );
    for (let step = 0; step < 3; step++) {
      const { content, stop_reason } = await agent.messages.create({ ...ASK, tools: [WEATHER], messages });
      messages.push({ role: "assistant", content });
      const call = content.find(({ type }) => type === "tool_use");
      expect(stop_reason).toBe(step === 0 ? "tool_use" : "end_turn");
      if (call?.type === "tool_use")
        messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "2 C" }] });
      else messages.push({ role: "user", content: "Sure?" });
    }
    const prompts = engine.requests.map(({ raw }) => (JSON.parse(raw) as { messages: unknown[] }).messages);
    expect(prompts[1]?.slice(0, 4)).toMatchObject([
      { role: "system" },
      { role: "user" },
      { role: "assistant", content: null, tool_calls: [CALL] },
      { role: "tool", tool_call_id: "call-1", content: "2 C" },
    ]);
    for (const [at, prompt] of prompts.entries()) {
      const before = prompts[at - 1] ?? [];
      expect(JSON.stringify(prompt.slice(0, before.length))).toBe(JSON.stringify(before));
    }
  });

  it.each([
    [400, "invalid_request_error", Anthropic.BadRequestError],
    [429, "rate_limit_error", Anthropic.RateLimitError],
    [500, "api_error", Anthropic.InternalServerError],
  ])("gets an error %i in Anthropic's form", async (status, type, raised) => {
    const error = { message: "Says the engine.", type: "its_own", code: "c" };
    engine.behave((_request, response) => sendJson(response, status, { error }, { "retry-after": "7" }));
    for (const stream of [false, true]) {
      const got = await messagesErrorOf(client().messages.create({ ...ASK, stream }));
      expect(got).toBeInstanceOf(raised);
      expect(got.error).toEqual({ type: "error", error: { ...error, type } });
      expect(got.headers?.get("retry-after")).toBe("7");
    }
  });

  it.each([
    [429, "rate_limit_error", { error: { message: "Says the engine.", code: 429 } }],
    [400, "invalid_request_error", { choices: [{ index: 0, error: { message: "Says the engine.", code: "400" } }] }],
    [502, "api_error", { error: { message: "Says the engine.", code: "server_error" } }],
    [502, "api_error", { id: "gen-1", error: "Says the engine." }],
  ])("gets a status of an error, %i, where its engine gave 200: %s", async (status, type, answer) => {
    engine.behave((_request, response) => sendJson(response, 200, answer));
    const got = await messagesErrorOf(client().messages.create(ASK));
    expect(got.status).toBe(status);
    expect(got.error).toMatchObject({ type: "error", error: { type, message: "Says the engine." } });
    expect(app.faults).toEqual([]);
  });

  it("gets an error in a stream, and one where the engine ends it before the answer's end", async () => {
    const [first = {}] = streamedAnswer("Green", null);
    const read = async () => {
      for await (const _event of await client().messages.create({ ...ASK, stream: true }));
    };
    engine.behave((_request, response) => {
      openEvents(response);
      response.end(eventOf(first) + eventOf({ error: { message: "Out of memory.", code: 500 } }));
    });
    expect((await messagesErrorOf(read())).error).toMatchObject({
      type: "error",
      error: { type: "api_error", message: "Out of memory." },
    });
    engine.behave((_request, response) => {
      openEvents(response);
      response.end(eventOf(first));
    });
    expect((await messagesErrorOf(read())).error).toMatchObject({
      error: { message: expect.stringContaining("broke off its answer") },
    });
    expect(app.faults).toEqual([]);
  });

  it("notices nothing of a prompt that was too long", async () => {
    const error = { message: "This model's maximum context length is 20 tokens", code: "context_length_exceeded" };
    engine.behave(({ raw }, response, usage) =>
      raw.includes(TEA) ? sendJson(response, 400, { error }) : sendJson(response, 200, wholeAnswer("Yes.", usage)),
    );
    const { content } = await client().messages.create(ASK);
    expect(content).toEqual([{ type: "text", text: "Yes." }]);
  });

  it("has tokens counted where the engine has Anthropic's route for that, without memories", async () => {
    const { max_tokens: _most, ...counted } = ASK;
    engine.behave((_request, response) => sendJson(response, 200, { input_tokens: 42 }));
    expect(await client({ "x-memprefix-user": "" }).messages.countTokens(counted)).toMatchObject({ input_tokens: 42 });
    const [request] = engine.requests;
    expect([request?.url, request?.headers.authorization]).toEqual([
      "/v1/messages/count_tokens",
      "Bearer sk-ant-of-the-client",
    ]);
    expect(JSON.parse(request?.raw ?? "")).toEqual(counted);
  });

  it("is told where the engine counts no tokens, which is found out once", async () => {
    const { max_tokens: _most, ...counted } = ASK;
    engine.behave((_request, response) => sendJson(response, 404, { detail: "Not Found" }));
    for (const _ of [1, 2]) {
      const error = await messagesErrorOf(client().messages.countTokens(counted));
      expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    }
    expect(engine.requests).toHaveLength(1);
  });
});
