import { beforeEach, describe, expect, it } from "vitest";
import { type ChatMessage, messageText } from "../../../src/core/index.js";
import { messagesOf } from "../../../src/engines/responses/responses-request.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { clientOf, errorOf } from "./chat-client.js";
import { openAiEngine, sendJson } from "./openai-engine.js";
import {
  answersResponses,
  outputMessage,
  type ReceivedResponses,
  responseObject,
  usageOf,
} from "./responses-engine.js";

const FACTS = ["Ada drinks green tea", "Ada lives in Paris", "Ada sings"];
const QUESTIONS = ["Which tea?", "Which city?", "And tonight?", "And then?"];

const told = (items: unknown) =>
  (messagesOf(items) ?? []).map((message: ChatMessage) => [message.role, messageText(message)]);

describe("a client that continues a response by its id", () => {
  const engine = openAiEngine();
  const source = answeringSource(FACTS);
  const app = servedApp({ source: () => source, upstream: engine });
  const received = () => engine.requests.map(({ raw }) => JSON.parse(raw) as ReceivedResponses);
  /** Asks every question, each behind the response before; gives the responses' ids. */
  const askAll = async (user: string, more: object = {}) => {
    const client = clientOf(app, { "x-memprefix-user": user });
    const ids: string[] = [];
    for (const input of QUESTIONS) {
      source.found = FACTS.slice(0, 1 + ids.length);
      const previous = ids.length === 0 ? {} : { previous_response_id: ids.at(-1) ?? null };
      const stream = await client.responses.create({ model: "stub-1", input, ...previous, ...more, stream: true });
      for await (const event of stream) if (event.type === "response.completed") ids.push(event.response.id);
    }
    return ids;
  };
  /** What an engine is told by a client that sends everything each time, in a conversation that it names. */
  const wholeHistory = async () => {
    const client = clientOf(app, { "x-memprefix-user": "bob", "x-memprefix-conversation": "all" });
    const input: object[] = [];
    for (const [turn, content] of QUESTIONS.entries()) {
      source.found = FACTS.slice(0, 1 + turn);
      input.push({ role: "user", content });
      const { output } = await client.responses.create({ model: "stub-1", input: input as never, store: false });
      input.push(...output);
    }
    return told(received().at(-1)?.input);
  };

  it("sends what is new, with new memories only, where the engine keeps responses", async () => {
    engine.behave(answersResponses((turn) => `Answer ${turn % QUESTIONS.length}.`));
    const ids = await askAll("ada");
    const sent = received();
    expect(sent.map(({ previous_response_id: id }) => id)).toEqual([undefined, ...ids.slice(0, -1)]);
    expect(sent.map(({ input }) => told(input).length)).toEqual([1, 1, 1, 1]);
    for (const fact of FACTS) expect(JSON.stringify(sent).split(`- ${fact}`)).toHaveLength(2);
    const kept = sent.flatMap(({ input }, turn) => [...told(input), ["assistant", `Answer ${turn}.`]]).slice(0, -1);
    expect(kept).toEqual(await wholeHistory());
    expect(app.faults).toEqual([]);
  });

  it("gets its history from memprefix where the engine keeps none", async () => {
    const answers = answersResponses((turn) => `Answer ${turn % QUESTIONS.length}.`);
    engine.behave((request, response, usage) => {
      const { store: _store, ...asked } = JSON.parse(request.raw);
      answers({ ...request, raw: JSON.stringify({ ...asked, store: false }) }, response, usage);
    });
    await askAll("ada");
    const sent = received();
    expect(sent.map(({ previous_response_id: id }) => id)).toEqual([undefined, undefined, undefined, undefined]);
    expect(told(sent.at(-1)?.input)).toEqual(await wholeHistory());
  });

  it("passes without memories, and with all that was said, where it asks for that", async () => {
    const answers = answersResponses((turn) => `Answer ${turn}.`);
    engine.behave((request, response, usage) => {
      const asked = { ...(JSON.parse(request.raw) as object), store: false };
      answers({ ...request, raw: JSON.stringify(asked) }, response, usage);
    });
    const ask = async (headers: Record<string, string>, input: string, previous: string | null) => {
      const before = previous === null ? {} : { previous_response_id: previous };
      return (await clientOf(app, headers).responses.create({ model: "stub-1", input, ...before })).id;
    };
    source.found = FACTS;
    const ada = { "x-memprefix-user": "ada" };
    const first = await ask({ ...ada, "x-memprefix-bypass": "true" }, "One?", null);
    const second = await ask({ ...ada, "x-memprefix-bypass": "true" }, "Two?", first);
    expect(told(received()[1]?.input)).toEqual([
      ["user", "One?"],
      ["assistant", "Answer 0."],
      ["user", "Two?"],
    ]);
    await ask(ada, "Three?", second);
    expect(told(received()[2]?.input).map(([role]) => role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
      "user",
    ]);
    expect(JSON.stringify(received()[2])).toContain(FACTS[0]);
  });

  it("may continue one response twice, and one that another user has not at all", async () => {
    let turn = 0;
    engine.behave((_request, response) => {
      const item = outputMessage(`msg_${turn}`, `Answer ${turn}.`);
      sendJson(response, 200, responseObject(`resp_${turn++}`, [item], usageOf(9, 0), { store: false }));
    });
    const client = clientOf(app);
    const ask = (input: string, previous_response_id: string | null) =>
      client.responses.create({ model: "stub-1", input, previous_response_id });
    source.found = [];
    const first = await ask("One?", null);
    await ask("Two?", first.id);
    await ask("Other?", first.id);
    expect(told(received().at(-1)?.input)).toEqual([
      ["user", "One?"],
      ["assistant", "Answer 0."],
      ["user", "Other?"],
    ]);
    const eve = clientOf(app, { "x-memprefix-user": "eve" });
    await eve.responses.create({ model: "stub-1", input: "What was said?", previous_response_id: first.id });
    expect(received().at(-1)).toMatchObject({ input: "What was said?", previous_response_id: first.id });
    await app.send("DELETE", "/users/ada");
    await ask("And now?", first.id);
    expect(received().at(-1)).toMatchObject({ input: "And now?", previous_response_id: first.id });
    expect(app.faults).toEqual([]);
  });

  it("continues with a tool's output, behind which new memories stand", async () => {
    const call = { type: "function_call", id: "fc", call_id: "c", name: "where", arguments: "{}", status: "completed" };
    let turn = 0;
    engine.behave((_request, response) => {
      const output = turn === 0 ? call : outputMessage(`msg_${turn}`, "Done.");
      sendJson(response, 200, responseObject(`resp_${turn++}`, [output], usageOf(9, 0)));
    });
    const client = clientOf(app);
    source.found = FACTS.slice(0, 1);
    const first = await client.responses.create({ model: "stub-1", input: "Where?" });
    source.found = FACTS.slice(0, 2);
    const output = { type: "function_call_output" as const, call_id: "c", output: "Paris" };
    await client.responses.create({ model: "stub-1", input: [output], previous_response_id: first.id });
    expect(received()[1]).toEqual({
      model: "stub-1",
      previous_response_id: first.id,
      input: [output, { role: "user", content: expect.stringContaining(FACTS[1] ?? "") }],
    });
    expect(received()[1]?.input).toHaveLength(2);
  });

  it("is the engine's to judge where the response was not to be stored", async () => {
    engine.behave(answersResponses());
    const client = clientOf(app);
    const { id } = await client.responses.create({ model: "stub-1", input: "Which tea?", store: false });
    const refused = await errorOf(
      client.responses.create({ model: "stub-1", input: "Which city?", previous_response_id: id }),
    );
    expect([refused.status, refused.code]).toEqual([400, "previous_response_not_found"]);
    expect(received()[1]).toMatchObject({ previous_response_id: id });
  });

  it("keeps its memories in one conversation of the engine's", async () => {
    let turn = 0;
    engine.behave((_request, response) => {
      const item = outputMessage(`msg_${turn}`, "Indeed.");
      const fields = { conversation: { id: "conv_1" } };
      sendJson(response, 200, responseObject(`resp_${turn++}`, [item], usageOf(9, 0), fields));
    });
    await askAllInConversation();
    const sent = received();
    expect(sent.map(({ conversation }) => conversation)).toEqual(QUESTIONS.map(() => ({ id: "conv_1" })));
    expect(sent.map(({ input }) => told(input).length)).toEqual([1, 1, 1, 1]);
    for (const fact of FACTS) expect(JSON.stringify(sent).split(`- ${fact}`)).toHaveLength(2);
    expect(app.log.flatMap(({ warnings }) => warnings ?? [])).toEqual([]);
  });

  it("gives a conversation of nobody's to nobody: the body goes to the engine as it is", async () => {
    let turn = 0;
    engine.behave((_request, response) => {
      const item = outputMessage(`msg_${turn}`, "Indeed.");
      sendJson(response, 200, responseObject(`resp_${turn++}`, [item], usageOf(9, 0), { store: false }));
    });
    const bodies = ["The safe opens with 4821.", "What was said?"].map((input) => ({
      model: "stub-1",
      input,
      conversation: "support",
    }));
    for (const body of bodies) await clientOf(app, { "x-memprefix-bypass": "true" }).responses.create(body);
    expect(received()).toMatchObject(bodies);
    await clientOf(app, { "x-memprefix-user": "eve" }).responses.create(bodies[1] ?? expect.fail());
    expect(JSON.stringify(received().at(-1))).not.toContain("4821");
    expect(app.faults).toEqual([]);
  });

  const askAllInConversation = async () => {
    const client = clientOf(app);
    for (const [turn, input] of QUESTIONS.entries()) {
      source.found = FACTS.slice(0, 1 + turn);
      await client.responses.create({ model: "stub-1", input, conversation: { id: "conv_1" } });
    }
  };

  beforeEach(() => {
    source.found = FACTS;
  });
});
