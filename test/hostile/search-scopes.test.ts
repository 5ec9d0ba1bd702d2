import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openEmbeddedMem0 } from "../../src/memory/embedded-mem0.js";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/memory/embedded-store.js";
import { openOwnMem0 } from "../../src/memory/own-mem0.js";
import { openRestMem0 } from "../../src/memory/rest-mem0.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { problemOf, type ServedApp, servedApp } from "../http/server/served-app.js";
import { restMem0Server } from "../memory/rest-mem0-server.js";

/*
 * Mem0's scopes and filters: what a search may be narrowed by, and what it never crosses.
 */

const general = { id: "general", memory: "Ada drinks green tea", user_id: "ada" };
const ofTrip = { id: "trip", memory: "Ada packs a tent", user_id: "ada", run_id: "trip" };
const ofWork = { id: "work", memory: "Ada files a report", user_id: "ada", runId: "work" };
const ofApp = { id: "app", memory: "Ada plays chess", user_id: "ada", app_id: "games" };
const ofBob = { id: "bob", memory: "Bob hides a key", user_id: "bob", run_id: "trip" };
const expired = { id: "expired", memory: "Ada is on leave", user_id: "ada", expiration_date: "2026-02-01" };
const ALL = [general, ofTrip, ofWork, ofApp, ofBob, expired];
const filters = {
  topic: "food",
  year: { gte: 2025, lt: 2027 },
  OR: [{ mood: { in: ["glad", "sad"] } }, { mood: "*" }],
};

/** A request, the filters that Mem0 gets, and what is found. */
const NARROWED: readonly (readonly [
  string,
  { search?: { show_expired?: boolean }; agent_id?: string },
  object,
  string[],
])[] = [
  ["finds none of any run's", {}, { user_id: "ada" }, ["general", "app"]],
  ["of an agent", { agent_id: "coach" }, { user_id: "ada", agent_id: "coach" }, ["general", "app"]],
  ["with conditions", { search: { filters } as object }, { user_id: "ada", ...filters }, ["general", "app"]],
  [
    "without some, as the platform's documentation has it",
    { search: { filters: { AND: [{ NOT: { topic: { in: ["spam"] } } }], NOT: { NOT: { mood: "sad" } } } } as object },
    { user_id: "ada", AND: [{ NOT: [{ topic: { in: ["spam"] } }] }], NOT: [{ NOT: [{ mood: "sad" }] }] },
    ["general", "app"],
  ],
  ["with none", { search: { filters: {}, show_expired: false } as object }, { user_id: "ada" }, ["general", "app"]],
  ["of what has expired, too", { search: { show_expired: true } }, { user_id: "ada" }, ["general", "app", "expired"]],
];

/** What is no option of a search, and the field that is named. */
const FILTERS = "search.filters";
const REFUSED: readonly (readonly [string, object, string])[] = [
  ["another user in a filter", { filters: { user_id: "bob" } }, "search.filters"],
  ["another user within OR", { filters: { OR: [{ topic: "food" }, { user_id: "bob" }] } }, "search.filters"],
  ["another agent within NOT within AND", { filters: { AND: [{ NOT: [{ agentId: "x" }] }] } }, "search.filters"],
  ["a run in a filter", { filters: { run_id: "trip" } }, "search.filters"],
  ["an application within metadata", { filters: { metadata: { app_id: "games" } } }, "search.filters"],
  ["a filter that is a list", { filters: [] }, "search.filters"],
  ["an unknown operator", { filters: { year: { $gt: 1 } } }, "search.filters"],
  ["another user behind NOT", { filters: { NOT: { user_id: "ada" } } }, "search.filters"],
  ["NOT of a text", { filters: { NOT: "topic" } }, "search.filters"],
  ["NUL in a condition", { filters: { topic: "\0" } }, "search.filters"],
  ["too many conditions", { filters: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [n, n])) }, FILTERS],
  ["conditions nested too deep", { filters: { OR: [{ OR: [{ OR: [{ OR: [{ OR: [{ a: 1 }] }] }] }] }] } }, FILTERS],
  ["another user", { user_id: "bob" }, "search.user_id"],
  ["an agent", { agent_id: "coach" }, "search.agent_id"],
  ["a run", { run_id: "trip" }, "search.run_id"],
  ["an application", { app_id: "games" }, "search.app_id"],
  ["a switch that is a text", { show_expired: "yes" }, "search.show_expired"],
  ["a day that is none", { reference_date: "2026-02-30" }, "search.reference_date"],
  ["a similarity beyond 1", { threshold: 2 }, "search.threshold"],
];

