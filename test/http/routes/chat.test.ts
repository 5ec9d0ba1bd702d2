import { describe, expect, it } from "vitest";
import { OpenApiDocument } from "../contracts/openapi-document.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf, observedBy } from "./chat-client.js";
import {
  MODELS,
  openAiEngine,
  openEvents,
  sendEvents,
  sendJson,
  streamedAnswer,
  wholeAnswer,
} from "./openai-engine.js";
import { storedExchanges, storedRows } from "./stored-rows.js";

const TEA = "Ada drinks green tea";
const PARIS = "Ada lives in Paris";
const SECTION = `<memories>\n- ${TEA}\n- ${PARIS}\n</memories>`;

async function chunksOf<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const chunks: T[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

describe("OpenAI's own client, with another base URL", () => {
  const engine = openAiEngine();
  const source = answeringSource([TEA, PARIS]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
  });

  it("gets the engine's answer to a prompt with the user's memories", async () => {
    engine.answers.push("Green tea.");
    const { data, response } = await clientOf(app).chat.completions.create(ask("Which tea?")).withResponse();
    expect(data.choices[0]?.message.content).toBe("Green tea.");
    expect(engine.requests[0]?.body.messages).toEqual([{ role: "user", content: `${SECTION}\n\nWhich tea?` }]);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-memprefix-request-id": expect.stringMatching(/^[\w-]{36}$/),
      "x-memprefix-expected-cached-tokens": "0",
      "x-memprefix-cached-tokens": "0",
      "x-request-id": "req_engine",
    });
    expect(response.headers.get("x-memprefix-warnings")).toBeNull();
    expect(app.log.at(-1)).toMatchObject({ route: "/v1/chat/completions", status: 200, expectedCachedTokens: 0 });
  });

  it("gets it byte for byte, unknown fields, tool calls and log probabilities included", async () => {
    const tool = { id: "call_1", type: "function" as const, function: { name: "brew", arguments: '{"tea":"green"}' } };
    const logprobs = { content: [{ token: "G", logprob: -0.31, bytes: [71], top_logprobs: [] }], refusal: null };
    let sent = "";
    engine.behave((_request, response, usage) => {
      const body = wholeAnswer(
        "",
        usage,
        { content: null, tool_calls: [tool] },
        { logprobs, finish_reason: "tool_calls" },
      );
      sent = JSON.stringify(body, null, 1);
      response.writeHead(200, { "content-type": "application/json", "openai-processing-ms": "7" }).end(sent);
    });
    const asked = { ...ask("Which tea?"), user: "ada" };
    const exchange = await app.send("POST", "/v1/chat/completions", asked);
    expect(exchange).toEqual({ status: 200, contentType: "application/json", text: sent });
    const { data, response } = await clientOf(app).chat.completions.create(ask("Which tea?")).withResponse();
    expect(data.choices[0]).toMatchObject({ message: { tool_calls: [tool] }, logprobs, finish_reason: "tool_calls" });
    expect(data).toMatchObject({ kv_transfer_params: { engine: "its own" } });
    expect(response.headers.get("openai-processing-ms")).toBe("7");
  });

  it("sends every field but messages and memprefix on as it is", async () => {
    const fields = {
      model: "stub-1",
      temperature: 0.5,
      tools: [{ type: "function", function: { name: "brew", parameters: { type: "object", properties: {} } } }],
      response_format: { type: "json_object" },
      stream: false,
      metadata: null,
      guided_json: { of: ["some engine"] },
      user: "someone",
    };
    const messages = [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "Which?" },
          { type: "image_url", image_url: { url: "data:," } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "function", function: { name: "brew", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c", content: "green" },
    ];
    const memprefix = { user_id: "ada", memories: [] };
    expect((await app.send("POST", "/v1/chat/completions", { ...fields, messages, memprefix })).status).toBe(200);
    expect(JSON.parse(engine.requests[0]?.raw ?? "")).toEqual({ ...fields, messages });
  });

  it("keeps its own headers: session, request id, key and organisation; memprefix's go no further", async () => {
    const headers = {
      "x-memprefix-user": "ada",
      "x-session-id": "s-1",
      "x-smg-routing-key": "k",
      "X-Dynamo-Session-ID": "d",
      "openai-organization": "org",
    };
    await clientOf(app, headers).chat.completions.create(ask("Which tea?"));
    await clientOf(app, { ...headers, "x-request-id": "mine" }).chat.completions.create(ask("Which tea?"));
    const [first, second] = engine.requests.map((request) => request.headers);
    expect(first).toMatchObject({
      "x-session-id": "s-1",
      "x-smg-routing-key": "k",
      "x-dynamo-session-id": "d",
      "openai-organization": "org",
      authorization: "Bearer sk-of-the-client",
      "x-request-id": expect.stringMatching(/^[\w-]{36}$/),
      host: new URL(engine.url).host,
    });
    expect(second).toMatchObject({ "x-request-id": "mine" });
    expect(Object.keys(first ?? {}).filter((name) => name.startsWith("x-memprefix"))).toEqual([]);
  });

  it("gets a stream as the engine sends it, chunk by chunk", async () => {
    let goOn: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    engine.behave(async (_request, response) => {
      const [opening, ...rest] = streamedAnswer("Green tea it is.", null);
      openEvents(response);
      response.write(`: a comment\n\ndata: ${JSON.stringify(opening)}\r\n\r\n`);
      response.write(`data: ${JSON.stringify(rest[0])}\n\n`);
      await held;
      for (const chunk of rest.slice(1)) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      response.end("data: [DONE]\n\n");
    });
    const stream = await clientOf(app).chat.completions.create({ ...ask("Which tea?"), stream: true });
    let text = "";
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      if (text === "Green") goOn();
    }
    expect(text).toBe("Green tea it is.");
  });

  it("gets every byte of a stream but the usage that it did not ask for, which is learned from", async () => {
    let sent = "";
    engine.behave((request, response, usage) => {
      expect(request.body.stream_options).toEqual({ include_usage: true });
      const chunks = streamedAnswer("Green tea.", usage);
      openEvents(response);
      const events = chunks.map((chunk) => `event: message\ndata: ${JSON.stringify(chunk)}\n\n`);
      sent = `${events.slice(0, -1).join("")}data: [DONE]\n\n`;
      const all = Buffer.from(`${events.join("")}data: [DONE]\n\n`);
      for (let at = 0; at < all.length; at += 7) response.write(all.subarray(at, at + 7));
      response.end();
    });
    const exchange = await app.send("POST", "/v1/chat/completions", {
      ...ask("Which tea?"),
      user: "ada",
      stream: true,
    });
    expect(exchange).toEqual({ status: 200, contentType: "text/event-stream; charset=utf-8", text: sent });
    expect(await observedBy(app)).toEqual({
      promptTokens: expect.any(Number),
      cachedTokens: 0,
      ttftMs: expect.any(Number),
    });
  });

  it.each([{ include_usage: true }, { include_usage: false }])(
    "gets the usage as it asked for it: %j",
    async (wanted) => {
      const stream = await clientOf(app).chat.completions.create({
        ...ask("Which tea?"),
        stream: true,
        stream_options: wanted,
      });
      const usages = [];
      for await (const { usage } of stream) if (usage) usages.push(usage);
      expect(usages).toHaveLength(wanted.include_usage ? 1 : 0);
      expect(engine.requests[0]?.body.stream_options).toEqual(wanted);
      expect(await observedBy(app)).toMatchObject(wanted.include_usage ? { cachedTokens: 0 } : {});
      expect((await observedBy(app))["ttftMs"]).toBeGreaterThan(0);
    },
  );

  it("waits for what others sent; of that only its own share is taken for what its prompt costs", async () => {
    const waiting: (() => void)[] = [];
    engine.behave(async (_request, response, usage) => {
      await new Promise<void>((served) => {
        waiting.push(served);
        // Both at once, some time after both are there.
        if (waiting.length === 2) setTimeout(() => waiting.map((one) => one()), 300);
      });
      sendEvents(response, streamedAnswer("Indeed.", usage));
    });
    const users = ["ada", "bob"];
    await Promise.all(
      users.map((user) =>
        app.send("POST", "/v1/chat/completions", { ...ask(`Which tea? ${"For me. ".repeat(50)}`), user, stream: true }),
      ),
    );
    const waits = () => storedExchanges(app.database).requests.map(({ observed }) => Number(observed?.["ttftMs"]));
    const taken = () =>
      (storedRows(app.database).get("prompts") ?? []).flatMap(({ sample_ms: ms }) => (ms === null ? [] : [Number(ms)]));
    // The first of the two may be no sample.
    await expect.poll(() => Math.min(...taken()) / Math.max(...waits())).toBeLessThan(0.75);
  });

  it("gets its stream of an engine that refuses to be asked for usage, which is asked only once", async () => {
    engine.behave((request, response) => {
      if (request.body.stream_options)
        return sendJson(response, 422, { detail: [{ loc: ["body", "stream_options"] }] });
      return sendEvents(response, streamedAnswer("Indeed.", null));
    });
    for (const question of ["One?", "Two?"]) {
      const stream = await clientOf(app).chat.completions.create({ ...ask(question), stream: true });
      expect((await chunksOf(stream)).length).toBeGreaterThan(1);
    }
    expect(engine.requests).toHaveLength(3);
  });

  it("gets streamed tool calls and their log probabilities untouched", async () => {
    const deltas = [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "brew", arguments: "" } }],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"tea":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '"green"}' } }] },
    ];
    const chunks = deltas.map((delta) => ({
      id: "c",
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: null }],
    }));
    engine.behave((_request, response) => sendEvents(response, chunks));
    const stream = await clientOf(app).chat.completions.create({ ...ask("Which tea?"), stream: true });
    expect(await chunksOf(stream)).toEqual(chunks);
    expect((await observedBy(app))["ttftMs"]).toBeGreaterThan(0);
  });

  it("leaves none of its words in the log", async () => {
    engine.answers.push("Green as grass.");
    await clientOf(app).chat.completions.create(ask("Which tea?"));
    engine.behave((_request, response) => sendJson(response, 500, { error: { message: `${TEA}, you said` } }));
    await clientOf(app)
      .chat.completions.create(ask("Which tea?"))
      .catch(() => {});
    const written = JSON.stringify([app.log, app.faults]);
    expect([TEA, "Which tea?", "grass", "sk-of"].filter((text) => written.includes(text))).toEqual([]);
    expect(app.log.map(({ status }) => status)).toEqual([200, 500]);
  });

  it("gets what the OpenAPI document says", async () => {
    const document = await OpenApiDocument.of(app);
    const path = "/v1/chat/completions";
    const body = { ...ask("Which tea?"), user: "ada", memprefix: { top_k: 3, write_back: null } };
    expect(document.accepts("ChatRequest", body)).toBe(true);
    expect(document.accepts("ChatRequest", { ...body, memprefix: { top_p: 3 } })).toBe(false);
    document.expectDocumented("post", path, await app.send("POST", path, body));
    document.expectDocumented("post", path, await app.send("POST", path, ask("Whose?")));
    document.expectDocumented("get", "/v1/models", await app.send("GET", "/v1/models"));
  });

  it("lists the engine's models", async () => {
    expect((await clientOf(app, {}).models.list()).data).toEqual(MODELS.data);
    expect(engine.requests[0]).toMatchObject({ method: "GET", url: "/v1/models", raw: "" });
    expect(engine.requests[0]?.headers.authorization).toBe("Bearer sk-of-the-client");
  });
});
