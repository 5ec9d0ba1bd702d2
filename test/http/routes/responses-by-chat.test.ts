import type OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { anthropicServer } from "./anthropic-server.js";
import { clientOf, errorOf, observedBy } from "./chat-client.js";
import {
  type Behaviour,
  eventOf,
  openAiEngine,
  openEvents,
  sendEvents,
  sendJson,
  streamedAnswer,
  wholeAnswer,
} from "./openai-engine.js";
import { eventsText, outputMessage, responseEvents, responseObject } from "./responses-engine.js";

const FACTS = ["Ada drinks green tea", "Ada lives in Paris"];
const USAGE = {
  prompt_tokens: 40,
  completion_tokens: 2,
  total_tokens: 42,
  prompt_tokens_details: { cached_tokens: 16 },
};
const CALL = { id: "call_1", type: "function" as const, function: { name: "brew", arguments: '{"tea":"green"}' } };
const BREW: OpenAI.Responses.Tool = { type: "function", name: "brew", parameters: { type: "object" }, strict: false };

/** An engine with chat completions only. */
const chatsOnly =
  (answer: (turn: number) => { text?: string; message?: object; choice?: object }): Behaviour =>
  ({ url, body }, response) => {
    if (url !== "/v1/chat/completions") return sendJson(response, 404, { detail: "Not Found" });
    const turn = body.messages.filter(({ role }) => role === "assistant").length;
    const { text = "", message = {}, choice = {} } = answer(turn);
    if (body.stream) return sendEvents(response, streamedAnswer(text, USAGE));
    return sendJson(response, 200, wholeAnswer(text, USAGE, message, choice));
  };

