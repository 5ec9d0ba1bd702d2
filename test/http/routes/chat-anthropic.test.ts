import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { streamFixture } from "../../engines/upstream/fixture.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { anthropicServer, sendAnthropic, streamAnthropic } from "./anthropic-server.js";
import { clientOf, errorOf, observedBy } from "./chat-client.js";

const TEA = "Ada drinks green tea";
const TOOL = { type: "function" as const, function: { name: "brew", parameters: { type: "object", properties: {} } } };
const EPHEMERAL = { type: "ephemeral" };

describe("OpenAI's own client, with Anthropic's API behind", () => {
  const anthropic = anthropicServer();
  const app = servedApp({
    source: () => answeringSource([TEA]),
    upstream: anthropic,
    environment: {
      MEMPREFIX_UPSTREAM_API: "anthropic",
    },
  });
  const client = (headers: Record<string, string> = {}) => clientOf(app, { "x-memprefix-user": "ada", ...headers });
  const ask = {
    model: "claude-opus-4-8",
    messages: [
      { role: "system" as const, content: "Be brief." },
      { role: "user" as const, content: "Which tea?" },
    ],
  };
  it("gets an answer to a prompt with the user's memories, sent as /v1/messages with marks and the key where it wants it", async () => {
    const asked = client().chat.completions.create({ ...ask, max_completion_tokens: 50, user: "u", tools: [TOOL] });
    const { data, response } = await asked.withResponse();
    expect(data.choices[0]).toMatchObject({ message: { content: "Green tea." }, finish_reason: "stop" });
    expect(data.usage).toMatchObject({ prompt_tokens: 2209, prompt_tokens_details: { cached_tokens: 2000 } });
    expect(data.usage).toMatchObject({ cache_creation_input_tokens: 188, cache_read_input_tokens: 2000 });
    const [call] = anthropic.calls;
    expect(call).toMatchObject({ method: "POST", url: "/v1/messages" });
    expect(call?.headers).toMatchObject({ "x-api-key": "sk-of-the-client", "anthropic-version": "2023-06-01" });
    expect(call?.headers.authorization).toBeUndefined();
    expect(call?.body).toMatchObject({ model: ask.model, max_tokens: 50, metadata: { user_id: "u" } });
    expect(call?.body["tools"]).toEqual([{ name: "brew", input_schema: TOOL.function.parameters }]);
    const said = JSON.stringify([call?.body.system, call?.body.messages]);
    for (const text of ["Be brief.", TEA, "Which tea?"]) expect(said).toContain(text);
    expect(said.match(/cache_control/g)?.length).toBeGreaterThanOrEqual(1);
    expect(response.headers.get("x-memprefix-cached-tokens")).toBe("2000");
    expect(response.headers.get("x-request-id")).toBe("req_018EeWyXxfu5pfWkrYcMdjWG");
    expect(await observedBy(app)).toMatchObject({ promptTokens: 2209, cachedTokens: 2000 });
  });

  it.each([true, false])(
    "gets a stream with a tool call, its usage where it asked for it (%s)",
    async (include_usage) => {
      const stream = await client().chat.completions.create({
        ...ask,
        stream: true,
        ...(include_usage ? { stream_options: { include_usage } } : {}),
      });
      let text = "";
      let called = "";
      const finished: unknown[] = [];
      const usages: unknown[] = [];
      for await (const { choices, usage } of stream) {
        const [choice] = choices;
        text += choice?.delta.content ?? "";
        called += choice?.delta.tool_calls?.[0]?.function?.arguments ?? "";
        if (choice?.finish_reason) finished.push(choice.finish_reason);
        if (usage) usages.push(usage);
      }
      expect(text).toBe("Okay, let");
      expect(JSON.parse(called)).toEqual({ location: "San Francisco, CA" });
      expect(finished).toEqual(["tool_calls"]);
      expect(usages).toHaveLength(include_usage ? 1 : 0);
      expect(anthropic.calls[0]?.body["stream"]).toBe(true);
      expect(anthropic.calls[0]?.body).not.toHaveProperty("stream_options");
      expect(await observedBy(app)).toEqual({ promptTokens: 2572, cachedTokens: 2000, ttftMs: expect.any(Number) });
    },
  );

  it("gets no usage where it asked for none", async () => {
    const stream_options = { include_usage: false };
    const stream = await client().chat.completions.create({ ...ask, stream: true, stream_options });
    for await (const { usage } of stream) expect(usage ?? null).toBeNull();
  });

  it.each([true, false])(
    "gets the end of a stream that gives no reason for it, with its usage or without (%s)",
    async (include_usage) => {
      const { events } = streamFixture("anthropic-stream");
      const unreasoned = events.filter((event) => (event as { readonly type: string }).type !== "message_delta");
      anthropic.behave((response) => streamAnthropic(response, unreasoned));
      const stream_options = { include_usage };
      const chunks: OpenAI.ChatCompletionChunk[] = [];
      for await (const chunk of await client().chat.completions.create({ ...ask, stream: true, stream_options }))
        chunks.push(chunk);
      const reasons = chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason: reason }) => reason ?? []));
      expect(reasons).toEqual(["tool_calls"]);
      expect(chunks.filter(({ usage }) => usage != null)).toHaveLength(include_usage ? 1 : 0);
    },
  );

  it("gets thinking beside the text, to send back", async () => {
    anthropic.behave((response) => streamAnthropic(response, streamFixture("anthropic-stream-thinking").events));
    const blocks: unknown[] = [];
    for await (const { choices } of await client().chat.completions.create({ ...ask, stream: true })) {
      const { anthropic_blocks: kept = [] } = (choices[0]?.delta ?? {}) as { anthropic_blocks?: unknown[] };
      blocks.push(...kept);
    }
    expect(blocks).toMatchObject([{ type: "thinking", thinking: "I need to find the GCD of 1071 and 462" }]);
    anthropic.behave((response) => sendAnthropic(response, 200, {}));
    const history = [...ask.messages, { role: "assistant" as const, content: "21.", anthropic_blocks: blocks }];
    await client().chat.completions.create({ ...ask, messages: [...history, { role: "user", content: "Sure?" }] });
    expect(anthropic.calls[1]?.body.messages[1]?.content[0]).toMatchObject({ type: "thinking" });
  });

  it("never sends more than four marks, those on its tools counted", async () => {
    const marked = (name: string) => ({ ...TOOL, function: { ...TOOL.function, name }, cache_control: EPHEMERAL });
    await client().chat.completions.create({ ...ask, tools: ["a", "b", "c"].map(marked) });
    const body = JSON.stringify(anthropic.calls[0]?.body);
    expect(body.match(/"cache_control"/g)).toHaveLength(4);
  });

  it.each([
    [400, "invalid_request_error", OpenAI.BadRequestError],
    [401, "authentication_error", OpenAI.AuthenticationError],
    [429, "rate_limit_error", OpenAI.RateLimitError],
    [529, "overloaded_error", OpenAI.InternalServerError],
  ])("gets an error %i in OpenAI's form, its headers with it", async (status, type, raised) => {
    const error = { type, message: "Says Anthropic." };
    anthropic.behave((response) => sendAnthropic(response, status, { type: "error", error }, { "retry-after": "7" }));
    for (const stream of [false, true]) {
      const got = await errorOf(client().chat.completions.create({ ...ask, stream }));
      expect(got).toBeInstanceOf(raised);
      expect(got).toMatchObject({ status, type, error: { message: "Says Anthropic.", param: null } });
      expect(got.headers?.get("retry-after")).toBe("7");
      expect(got.headers?.get("x-memprefix-error-origin")).toBe("upstream");
    }
    expect(app.faults).toEqual([]);
  });

  it("gets an error in the middle of a stream, and one where the stream ends before the message", async () => {
    const [start] = streamFixture("anthropic-stream").events;
    const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const read = async () => {
      for await (const _chunk of await client().chat.completions.create({ ...ask, stream: true }));
    };
    anthropic.behave((response) => streamAnthropic(response, [start, overloaded]));
    expect(await errorOf(read())).toMatchObject({ type: "overloaded_error", message: "Overloaded" });
    anthropic.behave((response) => streamAnthropic(response, [start]));
    expect(await errorOf(read())).toMatchObject({ code: "upstream_broken" });
    anthropic.behave((response) => {
      streamAnthropic(response, [start], false);
      setImmediate(() => response.destroy());
    });
    expect(await errorOf(read())).toMatchObject({ code: "upstream_broken" });
    expect(app.faults).toEqual([]);
  });

  it("that goes away in a stream ends the call", async () => {
    const events = streamFixture("anthropic-stream").events.slice(0, 3);
    anthropic.behave((response) => streamAnthropic(response, events, false));
    for await (const _chunk of await client().chat.completions.create({ ...ask, stream: true })) break;
    await anthropic.calls[0]?.abandoned;
  });

  it("gets what something in front of the API says as it says it", async () => {
    anthropic.behave((response) => response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad"));
    const exchange = await app.send("POST", "/v1/chat/completions", { ...ask, user: "ada" });
    expect(exchange).toEqual({ status: 502, contentType: "text/html", text: "<h1>Bad" });
  });

  it("leaves it to the API to refuse what is no chat", async () => {
    const error = { type: "invalid_request_error", message: "messages: Input should be a valid list" };
    anthropic.behave((response) => sendAnthropic(response, 400, { type: "error", error }));
    const body = { model: "claude-opus-4-8", messages: "Which?", user: "ada" };
    const { status, text } = await app.send("POST", "/v1/chat/completions", body);
    expect([status, (JSON.parse(text) as { error: object }).error]).toMatchObject([400, error]);
    expect(anthropic.calls[0]?.body).toEqual(body);
  });

  it("lists the models", async () => {
    const { data } = await client().models.list();
    expect(data).toMatchObject([
      { id: "claude-opus-4-8", object: "model", created: 1_739_923_200, owned_by: "anthropic" },
    ]);
    expect(anthropic.calls[0]).toMatchObject({ method: "GET", url: "/v1/models?limit=1000" });
    expect(anthropic.calls[0]?.headers).toMatchObject({ "x-api-key": "sk-of-the-client" });
  });

  it("may name Anthropic's version and key itself", async () => {
    const own = { "x-api-key": "sk-ant-own", "anthropic-version": "2099-01-01", "anthropic-beta": "b" };
    await client(own).chat.completions.create(ask);
    expect(anthropic.calls[0]?.headers).toMatchObject(own);
  });
});

describe("with a key of the service's own", () => {
  const anthropic = anthropicServer();
  const app = servedApp({
    upstream: anthropic,
    environment: {
      MEMPREFIX_UPSTREAM_API: "anthropic",
      MEMPREFIX_UPSTREAM_API_KEY: "sk-ant-of-the-service",
    },
  });

  it("Anthropic gets that one, whatever the client's is", async () => {
    const messages = [{ role: "user", content: "Which tea?" }];
    expect((await app.send("POST", "/v1/chat/completions", { messages, user: "ada" })).status).toBe(200);
    expect(anthropic.calls[0]?.headers).toMatchObject({ "x-api-key": "sk-ant-of-the-service" });
  });
});
