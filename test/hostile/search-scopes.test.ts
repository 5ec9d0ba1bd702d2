import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openOwnMem0 } from "../../src/memory/own-mem0.js";
import { openRestMem0 } from "../../src/memory/rest-mem0.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { type Composed, problemOf, servedApp } from "../http/server/served-app.js";
import { restMem0Server } from "../memory/rest-mem0-server.js";
import { user } from "../messages.js";
import { doorsOf } from "./api-forms.js";

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

interface Narrowed {
  readonly filters?: object;
  readonly show_expired?: boolean;
}

/** The options of a search, and the filters that Mem0 gets beside the user. */
const NARROWED: readonly (readonly [string, Narrowed, object])[] = [
  ["finds none of any run's", {}, {}],
  ["with conditions", { filters }, filters],
  [
    "without some, as the platform's documentation has it",
    { filters: { AND: [{ NOT: { topic: { in: ["spam"] } } }], NOT: { NOT: { mood: "sad" } } } },
    { AND: [{ NOT: [{ topic: { in: ["spam"] } }] }], NOT: [{ NOT: [{ mood: "sad" }] }] },
  ],
  ["with none", { filters: {}, show_expired: false }, {}],
  ["of what has expired, too", { show_expired: true }, {}],
];

/** What is no filter of a search. */
const NO_FILTERS: readonly (readonly [string, unknown])[] = [
  ["another user in a filter", { user_id: "bob" }],
  ["another user within OR", { OR: [{ topic: "food" }, { user_id: "bob" }] }],
  ["another agent within NOT within AND", { AND: [{ NOT: [{ agentId: "x" }] }] }],
  ["a run in a filter", { run_id: "trip" }],
  ["an application within metadata", { metadata: { app_id: "games" } }],
  ["a filter that is a list", []],
  ["an unknown operator", { year: { $gt: 1 } }],
  ["another user behind NOT", { NOT: { user_id: "ada" } }],
  ["NOT of a text", { NOT: "topic" }],
  ["NUL in a condition", { topic: "\0" }],
  ["too many conditions", Object.fromEntries(Array.from({ length: 101 }, (_, n) => [n, n]))],
  ["conditions nested too deep", { OR: [{ OR: [{ OR: [{ OR: [{ OR: [{ a: 1 }] }] }] }] }] }],
];
/** What is no option of a search, and the field that is named. */
const REFUSED: readonly (readonly [string, object, string])[] = [
  ...NO_FILTERS.map(([what, filters]) => [what, { filters }, "search.filters"] as const),
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
  const idsOf = (blocks: Composed["blocks"]) => blocks.map(({ memory_id }) => memory_id).sort();

  it("finds what it is asked for, and nothing of another user, agent, run or application", async () => {
    for (const agent_id of [undefined, "coach"])
      for (const [what, search, more] of NARROWED) {
        mem0.requests.length = 0;
        const { blocks } = await compose({ search, ...(agent_id && { agent_id }) });
        const found = ["app", ...(search.show_expired ? ["expired"] : []), "general"];
        expect(idsOf(blocks), what).toEqual(found);
        expect(searches()[0]?.["filters"], what).toEqual({ user_id: "ada", ...(agent_id && { agent_id }), ...more });
        expect(searches()[0]?.["show_expired"], what).toBe(search.show_expired || undefined);
      }
  });

  it("asks for more where memories of runs took the place of the others, once", async () => {
    const runs = Array.from({ length: 8 }, (_, n) => ({ ...ofTrip, id: `trip-${n}`, memory: `Trip ${n} went well.` }));
    mem0.memories.clear();
    for (const memory of [...runs, general, ofApp]) mem0.memories.set(memory.id, memory);
    const { blocks } = await compose({ top_k: 3 });
    expect(idsOf(blocks)).toEqual(["app", "general"]);
    expect(searches().map(({ top_k }) => top_k)).toEqual([3, 12]);
    await compose({ top_k: 20 });
    expect(searches()).toHaveLength(3);
  });

  it("that fails is not made up for with what a run or another condition gave", async () => {
    await compose({});
    await compose({ memories: [ofTrip, ofWork] });
    mem0.isDown = true;
    const known = async (more: object) => idsOf((await compose({ query: "What of Ada?", ...more })).blocks);
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
      const own = { ...ask, user_id: `user ${memory.id}` };
      await compose({ ...own, memories: [memory, long] });
      const { messages } = await compose({ ...own, query: "Tea?", memories: [long] });
      expect([memory.id, JSON.stringify(messages).includes(memory.memory)]).toEqual([memory.id, isCarried]);
    }
  });

  it("is narrowed from every door", async () => {
    const options = { show_expired: true, rerank: true, reference_date: "2026-02-27", threshold: 0.3 };
    const asked = { search: { filters: { topic: "food" }, ...options } };
    await app.send("POST", "/compose/batch", { requests: [{ user_id: "ada", query: "What?", ...asked }] });
    for (const [path, body] of doorsOf([user("What?")]))
      await app.send("POST", path, { ...body, memprefix: { user_id: "ada", ...asked } });
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

describe("before a Mem0 that overlooks them, configured conditions and those of a request", () => {
  const found = [
    ["tea", { visibility: "public", year: 2024, topic: "food" }],
    ["juice", { visibility: "public", year: 2025, topic: "trip" }],
    ["beer", { visibility: "private", year: 2025, topic: "trip" }],
    ["wine", { visibility: "public", year: 2023 }],
    ["rum", { visibility: "public", year: 2026 }],
    ["milk", {}],
  ].map(([drink, metadata]) => ({ id: `m-${drink}`, memory: `Ada drinks ${drink}`, metadata }));
  const configured = { visibility: "public", AND: [{ year: { gte: 2024 } }, { year: { lt: 2026 } }] };
  const app = servedApp({
    // The caller's own stands for any that memprefix does not own: each gets the same conditions.
    source: () => openOwnMem0({ search: () => ({ results: found }) }),
    environment: { MEMPREFIX_MEM0_SEARCH: JSON.stringify({ filters: configured }) },
  });

  it.each<[filters: object, drinks: readonly string[]]>([
    [{}, ["juice", "tea"]],
    [{ topic: "food" }, ["tea"]],
    [{ NOT: { topic: "food" } }, ["juice"]],
    [{ OR: [{ topic: "food" }, { topic: "trip" }] }, ["juice", "tea"]],
    [{ visibility: "private" }, []],
    [{ visibility: { ne: "public" } }, []],
    [{ OR: [{ visibility: "private" }, { visibility: "public" }] }, ["juice", "tea"]],
    [{ AND: [{ visibility: { in: ["private", "public"] } }, { year: { gt: 2000 } }] }, ["juice", "tea"]],
    [{ year: 2026 }, []],
    [{ year: 2025 }, ["juice"]],
  ])("apply to all that is found: %j", async (filters, drinks) => {
    const query = "What does Ada drink?";
    const { messages, warnings } = await app.compose({ user_id: "ada", query, search: { filters } });
    const given = [...JSON.stringify(messages).matchAll(/Ada drinks (\w+)/g)].map(([, drink]) => drink).sort();
    expect([given, warnings]).toEqual([drinks, []]);
  });
});
