import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MemoryClient } from "mem0ai";
import type { Memory } from "mem0ai/oss";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createMemprefix, type MemprefixClient } from "../../src/index.js";
import type { Composing } from "../../src/integrations/composing.js";
import { type Mem0, type Mem0Chat, withMemprefix } from "../../src/integrations/mem0.js";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/memory/embedded-store.js";
import { type AgentEngine, agentEngine } from "../clients/agent-engine.js";
import { answerTo } from "../clients/agent-model.js";
import { recordedBy } from "../clients/checked-prompts.js";
import { platformWith } from "../memory/mem0-platform.js";
import type { WireServer } from "../memory/mem0-wire-server.js";
import { remoteMemprefix } from "./remote-memprefix.js";

const NAMES = { userId: "ana", conversationId: "trip" };
const SYSTEM = "You plan trips. Be brief.";
const QUESTIONS = ["Where should a vegetarian eat tonight?", "And what can we do tomorrow?", "And after that?"];

let folder = "";
let engine: AgentEngine;
let openai: OpenAI;
const errors: unknown[] = [];
const onError = (error: unknown) => errors.push(error);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "memprefix-mem0-"));
  engine = await agentEngine();
  openai = new OpenAI({ apiKey: "the engine's", baseURL: engine.url });
  errors.length = 0;
});
afterEach(async () => {
  await engine.close();
  rmSync(folder, { recursive: true });
});

/** The loop of Mem0's users: a question, a prompt, an answer, and what is to be remembered of it. */
async function converse(chat: Pick<Mem0Chat<Mem0>, "prompt">): Promise<readonly string[]> {
  const history: OpenAI.ChatCompletionMessageParam[] = [];
  const answers: string[] = [];
  for (const question of QUESTIONS) {
    history.push({ role: "user", content: question });
    const { messages, remember } = await chat.prompt(history, NAMES);
    const headers = { "x-request-id": composedIds.at(-1) };
    const completion = await openai.chat.completions.create({ model: "any", messages }, { headers });
    await remember(completion);
    const answer = completion.choices[0]?.message.content ?? "";
    history.push({ role: "assistant", content: answer });
    answers.push(answer);
  }
  return answers;
}
const composedIds: string[] = [];
const onComposed = ({ requestId }: { readonly requestId: string }) => composedIds.push(requestId);

function brokenPrompts(): readonly string[] {
  const prompts = engine.served.map(({ asked }) => asked.prompt);
  return prompts.flatMap((prompt, at) => {
    const before = prompts[at - 1] ?? [];
    return before.every((part, n) => prompt[n] === part) ? [] : [`prompt ${at}`];
  });
}

