import { describe, expect, it } from "vitest";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { clientOf, errorOf, observedBy } from "./chat-client.js";
import { openAiEngine, openEvents, sendJson } from "./openai-engine.js";
import {
  answersResponses,
  eventsText,
  outputMessage,
  type ReceivedResponses,
  responseEvents,
  responseObject,
  usageOf,
} from "./responses-engine.js";

const TEA = "Ada drinks green tea";
const PARIS = "Ada lives in Paris";
const SECTION = `<memories>\n- ${TEA}\n- ${PARIS}\n</memories>`;

describe("OpenAI's own client, by the Responses API", () => {
  const engine = openAiEngine();
  const source = answeringSource([TEA, PARIS]);
  const app = servedApp({ source: () => source, upstream: engine });
  const received = (at: number) => JSON.parse(engine.requests[at]?.raw ?? "") as ReceivedResponses;

  it("gets the engine's answer to an input with the user's memories", async () => {
    engine.behave(answersResponses(() => "Green tea."));
    const { data, response } = await clientOf(app)
      .responses.create({ model: "stub-1", input: "Which tea?" })
      .withResponse();
    expect(data.output_text).toBe("Green tea.");
    expect(engine.requests[0]?.url).toBe("/v1/responses");
    expect(received(0)).toEqual({ model: "stub-1", input: `${SECTION}\n\nWhich tea?` });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-memprefix-request-id": expect.stringMatching(/^[\w-]{36}$/),
      "x-memprefix-expected-cached-tokens": "0",
      "x-memprefix-cached-tokens": "0",
      "x-request-id": "req_engine",
    });
    expect(app.log.at(-1)).toMatchObject({ route: "/v1/responses", status: 200, expectedCachedTokens: 0 });
    expect(await observedBy(app)).toMatchObject({ cachedTokens: 0 });
    expect(app.faults).toEqual([]);
  });

  it.each([
    ["once more", {}, 2],
    ["no second time, as it adds to a conversation,", { conversation: "conv_1" }, 1],
    ["no second time, as the engine may be at it,", { background: true }, 1],
  ])("sends a request %s where the engine closes a kept connection", async (_, fields, sends) => {
    const answers = answersResponses(() => "Green tea.");
    engine.behave(answers);
    const create = (more: object) => clientOf(app).responses.create({ model: "stub-1", input: "Which tea?", ...more });
    await create({});
    const before = engine.requests.length;
    engine.behave((request, response, usage) => {
      const isFirst = engine.requests.length === before + 1;
      return isFirst ? void response.destroy() : answers(request, response, usage);
    });
    if (sends === 2) await create(fields);
    else expect(await errorOf(create(fields))).toMatchObject({ status: 502, code: "upstream_unreachable" });
    expect(engine.requests).toHaveLength(before + sends);
    expect(app.faults).toEqual([]);
  });

  it("gets a stream byte for byte, unknown events too, wherever it is cut; its usage is learned", async () => {
    const item = outputMessage("msg_1", "Green tea, of course.");
    const text = eventsText(responseEvents(responseObject("resp_1", [item], usageOf(90, 16)), item));
    const bytes = Buffer.from(text);
    engine.behave(async (_request, response) => {
      openEvents(response);
      for (const byte of bytes) {
        response.write(Buffer.of(byte));
        if (byte === 0x0a) await new Promise(setImmediate);
      }
      response.end();
    });
    const asked = { model: "stub-1", input: "Which tea?", stream: true, user: "ada" };
    expect((await app.send("POST", "/v1/responses", asked)).text).toBe(text);
    expect(received(0)).toMatchObject({ stream: true });
    expect(received(0)).not.toHaveProperty("stream_options");
    expect(await observedBy(app)).toMatchObject({ promptTokens: 90, cachedTokens: 16, ttftMs: expect.any(Number) });
    const types: string[] = [];
    let output: unknown;
    // The client's helper, `responses.stream`, raises an event that it does not know.
    for await (const event of await clientOf(app).responses.create({ model: "m", input: "Tea?", stream: true })) {
      types.push(event.type);
      if (event.type === "response.completed") output = event.response.output;
    }
    expect(output).toMatchObject([{ id: "msg_1", content: [{ text: "Green tea, of course." }] }]);
    expect(types).toContain("response.of_a_later_version");
    expect(types).toContain("response.output_text.delta");
  });

  it("gets its own input to the engine where that cannot be composed", async () => {
    engine.behave(answersResponses());
    const endsWithAnswer = [
      { role: "user", content: "Tea?" },
      { role: "assistant", content: "Gre" },
    ];
    for (const input of [endsWithAnswer, [], { no: "list" }, 7, undefined, [null, 1, { type: 2 }]]) {
      const asked = { model: "stub-1", ...(input === undefined ? {} : { input }) };
      const { headers } = await sendWith(app, { "x-memprefix-user": "ada" }, "POST", "/v1/responses", asked);
      expect(headers.get("x-memprefix-not-composed")).toBe("messages");
      expect(JSON.parse(engine.requests.at(-1)?.raw ?? "")).toEqual(asked);
    }
    expect(app.faults).toEqual([]);
  });
});

describe("a response that is written back", () => {
  const engine = openAiEngine();
  const source = answeringSource([TEA]);
  const app = servedApp({ source: () => source, upstream: engine });

  it("is the question and the answer's text, streamed or not; a call is not", async () => {
    engine.behave(answersResponses(() => "Green."));
    const client = clientOf(app);
    const asked = { model: "stub-1", memprefix: { write_back: true } };
    await client.responses.create({ ...asked, input: "Which tea?" });
    for await (const _ of await client.responses.create({ ...asked, input: "Which now?", stream: true }));
    const call = { type: "function_call", id: "fc", call_id: "c", name: "brew", arguments: "{}", status: "completed" };
    engine.behave((_request, response) => sendJson(response, 200, responseObject("resp_c", [call], usageOf(9, 0))));
    await client.responses.create({ ...asked, input: "Brew." });
    await app.send("POST", "/compose", { user_id: "ada", query: "Is it kept?" });
    expect(source.added.map(({ text }) => text)).toEqual([
      "User: Which tea?\nAssistant: Green.",
      "User: Which now?\nAssistant: Green.",
    ]);
  });
});