describe("a search", () => {
  const mem0 = restMem0Server();
  const engine = openAiEngine();
  const app = servedApp({ source: () => openRestMem0({ url: mem0.url }), upstream: engine });
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-03-01T12:00:00Z") });
    for (const memory of ALL) mem0.memories.set(memory.id, memory);
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const searches = () => mem0.requests.filter(({ path }) => path === "/search").map(({ body }) => body);
  const compose = (more: object) => app.compose({ user_id: "ada", query: "What?", ...more });

  it("finds what it is asked for, and nothing of another user, agent, run or application", async () => {
    for (const [what, asked, sent, found] of NARROWED) {
      mem0.requests.length = 0;
      const { blocks } = await compose(asked);
      expect(searches()[0]?.["filters"], what).toEqual(sent);
      expect(searches()[0]?.["show_expired"], what).toBe(asked.search?.show_expired || undefined);
      expect(blocks.map(({ memory_id }) => memory_id).sort(), what).toEqual([...found].sort());
    }
  });

  it("asks for more where memories of runs took the place of the others, once", async () => {
    const runs = Array.from({ length: 8 }, (_, n) => ({ ...ofTrip, id: `trip-${n}`, memory: `Trip ${n} went well.` }));
    mem0.memories.clear();
    for (const memory of [...runs, general, ofApp]) mem0.memories.set(memory.id, memory);
    const { blocks } = await compose({ top_k: 3 });
    expect(blocks.map(({ memory_id }) => memory_id).sort()).toEqual(["app", "general"]);
    expect(searches().map(({ top_k }) => top_k)).toEqual([3, 12]);
    await compose({ top_k: 20 });
    expect(searches()).toHaveLength(3);
  });

  it("that fails is not made up for with what a run or another condition gave", async () => {
    await compose({});
    await compose({ memories: [ofTrip, ofWork] });
    mem0.isDown = true;
    const known = async (more: object) =>
      (await compose({ query: "What of Ada?", ...more })).blocks.map(({ memory_id }) => memory_id).sort();
    expect(await known({})).toEqual(["app", "general"]);
    expect(await known({ search: { filters: { topic: "food" } } })).toEqual([]);
    mem0.isDown = false;
    // One that belongs to no run any more is anybody's.
    mem0.memories.set("trip", { id: ofTrip.id, memory: ofTrip.memory, user_id: "ada" });
    await compose({});
    mem0.isDown = true;
    expect(await known({})).toEqual(["app", "general", "trip"]);
  });

  it("does not carry over what another run gave", async () => {
    const ask = { policy: "carry-over", memory_budget_tokens: 10_000 };
    const long = { id: "long", memory: `${general.memory}. `.repeat(200), user_id: "ada" };
    for (const [memory, isCarried] of [
      [general, true],
      [ofTrip, false],
      [ofWork, false],
    ] as const) {
      const user = { ...ask, user_id: `user ${memory.id}` };
      await compose({ ...user, memories: [memory, long] });
      const { messages } = await compose({ ...user, query: "Tea?", memories: [long] });
      expect([memory.id, JSON.stringify(messages).includes(memory.memory)]).toEqual([memory.id, isCarried]);
    }
  });

  it("is narrowed from every door", async () => {
    const options = { show_expired: true, rerank: true, reference_date: "2026-02-27", threshold: 0.3 };
    const asked = { search: { filters: { topic: "food" }, ...options } };
    await app.send("POST", "/compose/batch", { requests: [{ user_id: "ada", query: "What?", ...asked }] });
    const messages = [{ role: "user", content: "What?" }];
    const chats: readonly (readonly [string, object])[] = [
      ["/v1/chat/completions", { messages }],
      ["/v1/messages", { messages, max_tokens: 9 }],
      ["/v1/responses", { input: "What?" }],
    ];
    for (const [path, body] of chats)
      await app.send("POST", path, { model: "m", ...body, memprefix: { user_id: "ada", ...asked } });
    expect(searches()).toHaveLength(4);
    for (const body of searches())
      expect(body).toMatchObject({ filters: { user_id: "ada", topic: "food" }, ...options });
  });

  it("is refused where it is narrowed by what is no filter", async () => {
    for (const [what, asked, field] of REFUSED) {
      const problem = problemOf(await app.send("POST", "/compose", { user_id: "ada", query: "What?", search: asked }));
      expect([problem.status, problem.errors?.[0]?.field], what).toEqual([422, field]);
      const chat = { messages: [{ role: "user", content: "What?" }], memprefix: { user_id: "ada", search: asked } };
      expect((await app.send("POST", "/v1/chat/completions", chat)).status, what).toBe(422);
    }
    expect(searches()).toEqual([]);
  });
});

describe("searches as they are configured", () => {
  const mem0 = restMem0Server();
  const app = servedApp({
    source: () => openRestMem0({ url: mem0.url }),
    environment: { MEMPREFIX_MEM0_SEARCH: '{"filters":{"topic":"food"},"rerank":true,"threshold":0.2}' },
  });
  const sent = async (asked: object) => {
    await app.compose({ user_id: "ada", query: "What?", ...asked });
    return mem0.requests.at(-1)?.body;
  };

  it("give way to what a request says, and their conditions apply beside its own", async () => {
    const configured = { query: "What?", top_k: 20, threshold: 0.2 };
    expect(await sent({})).toEqual({ ...configured, filters: { user_id: "ada", topic: "food" }, rerank: true });
    expect(await sent({ search: { filters: { year: 2026 }, show_expired: true, rerank: false } })).toEqual({
      ...configured,
      show_expired: true,
      filters: { user_id: "ada", year: 2026, topic: "food" },
    });
    expect(await sent({ search: { filters: { topic: "trip", OR: [{ a: 1 }] }, threshold: null } })).toMatchObject({
      filters: { OR: [{ a: 1 }], AND: [{ topic: "trip" }, { topic: "food" }] },
      threshold: 0.2,
    });
  });
});

