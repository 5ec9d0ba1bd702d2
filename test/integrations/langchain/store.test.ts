import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Embeddings } from "@langchain/core/embeddings";
import { InMemoryStore } from "@langchain/langgraph";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createMemprefix, type MemprefixClient } from "../../../src/index.js";
import { type StoreSource, storeSource } from "../../../src/integrations/langgraph.js";
import { withDeadline } from "../../../src/memory/memory-source.js";
import { openOwnMem0 } from "../../../src/memory/own-mem0.js";
import { describeMemorySource } from "../../memory/memory-source.suite.js";

const DIMENSIONS = 1_024;

/** Texts are as near to each other as they share words. */
class SharedWords extends Embeddings {
  constructor() {
    super({});
  }
  async embedQuery(text: string): Promise<number[]> {
    const vector = new Array<number>(DIMENSIONS).fill(0);
    for (const word of text.toLowerCase().match(/\w+/g) ?? []) {
      const at = [...word].reduce((sum, unit) => (sum * 31 + unit.charCodeAt(0)) % DIMENSIONS, 7);
      vector[at] = (vector[at] ?? 0) + 1;
    }
    return vector;
  }
  async embedDocuments(texts: string[]): Promise<number[][]> {
    return Promise.all(texts.map((text) => this.embedQuery(text)));
  }
}

const newStore = () =>
  new InMemoryStore({ index: { dims: DIMENSIONS, embeddings: new SharedWords(), fields: ["text"] } });

describeMemorySource("LangGraph's store", {
  async open() {
    const store = newStore();
    const source = {
      ...storeSource(store, { namespace: ["memories", "{userId}", "{agentId}"] }),
      add: async (
        [said]: { content: string }[],
        { userId, agentId, metadata }: { userId: string; agentId?: string; metadata?: Record<string, unknown> },
      ) => {
        const namespace = ["memories", userId, ...(agentId === undefined ? [] : [agentId])];
        const key = randomUUID();
        await store.put(namespace, key, { ...metadata, text: said?.content });
        return [{ id: JSON.stringify([...namespace, key]), memory: said?.content }];
      },
      delete: async (id: string) => {
        const namespace: string[] = JSON.parse(id);
        await store.delete(namespace, namespace.pop() ?? "");
      },
    };
    return {
      source: withDeadline(openOwnMem0(source), { searchMs: 5_000, writeMs: 5_000 }),
      async dispose() {},
    };
  },
  withoutAgent: "all",
  skips: {
    "deletes nothing for an id that is none": "what it did not find itself it does not look up",
    "takes no odd id for another one": "LangGraph itself refuses periods and colons in labels",
    "forgets a user in all agents, and nobody else":
      "who the users are is the caller's matter: memprefix never asks for it",
  },
});

