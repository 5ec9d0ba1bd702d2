import { beforeEach, describe, expect, it, vi } from "vitest";
import { MemorySourceError, type MessageAddition } from "../../../src/memory/memory-source.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { openAiEngine } from "./openai-engine.js";

/** A source with a model: it makes one memory of each addition. */
function learningSource() {
  const additions: MessageAddition[] = [];
  const source = answeringSource([]);
  return Object.assign(source, {
    additions,
    addMessages: async (_scope: unknown, addition: MessageAddition) => {
      if (source.failure !== null) throw source.failure;
      additions.push(addition);
      return [{ id: `m-${additions.length}` as never, text: `fact ${additions.length}` }];
    },
  });
}

describe("exchanges that wait for the memory source", () => {
  const engine = openAiEngine();
  const source = learningSource();
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: { MEMPREFIX_WRITE_BACK: "on", MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: "http://127.0.0.1:1" },
  });
  beforeEach(() => {
    source.additions.length = 0;
    source.failure = null;
  });
  const exchange = (n: number) => [
    { role: "user", content: `Question ${n}?` },
    { role: "assistant", content: `Answer ${n}.` },
  ];
  const add = async (n: number, more: object = {}) => {
    const body = { user_id: "ana", conversation_id: "trip", messages: exchange(n), ...more };
    const { status, text } = await app.send("POST", "/memories", body);
    return { status, ...(JSON.parse(text) as { results: unknown[]; waiting: number }) };
  };
  const said = () => source.additions.map(({ messages }) => messages.map(({ content }) => content).join(" "));

  it("are added in twos, in order", async () => {
    expect(await add(1)).toEqual({ status: 202, results: [], waiting: 1 });
    expect(said()).toEqual([]);
    await add(2);
    await vi.waitFor(() => expect(said()).toHaveLength(1));
    expect(source.additions).toEqual([{ messages: [1, 2].flatMap(exchange) }]);
  });

  it("are added at once with `wait`, with those before them", async () => {
    await add(1);
    const body = { status: 201, results: [{ id: "m-1", memory: "fact 1" }], waiting: 0 };
    expect(await add(2, { wait: true })).toEqual(body);
    expect(said()).toEqual(["Question 1? Answer 1. Question 2? Answer 2."]);
  });

  it("wait in the queue of their run, or of their user and agent, without a conversation", async () => {
    for (const more of [{}, { agent_id: "coach" }, { run_id: "r" }, { conversation_id: "r" }])
      expect(await add(1, { conversation_id: null, ...more })).toMatchObject({ waiting: 1 });
    expect(await add(2, { conversation_id: null, run_id: "r", wait: true })).toMatchObject({ status: 201 });
    expect(source.additions).toEqual([{ messages: [1, 2].flatMap(exchange), runId: "r" }]);
  });

  it("are not put together without extraction, nor given what memprefix wrote", async () => {
    const messages = [
      { role: "user", content: "<memories>\n- Ana likes tea.\n</memories>\n\nWhich tea?" },
      ...exchange(1),
    ];
    await add(1, { messages, infer: false, metadata: { topic: "tea" }, wait: true });
    expect(source.additions).toEqual([
      { messages: [{ role: "user", content: "Which tea?" }, ...exchange(1)], infer: false, metadata: { topic: "tea" } },
    ]);
  });

  it.each<[object, string, string]>([
    [{ memories: ["x"] }, "memories", "either"],
    [{ messages: undefined }, "memories", "either"],
    [{ messages: undefined, memories: ["x"], wait: true }, "memories", "belong to messages"],
    [{ messages: [{ role: "system", content: "x" }] }, "messages[0].role", ""],
    [{ messages: [{ role: "user", content: 7 }] }, "messages[0].content", ""],
    [{ messages: [{ role: "user", content: "<memories>\n- x\n</memories>" }] }, "messages", "white space"],
    [{ messages: [] }, "messages", "white space"],
    [{ run_id: "" }, "run_id", "empty"],
  ])("are refused in another form: %j", async (more, field, message) => {
    const body = { user_id: "ana", conversation_id: undefined, messages: exchange(1), ...more };
    const { status, text } = await app.send("POST", "/memories", body);
    expect(status).toBe(422);
    expect(JSON.parse(text)).toMatchObject({
      errors: [{ field, message: expect.stringContaining(message) as string }],
    });
  });

  it("of the proxy wait as others do, or are added at once where no history says them", async () => {
    const chat = (messages: readonly object[], more: object = {}) =>
      app.send("POST", "/v1/chat/completions", { messages, user: "ana", ...more });
    const history: object[] = [];
    for (const n of [1, 2, 3, 4]) {
      history.push({ role: "user", content: `Question ${n}?` });
      engine.answers.push(`Answer ${n}.`);
      await chat(history, { memprefix: { conversation_id: "trip" } });
      history.push({ role: "assistant", content: `Answer ${n}.` });
      if (n === 3) await chat([{ role: "user", content: "Alone?" }]);
    }
    await vi.waitFor(() => expect(source.additions).toHaveLength(3));
    const metadata = { written_back: true };
    const alone = [
      { role: "user", content: "Alone?" },
      { role: "assistant", content: "Indeed." },
    ];
    expect(source.additions).toEqual([
      { messages: [1, 2].flatMap(exchange), metadata },
      { messages: alone, metadata },
      { messages: [3, 4].flatMap(exchange), metadata },
    ]);
  });

  it("are answered with 202 where Mem0 fails while one waits for it", async () => {
    source.failure = new MemorySourceError("answering", { kind: "unreachable", cause: "ECONNREFUSED" });
    expect(await add(1, { wait: true })).toEqual({ status: 202, results: [], waiting: 1 });
  });
});