describe("Mem0's own loop around Memory (mem0ai/oss)", () => {
  let store: EmbeddedStore;
  let memory: Memory;
  let memprefix: MemprefixClient;
  beforeEach(async () => {
    store = await openEmbeddedStore(folder);
    ({ memory } = store);
    const keep = (text: string, userId: string) =>
      memory.add([{ role: "user", content: text }], { userId, infer: false });
    await keep("Ana is vegetarian and eats no fish.", "ana");
    await keep("Bob is vegetarian, too.", "bob");
    memprefix = createMemprefix({ dataDir: join(folder, "memprefix"), source: { kind: "none" } });
  });
  afterEach(async () => {
    await memprefix.close();
    store.close();
  });

  it("prompts begin with those before, exchanges are remembered without memories, usage is reported", async () => {
    const search = vi.spyOn(memory, "search");
    const chat = withMemprefix(memory, {
      memprefix,
      onError,
      onComposed,
      system: SYSTEM,
      search: { topK: 4, threshold: 0 },
      add: { infer: false, metadata: { from: "chat" } },
    });
    expect(await converse(chat)).toEqual(QUESTIONS.map(answerTo));
    expect(errors).toEqual([]);
    expect(search.mock.calls[0]).toEqual([QUESTIONS[0], { topK: 4, threshold: 0, filters: { user_id: "ana" } }]);
    expect(brokenPrompts()).toEqual([]);
    const last = engine.served.at(-1)?.asked.prompt.join("\n") ?? "";
    expect(last.split("Ana is vegetarian and eats no fish.")).toHaveLength(2);
    expect(last).not.toContain("Bob");
    expect(await recordedBy(join(folder, "memprefix", "memprefix.db"), engine.served)).toEqual([]);
    const { results } = await memory.getAll({ filters: { user_id: "ana" }, topK: 100 });
    const kept = results.map((item) => item.memory);
    expect(kept.toSorted()).toEqual(
      ["Ana is vegetarian and eats no fish.", ...QUESTIONS, ...QUESTIONS.map(answerTo)].toSorted(),
    );
  });

  it("takes memories out of messages that are given back, as Mem0's README gives them back", async () => {
    const chat = withMemprefix(memory, { memprefix, onError });
    const { messages } = await chat.prompt("What does a vegetarian eat?", NAMES);
    expect(JSON.stringify(messages)).toContain("<memories>");
    const again = JSON.parse(JSON.stringify(messages)) as typeof messages;
    const parts = [{ type: "text", text: "<memories>\n- Ana is vegetarian and eats no fish.\n</memories>" }];
    await chat.add([...again, { role: "user", content: parts }, { role: "assistant", content: "Tofu." }], {
      userId: "eve",
      infer: false,
    });
    const { results } = await memory.getAll({ filters: { user_id: "eve" }, topK: 100 });
    expect(results.map((item) => item.memory).toSorted()).toEqual(["Tofu.", "What does a vegetarian eat?"]);
  });

  it("composes without memories where the search fails, and says so", async () => {
    vi.spyOn(memory, "search").mockRejectedValue(new Error("no vectors"));
    const chat = withMemprefix(memory, { memprefix, onError, system: SYSTEM });
    const { messages, memories } = await chat.prompt("Where to?", NAMES);
    expect(messages).toEqual([
      { role: "system", content: SYSTEM },
      { role: "user", content: "Where to?" },
    ]);
    expect(memories).toBeNull();
    expect(errors.map(String)).toEqual(["Error: no vectors"]);
  });

  it("gives the plain messages where memprefix fails, and what was found beside them", async () => {
    const compose = () => Promise.reject(new Error("no service"));
    const failing: Composing = { compose, feedback: (options) => memprefix.feedback(options) };
    const chat = withMemprefix(memory, { memprefix: failing, onError, add: { infer: false } });
    const asked = [{ role: "user", content: "What does a vegetarian eat?" }] as const;
    const { messages, memories, remember } = await chat.prompt(asked, NAMES);
    expect(messages).toEqual(asked);
    expect(memories).toMatchObject({ results: [{ memory: "Ana is vegetarian and eats no fish." }] });
    expect(errors.map(String)).toEqual(["Error: no service"]);
    await remember("Tofu.");
    const { results } = await memory.getAll({ filters: { user_id: "ana" }, topK: 100 });
    expect(results).toHaveLength(3);
  });

  it.each(["*", " ana", ""])("searches and adds nothing for a name that Mem0 takes for others': %j", async (userId) => {
    const [search, add] = [vi.spyOn(memory, "search"), vi.spyOn(memory, "add")];
    const chat = withMemprefix(memory, { memprefix, onError });
    const { messages, remember } = await chat.prompt("Vegetarian?", { userId });
    expect(JSON.stringify(messages)).not.toContain("vegetarian");
    expect(errors.length).toBeGreaterThan(0);
    await expect(remember("There.")).rejects.toThrow(TypeError);
    await expect(chat.add("I like trains.", { userId })).rejects.toThrow(TypeError);
    expect(search).not.toHaveBeenCalled();
    expect(add).not.toHaveBeenCalled();
  });

  it("is remembered as Mem0's add says: what fails rejects, what says nothing is not added", async () => {
    const add = vi.spyOn(memory, "add").mockRejectedValue(new Error("full"));
    const chat = withMemprefix(memory, { memprefix, onError });
    const { remember } = await chat.prompt("Where to?", NAMES);
    await expect(remember("There.")).rejects.toThrow("full");
    expect(await remember({ choices: [{ message: { content: null, tool_calls: [] } }] })).toBeNull();
    expect(add).toHaveBeenCalledTimes(1);
  });
});