/** What is found of Ada's drinks by a search with these conditions. */
async function expectDrinks(
  app: Pick<ServedApp, "compose">,
  known: readonly (readonly [filters: object, drinks: readonly string[]])[],
): Promise<void> {
  for (const [filters, drinks] of known) {
    const query = "What does Ada drink?";
    const { messages, warnings } = await app.compose({ user_id: "ada", query, search: { filters } });
    const found = [...JSON.stringify(messages).matchAll(/Ada drinks (\w+)/g)].map(([, drink]) => drink).sort();
    expect([filters, found, warnings]).toEqual([filters, drinks, []]);
  }
}

/** Three ways to say the same of the memories below. */
const CONFIGURED = [
  '{"visibility":"public","topic":{"ne":"work"}}',
  '{"visibility":"public","NOT":{"topic":"work"}}',
  '{"OR":[{"visibility":"public","topic":"food"},{"visibility":"public","topic":"trip"}]}',
];

describe.each(CONFIGURED)("before the embedded Mem0, the configured conditions %s", (configured) => {
  vi.setConfig({ testTimeout: 30_000 });
  const app = servedApp({
    source: (dataDir) => openEmbeddedMem0({ dataDir, threshold: 0 }),
    environment: { MEMPREFIX_MEM0_SEARCH: `{"filters":${configured}}`, MEMPREFIX_SEARCH_TIMEOUT_MS: "20000" },
  });
  const keep = async (memory: string, metadata: object) =>
    app.send("POST", "/memories", { user_id: "ada", memories: [memory], metadata });

  it("apply whatever a request says, beside what it says", async () => {
    await keep("Ada drinks tea", { visibility: "public", topic: "food" });
    await keep("Ada drinks beer", { visibility: "private", topic: "food" });
    await keep("Ada drinks milk", { topic: "food" });
    await keep("Ada drinks coffee", { visibility: "public", topic: "work" });
    await keep("Ada drinks juice", { visibility: "public", topic: "trip" });
    await expectDrinks(app, [
      [{}, ["juice", "tea"]],
      [{ visibility: "private" }, []],
      [{ topic: "food" }, ["tea"]],
      [{ OR: [{ topic: "trip" }, { topic: "work" }] }, ["juice"]],
      [{ visibility: { ne: "public" } }, []],
      [{ AND: [{ visibility: "private" }] }, []],
      [{ OR: [{ visibility: "private" }, { visibility: "public" }] }, ["juice", "tea"]],
      [{ NOT: [{ topic: "food" }] }, ["juice"]],
      [{ topic: "work" }, []],
    ]);
  });
});

describe("before a Mem0 that overlooks some, configured conditions", () => {
  vi.setConfig({ testTimeout: 30_000 });
  const configured = { visibility: "public", AND: [{ year: { gte: 2024 } }, { year: { lt: 2026 } }] };
  let store: EmbeddedStore;
  const app = servedApp({
    // The caller's own stands for any that memprefix does not own: each gets the same conditions.
    source: (dataDir) =>
      openOwnMem0({
        async search(query, options) {
          return (await opened(dataDir)).memory.search(query, { ...options, threshold: 0 });
        },
      }),
    environment: {
      MEMPREFIX_MEM0_SEARCH: JSON.stringify({ filters: configured }),
      MEMPREFIX_SEARCH_TIMEOUT_MS: "20000",
    },
  });
  const opened = async (directory: string) => {
    store ??= await openEmbeddedStore(directory);
    return store;
  };
  afterAll(() => store.close());

  it("apply to all that is found", async () => {
    const { memory } = await opened(app.dataDir);
    const keep = (drink: string, metadata: Record<string, unknown>) =>
      memory.add(`Ada drinks ${drink}`, { userId: "ada", infer: false, metadata });
    await keep("tea", { visibility: "public", year: 2024, topic: "food" });
    await keep("juice", { visibility: "public", year: 2025, topic: "trip" });
    await keep("beer", { visibility: "private", year: 2025, topic: "trip" });
    await keep("wine", { visibility: "public", year: 2023 });
    await keep("rum", { visibility: "public", year: 2026 });
    await keep("milk", {});
    await expectDrinks(app, [
      [{}, ["juice", "tea"]],
      [{ topic: "food" }, ["tea"]],
      [{ NOT: { topic: "food" } }, ["juice"]],
      [{ OR: [{ topic: "food" }, { topic: "trip" }] }, ["juice", "tea"]],
      [{ visibility: "private" }, []],
      [{ visibility: { ne: "public" } }, []],
      [{ AND: [{ visibility: { in: ["private", "public"] } }, { year: { gt: 2000 } }] }, ["juice", "tea"]],
      [{ year: 2026 }, []],
      [{ year: 2025 }, ["juice"]],
    ]);
  });
});