describe("LangGraph's store as the source of memprefix", () => {
  const DIET = ["memories", "ana"];
  const PLACE = { text: "Ana is in Lisbon this week.", topic: "travel", year: 2026 };
  let dataDir = "";
  let store: InMemoryStore;
  let source: StoreSource;
  let memprefix: MemprefixClient;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "memprefix-store-"));
    store = newStore();
    source = storeSource(store, { namespace: ["memories", "{userId}"] });
    memprefix = createMemprefix({ dataDir, source });
    await store.put(DIET, "diet", { text: "Ana is vegetarian.", topic: "food", year: 2024 });
    await store.put(DIET, "place", PLACE);
    await store.put(["memories", "anabel"], "diet", { text: "Anabel eats everything.", topic: "food" });
    await store.put(["profiles", "ana"], "name", { text: "Her name is Ana." });
  });
  afterEach(async () => {
    await memprefix.close();
    rmSync(dataDir, { recursive: true });
  });

  const failedWith = (error: string) => [
    { code: "memory_source_failed", message: expect.stringContaining(`its call failed with ${error};`) },
  ];
  const composed = async (query: string, more: object = {}) => {
    const { messages, warnings } = await memprefix.compose({ userId: "ana", query, ...more });
    return { prompt: JSON.stringify(messages), warnings };
  };

  it("gives a prompt the user's memories, the nearest first, and nobody else's", async () => {
    const { prompt, warnings } = await composed("Where is Ana this week?", { topK: 1 });
    expect(warnings).toEqual([]);
    expect(prompt).toContain(PLACE.text);
    expect(prompt).not.toContain("vegetarian");
    const { prompt: all } = await composed("Where should Ana eat?");
    expect(all).toContain("vegetarian");
    expect(all).not.toMatch(/Anabel|name is/);
  });

  it("gives a conversation what the application changed, and takes back what it deleted", async () => {
    const said: { role: "user" | "assistant"; content: string }[] = [];
    const say = async (content: string) => {
      said.push({ role: "user", content });
      const { messages } = await memprefix.compose({
        ...{ userId: "ana", conversationId: "trip", topK: 2 },
        ...{ messages: [...said], retention: "keep" },
      });
      said.push({ role: "assistant", content: "Indeed." });
      return String(messages.at(-1)?.content);
    };
    expect(await say("Where is Ana this week?")).toContain(PLACE.text);
    await store.put(DIET, "place", { ...PLACE, text: "Ana is in Porto this week." });
    expect(await say("And her hotel?")).toContain("</memories>\nUpdate: Ana is in Porto this week.");
    await store.delete(DIET, "place");
    await say("And now?");
    const { messages } = await memprefix.compose({
      ...{ userId: "ana", conversationId: "trip", retention: "keep" },
      messages: [...said, { role: "user", content: "And after that?" }],
    });
    expect(JSON.stringify(messages)).not.toContain("Porto");
  });

  it.each<[filters: object, found: string[]]>([
    [{ topic: "food" }, ["diet"]],
    [{ year: { gte: 2025 } }, ["place"]],
    [{ topic: { ne: "food" }, year: 2026 }, ["place"]],
  ])("filters by the fields of values: %j", async (filters, found) => {
    const items = await source.search("Ana", { filters: { user_id: "ana", ...filters }, topK: 10 });
    expect(items.map(({ id }) => JSON.parse(id).at(-1))).toEqual(found);
  });

  it.each<[what: string, request: object]>([
    ["OR", { filters: { OR: [{ topic: "food" }] } }],
    ["a list of values", { filters: { topic: ["food"] } }],
    ["another comparison", { filters: { topic: { contains: "food" } } }],
  ])("says that it cannot search by %s, rather than finding more than was asked for", async (_what, request) => {
    const { prompt, warnings } = await composed("What does Ana eat?", { search: request });
    expect(prompt).not.toContain("vegetarian");
    expect(warnings).toEqual(failedWith("UnsupportedSearchError"));
  });

  it("answers without memories, and one warning, for a user that LangGraph has no name for", async () => {
    const { messages, warnings } = await memprefix.compose({ userId: "ana@example.org", query: "What do I eat?" });
    expect(JSON.stringify(messages)).not.toContain("memories");
    expect(warnings).toEqual(failedWith("InvalidNamespaceError"));
  });

  it("gives nobody else's where a store finds what a user's name only begins with, as PostgresStore does", async () => {
    /** With the types of that store's options, too. */
    const byText = {
      search: async (_prefix: string[], options?: { query?: string; filter?: Record<string, string | number> }) =>
        (await store.search([], options ?? {})).filter(({ namespace }) =>
          namespace.join(".").startsWith("memories.ana"),
        ),
      get: async () => null,
    };
    expect(await byText.search([])).toHaveLength(3);
    const other = createMemprefix({
      dataDir: join(dataDir, "other"),
      source: storeSource(byText, { namespace: ["memories", "{userId}"] }),
    });
    const { messages } = await other.compose({ userId: "ana", query: "What does Ana eat?" });
    await other.close();
    expect(JSON.stringify(messages)).toContain("vegetarian");
    expect(JSON.stringify(messages)).not.toContain("Anabel");
  });

  it("takes the text from where it is", async () => {
    await store.put(["notes", "ana"], "n", { content: { said: "Ana plays chess." } });
    const notes = storeSource(store, {
      namespace: ["notes", "{userId}"],
      text: ({ content }) => (content as { said?: unknown }).said,
    });
    const found = await notes.search("chess", { filters: { user_id: "ana" }, topK: 10 });
    expect(found).toMatchObject([{ memory: "Ana plays chess.", user_id: "ana" }]);
  });

  it("is not made without a user's place", () => {
    expect(() => storeSource(store, { namespace: ["memories"] })).toThrow("must have one label {userId}");
  });

  it("searches nobody where the user's label stands behind an agent's that is not named", async () => {
    const behind = storeSource(store, { namespace: ["{agentId}", "{userId}"] });
    await expect(behind.search("Ana", { filters: { user_id: "ana" }, topK: 10 })).rejects.toThrow("no agent is named");
  });
});