describe.each(["in-process", "remote"])("Mem0's own loop around MemoryClient (mem0ai), memprefix %s", (place) => {
  let server: WireServer;
  let client: MemoryClient;
  let memprefix: Composing;
  let close: () => Promise<void>;
  beforeEach(async () => {
    ({ server, client } = await platformWith("Ana is vegetarian and eats no fish."));
    const dataDir = join(folder, "memprefix");
    if (place === "remote") ({ memprefix, close } = await remoteMemprefix(dataDir));
    else {
      const own = createMemprefix({ dataDir, source: client });
      memprefix = own;
      close = () => own.close();
    }
  });
  afterEach(async () => {
    await close();
    await server.close();
  });

  it("passes the search's options on, and adds plain exchanges", async () => {
    const chat = withMemprefix(client, {
      memprefix,
      onError,
      onComposed,
      search: { latestOnly: true, rerank: true, topK: 5, filters: { categories: { in: ["food"] } } },
      add: { metadata: { from: "chat" } },
    });
    expect(await converse(chat)).toEqual(QUESTIONS.map(answerTo));
    expect(errors).toEqual([]);
    expect(brokenPrompts()).toEqual([]);
    expect(await recordedBy(join(folder, "memprefix", "memprefix.db"), engine.served)).toEqual([]);
    const bodies = (path: string) => server.requests.filter((request) => request.path === path).map(({ body }) => body);
    expect(bodies("/v3/memories/search/")).toHaveLength(QUESTIONS.length);
    expect(bodies("/v3/memories/search/")[0]).toMatchObject({
      query: QUESTIONS[0],
      latest_only: true,
      rerank: true,
      top_k: 5,
      filters: { user_id: "ana", categories: { in: ["food"] } },
    });
    expect(bodies("/v3/memories/add/").slice(1)).toEqual(
      QUESTIONS.map((question) =>
        expect.objectContaining({
          messages: [
            { role: "user", content: question },
            { role: "assistant", content: answerTo(question) },
          ],
          user_id: "ana",
          metadata: { from: "chat" },
        }),
      ),
    );
    expect(engine.served[0]?.asked.prompt.join("\n")).toContain("Ana is vegetarian and eats no fish.");
  });
});

describe("an answer", () => {
  const client: Mem0 = { search: async () => ({ results: [] }), add: async (messages) => messages };
  const feedback = vi.fn(async () => {});
  const memprefix = { compose: async () => ({ requestId: "r1", messages: [] }) as never, feedback } satisfies Composing;
  const used = (of: string) => ({ [`${of}_tokens`]: 9, [`${of}_tokens_details`]: { cached_tokens: 4 } });
  const of = (name: string) => [
    { id: "1", memory: "His", [name]: "bob" },
    { id: "2", memory: "Hers", [name]: "ana" },
  ];

  it.each([
    ["a chat completion", { choices: [{ message: { content: "A." } }], usage: used("prompt") }],
    ["a response", { output_text: "A.", usage: used("input") }],
    [
      "a message of Anthropic's",
      {
        content: [
          { type: "thinking", thinking: "?" },
          { type: "text", text: "A." },
        ],
        usage: { input_tokens: 2, cache_read_input_tokens: 4, cache_creation_input_tokens: 3 },
      },
    ],
  ])("is read: %s", async (_kind, answer) => {
    feedback.mockClear();
    const { remember } = await withMemprefix(client, { memprefix }).prompt("Q?", NAMES);
    expect(await remember(answer)).toEqual([
      { role: "user", content: "Q?" },
      { role: "assistant", content: "A." },
    ]);
    expect(feedback).toHaveBeenCalledWith(
      expect.objectContaining({ requestId: "r1", promptTokens: 9, cachedTokens: 4 }),
    );
  });

  it.each([
    ["snake_case, in results", { results: of("user_id") }],
    ["camelCase, a list", of("userId")],
  ])("is found for its own user alone: %s", async (_kind, found) => {
    const careless: Mem0 = { ...client, search: async () => found };
    const { memories } = await withMemprefix(careless, { memprefix }).prompt("Q?", NAMES);
    expect(JSON.stringify(memories)).toContain("Hers");
    expect(JSON.stringify(memories)).not.toContain("His");
  });

  it("that is a text reports no usage", async () => {
    feedback.mockClear();
    const { remember } = await withMemprefix(client, { memprefix }).prompt("Q?", NAMES);
    await remember("A.");
    expect(feedback).not.toHaveBeenCalled();
  });
});