describe("the Responses API over an engine that has chat completions", () => {
  const engine = openAiEngine();
  const source = answeringSource(FACTS);
  const app = servedApp({ source: () => source, upstream: engine });
  const received = (at: number) => JSON.parse(engine.requests.at(at)?.raw ?? "") as { messages: object[] };

  it("is a chat with the same prompt as a chat's, and found out once", async () => {
    engine.behave(chatsOnly(() => ({ text: "Green tea." })));
    const asked = {
      model: "stub-1",
      instructions: "Be brief.",
      input: "Which tea?",
      max_output_tokens: 9,
      store: false,
    };
    const { data, response } = await clientOf(app)
      .responses.create({ ...asked, top_p: 0.5 })
      .withResponse();
    expect(data).toMatchObject({
      object: "response",
      status: "completed",
      instructions: "Be brief.",
      store: false,
      output_text: "Green tea.",
      usage: { input_tokens: 40, input_tokens_details: { cached_tokens: 16 }, output_tokens: 2, total_tokens: 42 },
    });
    expect(response.headers.get("x-memprefix-cached-tokens")).toBe("16");
    await clientOf(app, { "x-memprefix-user": "bob" }).responses.create(asked);
    expect(engine.requests.map(({ url }) => url)).toEqual([
      "/v1/responses",
      "/v1/chat/completions",
      "/v1/chat/completions",
    ]);
    const messages = [
      { role: "system" as const, content: "Be brief." },
      { role: "user" as const, content: "Which tea?" },
    ];
    await clientOf(app, { "x-memprefix-user": "eve" }).chat.completions.create({ model: "stub-1", messages });
    expect(received(1)).toEqual({ ...received(-1), max_tokens: 9, top_p: 0.5 });
    expect(await observedBy(app)).toMatchObject({ cachedTokens: 16, promptTokens: 40 });
  });

  it("streams the documented events", async () => {
    engine.behave(chatsOnly(() => ({ text: "Green tea, of course." })));
    const stream = clientOf(app).responses.stream({ model: "stub-1", input: "Which tea?" });
    const events: { type: string; sequence_number: number }[] = [];
    for await (const event of stream) events.push(event);
    expect(events.map(({ type }) => type.replace(/^response\./, ""))).toEqual([
      ...["created", "in_progress", "output_item.added", "content_part.added"],
      ...["output_text.delta", "output_text.delta", "output_text.delta", "output_text.delta", "output_text.done"],
      ...["content_part.done", "output_item.done", "completed"],
    ]);
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, at) => at));
    const { output, usage } = await stream.finalResponse();
    expect(output).toMatchObject([{ type: "message", content: [{ text: "Green tea, of course." }] }]);
    expect(usage).toMatchObject({ input_tokens: 40 });
    expect(await observedBy(app)).toMatchObject({ cachedTokens: 16, ttftMs: expect.any(Number) });
  });

  it("has calls, and goes on behind their output by the response's id", async () => {
    engine.behave(
      chatsOnly((turn) =>
        turn === 0
          ? { message: { content: null, tool_calls: [CALL] }, choice: { finish_reason: "tool_calls" } }
          : { text: "Done." },
      ),
    );
    const client = clientOf(app);
    const first = await client.responses.create({ model: "stub-1", input: "Brew.", tools: [BREW] });
    expect(first.output).toMatchObject([{ type: "function_call", call_id: "call_1", name: "brew" }]);
    expect(received(-1)).toMatchObject({ tools: [{ type: "function", function: { name: "brew" } }] });
    source.found = [];
    const output = { type: "function_call_output" as const, call_id: "call_1", output: "It brews." };
    const second = await client.responses.create({
      ...{ model: "stub-1", tools: [BREW] },
      input: [output],
      previous_response_id: first.id,
    });
    expect(second.output_text).toBe("Done.");
    expect(received(-1).messages).toEqual([
      { role: "user", content: expect.stringContaining("Brew.") },
      { role: "assistant", content: null, tool_calls: [CALL] },
      { role: "tool", tool_call_id: "call_1", content: "It brews." },
    ]);
    source.found = FACTS;
    // As the AI SDK names what it takes to be kept.
    const reference = { type: "item_reference" as const, id: first.output[0]?.id ?? "" };
    const input = [{ role: "user" as const, content: "Brew." }, reference, output];
    await client.responses.create({ model: "stub-1", input });
    expect(received(-1).messages.slice(1, 3)).toEqual([
      { role: "assistant", content: null, tool_calls: [CALL] },
      { role: "tool", tool_call_id: "call_1", content: "It brews." },
    ]);
    expect(app.faults).toEqual([]);
  });

  it("streams calls with their arguments", async () => {
    const pieces = [{ ...CALL, function: { name: "brew", arguments: "" } }, { function: { arguments: '{"tea":' } }];
    const last = { function: { arguments: '"green"}' } };
    engine.behave(({ url }, response) => {
      if (url !== "/v1/chat/completions") return sendJson(response, 405, { detail: "Method Not Allowed" });
      const chunks = [...pieces, last].map((call) => ({
        choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] } }],
      }));
      const thought = { choices: [{ index: 0, delta: { role: "assistant", reasoning_content: "Tea." } }] };
      sendEvents(response, [thought, ...chunks, { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }]);
    });
    const stream = clientOf(app).responses.stream({ model: "stub-1", input: "Brew.", tools: [BREW] });
    const deltas: string[] = [];
    stream.on("response.function_call_arguments.delta", ({ delta }) => deltas.push(delta));
    const { output } = await stream.finalResponse();
    expect(deltas).toEqual(['{"tea":', '"green"}']);
    expect(output).toMatchObject([
      { type: "reasoning", content: [{ text: "Tea." }] },
      { type: "function_call", call_id: "call_1", name: "brew", arguments: '{"tea":"green"}' },
    ]);
  });

  it("goes on by the response's id where a stream gave text after its call", async () => {
    engine.behave(({ url, body }, response) => {
      if (url !== "/v1/chat/completions") return sendJson(response, 404, { detail: "Not Found" });
      if (!body.stream) return sendJson(response, 200, wholeAnswer("Done.", USAGE));
      const deltas = [{ role: "assistant", tool_calls: [{ index: 0, ...CALL }] }, { content: "Wait." }];
      const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta }] }));
      sendEvents(response, [...chunks, { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }]);
    });
    const client = clientOf(app);
    const asked = { model: "stub-1", tools: [BREW] };
    const first = await client.responses.stream({ ...asked, input: "Brew." }).finalResponse();
    expect(first.output.map(({ type }) => type)).toEqual(["function_call", "message"]);
    source.found = [];
    const output = { type: "function_call_output" as const, call_id: "call_1", output: "It brews." };
    await client.responses.create({ ...asked, input: [output], previous_response_id: first.id });
    expect(received(-1).messages.slice(1)).toEqual([
      { role: "assistant", content: "Wait.", tool_calls: [CALL] },
      { role: "tool", tool_call_id: "call_1", content: "It brews." },
    ]);
    source.found = FACTS;
    expect(app.faults).toEqual([]);
  });

  it.each([
    ["composed", {}],
    ["bypassed", { "x-memprefix-bypass": "true" }],
  ])("has a conversation that memprefix keeps, from its first turn on: %s", async (_name, headers) => {
    engine.behave(chatsOnly((turn) => ({ text: `Answer ${turn}.` })));
    const client = clientOf(app, { "x-memprefix-user": "ada", ...headers });
    for (const input of ["One?", "Two?", "Three?"])
      await client.responses.create({ model: "stub-1", input, conversation: { id: "c1" } });
    const { messages, ...fields } = received(-1);
    expect(fields).not.toHaveProperty("conversation");
    const roles = messages.map((message) => (message as { readonly role: string }).role);
    expect(roles).toEqual(["user", "assistant", "user", "assistant", "user"]);
    expect(app.faults).toEqual([]);
  });

  it("rejects what no chat says, and a response that nobody knows; the engine's own 404 stays", async () => {
    engine.behave(chatsOnly(() => ({ text: "Indeed." })));
    const client = clientOf(app);
    const unknown = await errorOf(client.responses.create({ model: "m", input: "?", previous_response_id: "resp_x" }));
    expect([unknown.status, unknown.code]).toEqual([400, "previous_response_not_found"]);
    const tool = await errorOf(client.responses.create({ model: "m", input: "?", tools: [{ type: "web_search" }] }));
    expect([tool.status, tool.param]).toEqual([400, "tools"]);
    const prompt = await errorOf(client.responses.create({ model: "m", input: "?", prompt: { id: "pmpt_1" } }));
    expect([prompt.status, prompt.param]).toEqual([400, "prompt"]);
    const nobody = clientOf(app, { "x-memprefix-bypass": "true" });
    const conversation = await errorOf(nobody.responses.create({ model: "m", input: "?", conversation: "conv_1" }));
    expect([conversation.status, conversation.param]).toEqual([400, "conversation"]);
  });

  it("is asked for again where the engine says that a model is unknown", async () => {
    const error = { message: "The model `m` does not exist.", type: "NotFoundError", param: "model", code: 404 };
    engine.behave((_request, response) => sendJson(response, 404, { error }));
    for (const _ of [1, 2]) {
      const refused = await errorOf(clientOf(app).responses.create({ model: "m", input: "?" }));
      expect([refused.status, refused.param]).toEqual([404, "model"]);
    }
    expect(engine.requests.map(({ url }) => url)).toEqual(["/v1/responses", "/v1/responses"]);
  });

  it.each([true, false])(
    "ends the engine's call where its client leaves a stream (converted: %s)",
    async (converted) => {
      const item = outputMessage("msg_1", "Green tea.");
      const [chunk] = streamedAnswer("Green tea.", null);
      const begun = responseEvents(responseObject("resp_1", [item], {}), item).slice(0, 4);
      engine.behave(({ url }, response) => {
        if (url === "/v1/responses" && converted) return sendJson(response, 404, {});
        openEvents(response);
        response.write(converted ? eventOf(chunk ?? {}) : eventsText(begun));
      });
      const stream = await clientOf(app).responses.create({ model: "m", input: "?", stream: true });
      for await (const event of stream) if (event.type === "response.created") break;
      await engine.requests.at(-1)?.abandoned;
      expect(app.faults).toEqual([]);
    },
  );

  it("says so where the engine's stream ends before its answer", async () => {
    engine.behave(({ url }, response) => {
      if (url !== "/v1/chat/completions") return sendJson(response, 404, {});
      openEvents(response);
      response.end(streamedAnswer("Green tea.", null).slice(0, 2).map(eventOf).join(""));
    });
    const broken = await errorOf(
      (async () => {
        const stream = await clientOf(app).responses.create({ model: "m", input: "?", stream: true });
        for await (const _ of stream);
      })(),
    );
    expect(broken.message).toContain("broke off");
    expect(app.faults).toEqual([]);
  });
});

describe("the Responses API over Anthropic's", () => {
  const anthropic = anthropicServer();
  const app = servedApp({
    source: () => answeringSource(FACTS),
    upstream: anthropic,
    environment: { MEMPREFIX_UPSTREAM_API: "anthropic" },
  });

  it("is sent as /v1/messages at once, with its usage read", async () => {
    const asked = { model: "claude-opus-4-8", instructions: "Be brief.", input: "Which tea?" };
    const { data, response } = await clientOf(app).responses.create(asked).withResponse();
    expect(data.output_text).toBe("Green tea.");
    expect(data.usage).toMatchObject({ input_tokens: 2209, input_tokens_details: { cached_tokens: 2000 } });
    expect(anthropic.calls.map(({ url }) => url)).toEqual(["/v1/messages"]);
    expect(JSON.stringify(anthropic.calls[0]?.body)).toContain("cache_control");
    expect(response.headers.get("x-memprefix-cached-tokens")).toBe("2000");
    expect(await observedBy(app)).toMatchObject({ promptTokens: 2209, cachedTokens: 2000 });
    const stream = clientOf(app).responses.stream(asked);
    expect((await stream.finalResponse()).status).toBe("completed");
    expect(app.faults).toEqual([]);
  });
});
