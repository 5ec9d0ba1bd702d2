import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readSettings } from "../../../src/cli/settings.js";
import { digestOf, type RetrievedMemory, type Scope } from "../../../src/core/index.js";
import type { RequestLog } from "../../../src/http/requests/request.js";
import { openEmbeddedMem0 } from "../../../src/memory/embedded-mem0.js";
import type { MemorySource, NewMemory } from "../../../src/memory/memory-source.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { openAiEngine } from "../routes/openai-engine.js";
import { columnsHolding } from "../routes/stored-rows.js";
import { servedApp, startApp } from "../server/served-app.js";
import { type Caller, callerOf } from "./callers.js";

/** Keeps memories by everything that a scope has, with ids that count up in each; the order of adding is the order of a search. */
class ScopedMemories implements MemorySource {
  readonly name = "scoped";
  readonly owned = true;
  readonly #memories = new Map<string, { readonly user: string; memories: RetrievedMemory[]; added: number }>();

  async search({ scope, topK }: { readonly scope: Scope; readonly topK: number }) {
    return this.#of(scope).memories.slice(0, topK);
  }

  async add(scope: Scope, memories: readonly NewMemory[]) {
    const kept = this.#of(scope);
    const added = memories.map(({ text }) => ({ id: `s-${kept.added++}`, text }) as RetrievedMemory);
    kept.memories.push(...added);
    return added;
  }

  async delete(scope: Scope, id: string) {
    const kept = this.#of(scope);
    const before = kept.memories.length;
    kept.memories = kept.memories.filter((memory) => memory.id !== id);
    return kept.memories.length < before;
  }

  async deleteUser({ tenant, userId }: Pick<Scope, "tenant" | "userId">) {
    const user = JSON.stringify([tenant, userId]);
    for (const [key, kept] of this.#memories) if (kept.user === user) this.#memories.delete(key);
  }

  async list({ tenant, userId }: Pick<Scope, "tenant" | "userId">) {
    const user = JSON.stringify([tenant, userId]);
    const kept = [...this.#memories.values()].filter((entry) => entry.user === user);
    const nothing = { agentId: null, metadata: {}, createdAt: null, updatedAt: null };
    return kept.flatMap(({ memories }) => memories.map(({ id, text }) => ({ id, text, ...nothing })));
  }

  async close() {}

  #of({ tenant, userId, agentId }: Scope) {
    const key = JSON.stringify([tenant, userId, agentId]);
    const kept = this.#memories.get(key) ?? { user: JSON.stringify([tenant, userId]), memories: [], added: 0 };
    this.#memories.set(key, kept);
    return kept;
  }
}

/** A request whose ids are everybody's and whose texts are the tenant's own. */
type Request = (secret: string) => { readonly method: string; readonly path: string; readonly body?: unknown };

const user = fc.constantFrom("ada", "bob");
const agent = fc.constantFrom(undefined, "planner");
const requestId = fc.constantFrom("r-1", "r-2", "r-3", "r-4");
const memoryId = fc.constantFrom("m-1", "m-2", "m-3", "s-0");
const topics = fc.uniqueArray(fc.constantFrom("tea", "Rome", "dog", "chess", "rain"), { minLength: 1, maxLength: 5 });

const memoriesOf = (names: readonly string[], secret: string) =>
  names.map((topic, at) => ({ id: `m-${at + 1}`, memory: `${secret} and ${topic}` }));

const composeBody = fc
  .record({
    user,
    agent,
    requestId,
    topics: fc.option(topics),
    conversation: fc.constantFrom(undefined, "c"),
    turns: fc.integer({ min: 0, max: 2 }),
    policy: fc.constantFrom(undefined, "carry-over", "access-frequency", "knowledge-tree"),
    retention: fc.constantFrom(undefined, "auto", "volatile"),
  })
  .map((given) => (secret: string) => {
    const history = Array.from({ length: given.turns }, (_, at) => [
      { role: "user", content: `${secret}? ${at}` },
      { role: "assistant", content: `${secret}. ${at}` },
    ]).flat();
    return {
      user_id: given.user,
      agent_id: given.agent,
      request_id: given.requestId,
      conversation_id: given.conversation,
      system: `Be kind to ${secret}`,
      messages: [...history, { role: "user", content: `Where is ${secret}?` }],
      policy: given.policy,
      retention: given.retention,
      ...(given.topics === null ? {} : { memories: memoriesOf(given.topics, secret) }),
    };
  });

const query = (given: string | undefined) => (given === undefined ? "" : `agent_id=${given}`);

/** What prompts cost: every view, with ids that others have too, and with guesses of the numbers that pages are found by. */
const usageView = fc
  .record({
    view: fc.constantFrom("summary", "requests", "request"),
    user,
    agent,
    requestId,
    window: fc.constantFrom("hour", "month"),
    cause: fc.constantFrom(undefined, "unknown", "history_changed", "memories_changed"),
    isOfUser: fc.boolean(),
    page: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
  })
  .map(({ view, page, ...given }): Request => {
    const ofUser = { user_id: given.user, agent_id: given.agent };
    const cursor = page?.toString(36);
    const { window, cause, requestId: id, isOfUser } = given;
    const queries: Readonly<Record<string, Readonly<Record<string, string | undefined>>>> = {
      summary: { window },
      requests: { ...(isOfUser ? ofUser : {}), cause, cursor, limit: "3" },
      request: { ...ofUser, request_id: id },
    };
    const asked = Object.entries(queries[view] ?? {}).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${value}`],
    );
    return () => ({ method: "GET", path: `/usage/${view}?${asked.join("&")}` });
  });

const request: fc.Arbitrary<Request> = fc.oneof(
  { weight: 4, arbitrary: usageView },
  {
    weight: 6,
    arbitrary: fc.tuple(composeBody, fc.constantFrom(undefined, ["w-1", "w-2"])).map(
      ([of, workers]): Request =>
        (s) => ({ method: "POST", path: "/compose", body: { ...of(s), workers } }),
    ),
  },
  fc.tuple(fc.array(composeBody, { minLength: 1, maxLength: 3 }), fc.constantFrom(undefined, ["w-1", "w-2"])).map(
    ([bodies, workers]): Request =>
      (s) => ({ method: "POST", path: "/compose/batch", body: { requests: bodies.map((of) => of(s)), workers } }),
  ),
  fc.tuple(user, agent, topics).map(
    ([user_id, agent_id, names]): Request =>
      (s) => ({
        method: "POST",
        path: "/memories",
        body: { user_id, agent_id, memories: names.map((n) => `${s} ${n}`) },
      }),
  ),
  fc.array(requestId, { minLength: 1, maxLength: 4 }).map(
    (ids): Request =>
      () => ({ method: "POST", path: "/evict", body: { request_ids: ids } }),
  ),
  fc.tuple(user, agent, requestId, fc.nat({ max: 200 })).map(
    ([user_id, agent_id, request_id, cached_tokens]): Request =>
      () => ({
        method: "POST",
        path: "/feedback",
        body: { user_id, agent_id, request_id, cached_tokens, prompt_tokens: 200, ttft_ms: 5 },
      }),
  ),
  fc.tuple(user, agent, requestId).map(
    ([u, a, id]): Request =>
      () => ({ method: "GET", path: `/requests/${id}/explain?user_id=${u}${a === undefined ? "" : `&${query(a)}`}` }),
  ),
  fc.tuple(user, agent).map(
    ([u, a]): Request =>
      () => ({ method: "GET", path: `/memories?user_id=${u}${a === undefined ? "" : `&${query(a)}`}` }),
  ),
  user.map(
    (u): Request =>
      () => ({ method: "GET", path: `/users/${u}/export` }),
  ),
  user.map(
    (u): Request =>
      () => ({ method: "DELETE", path: `/users/${u}` }),
  ),
  fc.tuple(user, memoryId).map(
    ([u, id]): Request =>
      () => ({ method: "DELETE", path: `/users/${u}/memories/${id}` }),
  ),
  // Refused: what is wrong holds the secret.
  user.map(
    (u): Request =>
      (s) => ({ method: "POST", path: "/compose", body: { user_id: u, query: s, policy: s, [s]: 1, memories: [s] } }),
  ),
  fc.constant<Request>((s) => ({ method: "POST", path: "/compose", body: `{ "${s}": ` })),
  fc.constant<Request>((s) => ({ method: "GET", path: `/${encodeURIComponent(s)}` })),
);

/** What a service answered to each of its tenants, and everything else that came out of it. */
interface Outcome {
  readonly answers: readonly (readonly string[])[];
  readonly metrics: string;
  readonly log: string;
  readonly faults: readonly unknown[];
}

const newFolder = temporaryFolders();

/** Lets tenants work side by side on a service of their own: each sends its requests in order, all at the same time. */
async function work(days: readonly (readonly Request[])[], secrets: readonly string[]): Promise<Outcome> {
  const dataDir = newFolder();
  const log: RequestLog[] = [];
  const faults: unknown[] = [];
  const settings = readSettings({ MEMPREFIX_DATA_DIR: dataDir, MEMPREFIX_SOURCE: "none" });
  const app = await startApp(settings, new ScopedMemories(), { log, faults });
  try {
    const at = { base: app.base, database: join(dataDir, "memprefix.db") };
    const callers = secrets.map((secret) => callerOf(at, `tenant-${secret}`));
    const answers = await Promise.all(days.map((day, who) => dayOf(callers[who] as Caller, day, secrets[who] ?? "")));
    const metrics = (await callerOf(at, "operator").send("GET", "/metrics")).text;
    return { answers, metrics, log: JSON.stringify(log), faults };
  } finally {
    await app.close();
  }
}

async function dayOf({ send }: Caller, day: readonly Request[], secret: string): Promise<string[]> {
  const answers: string[] = [];
  for (const asked of day) {
    const { method, path, body } = asked(secret);
    const { status, text, headers } = await send(method, path, body);
    answers.push(`${status} ${JSON.stringify([...headers].filter(([name]) => name !== "date"))} ${text}`);
  }
  return answers;
}

describe("a tenant", () => {
  // Explanations say how long ago it was; only Date is held, not the timers.
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => void vi.useRealTimers());

  it("gets, byte for byte, what it would get alone, whatever others do with users and requests of the same names", async () => {
    const secrets = ["kingfisher", "marmalade", "zeppelin"];
    const day = fc.array(request, { minLength: 5, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(fc.tuple(day, day, day), async (days) => {
        const together = await work(days, secrets);
        expect(together.faults).toEqual([]);
        const outside = [together.metrics, together.log].join();
        for (const [who, own] of together.answers.entries()) {
          const secret = secrets[who] ?? "";
          expect((await work([days[who] ?? []], [secret])).answers).toEqual([own]);
          expect(own.join()).not.toMatch(new RegExp(secrets.filter((other) => other !== secret).join("|")));
          expect(outside).not.toContain(secret);
        }
      }),
      { numRuns: 8, seed: 20_261_121, endOnFailure: true },
    );
  });
});

describe("two tenants with users of the same name", () => {
  const engine = openAiEngine();
  const app = servedApp({
    source: (dataDir) => openEmbeddedMem0({ dataDir }),
    upstream: engine,
    environment: { MEMPREFIX_SOURCE: "embedded", MEMPREFIX_WRITE_BACK: "on" },
  });
  const ask = { user_id: "ada", query: "Where is the key?" };

  it("have memories of their own in the embedded Mem0, and forget only those", async () => {
    const [acme, other] = [callerOf(app, "acme"), callerOf(app, "other")];
    await acme.send("POST", "/memories", { user_id: "ada", memories: ["The key is under the kingfisher"] });
    await other.send("POST", "/memories", { user_id: "ada", memories: ["The key is in the marmalade"] });
    expect((await acme.send("POST", "/compose", ask)).text).toMatch(/^(?=.*kingfisher)(?!.*marmalade)/s);
    expect((await other.send("POST", "/compose", ask)).text).toMatch(/^(?=.*marmalade)(?!.*kingfisher)/s);
    const forgotten = await acme.send("DELETE", "/users/ada");
    expect(forgotten.status).toBe(200);
    expect((await acme.send("POST", "/compose", ask)).text).not.toContain("kingfisher");
    expect((await other.send("POST", "/compose", ask)).text).toContain("marmalade");
    expect(columnsHolding(app.database, "kingfisher")).toEqual([]);
  });

  it("share no cache of the engine's: other salts, which do not tell the tenant, and the same one at every request", async () => {
    const bodies = ["acme", "other", "acme"].map(async (tenant) => {
      const { send } = callerOf(app, tenant);
      const { text } = await send("POST", "/compose", { ...ask, engine: "vllm", memories: [] });
      const { text: openAi } = await send("POST", "/compose", { ...ask, engine: "openai", memories: [] });
      return [text, openAi].map((json) => JSON.parse(json).engine.fields as Record<string, string>);
    });
    const [first, second, again] = await Promise.all(bodies);
    expect(first?.[0]?.["cache_salt"]).toMatch(/^[\w-]{43}$/);
    expect(again?.[0]?.["cache_salt"]).toBe(first?.[0]?.["cache_salt"]);
    expect(again?.[1]?.["prompt_cache_key"]).toBe(first?.[1]?.["prompt_cache_key"]);
    expect(second?.[0]?.["cache_salt"]).not.toBe(first?.[0]?.["cache_salt"]);
    expect(second?.[1]?.["prompt_cache_key"]).not.toBe(first?.[1]?.["prompt_cache_key"]);
    expect(first?.[0]?.["cache_salt"]).not.toBe(digestOf(JSON.stringify(["memprefix tenant", "acme"])));
  });

  it("chat with nothing of each other's: in the prompt, in what is written back, in what is learned", async () => {
    const [acme, other] = [callerOf(app, "acme"), callerOf(app, "other")];
    const chat = (content: string) => ({ user: "ada", messages: [{ role: "user", content }] });
    engine.answers.push("Under the kingfisher.", "In the marmalade.");
    await acme.send("POST", "/v1/chat/completions", chat("Where is the key?"));
    await other.send("POST", "/v1/chat/completions", chat("Where is the key?"));
    await acme.send("POST", "/v1/chat/completions", chat("Where was the key?"));
    await other.send("POST", "/v1/chat/completions", chat("Where was the key?"));
    const [, , third, fourth] = engine.requests;
    expect(third?.raw).toMatch(/^(?=.*kingfisher)(?!.*marmalade)/s);
    expect(fourth?.raw).toMatch(/^(?=.*marmalade)(?!.*kingfisher)/s);
    expect(app.faults).toEqual([]);
  });

  it("share no cache of the engine's either where their messages are none that can be composed", async () => {
    const bodies = ["acme", "other", "acme"].map(async (tenant, at) => {
      const prefilled = [
        { role: "user", content: "Where is the key?" },
        { role: "assistant", content: `Under, ${at}` },
      ];
      const messages = at === 2 ? prefilled.slice(0, 1) : prefilled;
      const body = { messages, memprefix: { user_id: "ada", engine: "vllm", memories: [] } };
      const { headers } = await callerOf(app, tenant).send("POST", "/v1/chat/completions", body);
      expect(headers.get("x-memprefix-not-composed")).toBe(at === 2 ? null : "messages");
    });
    await Promise.all(bodies);
    const salts = engine.requests.map(({ raw }) => (JSON.parse(raw) as Record<string, unknown>)["cache_salt"]);
    expect(salts).toHaveLength(3);
    expect(new Set(salts).size).toBe(2);
    for (const salt of salts) expect(salt).toMatch(/^[\w-]{43}$/);
  });

  it("are planned for by the times that each reported itself", async () => {
    const [acme, other] = [callerOf(app, "acme"), callerOf(app, "default")];
    const cost = (uncached: number, cached: number) => 20 + uncached * 0.5 + (uncached * cached) / 10_000;
    for (let at = 1; at <= 80; at++) {
      const request_id = `r-${at}`;
      const [prompt_tokens, cached_tokens] = [500 + ((at * 613) % 4_000), (at * 37) % 400];
      await acme.send("POST", "/compose", { user_id: `u-${at % 8}`, request_id, query: "?", memories: [] });
      const ttft_ms = cost(prompt_tokens - cached_tokens, cached_tokens);
      const body = { user_id: `u-${at % 8}`, request_id, prompt_tokens, cached_tokens, ttft_ms };
      expect((await acme.send("POST", "/feedback", body)).status).toBe(200);
    }
    await other.send("POST", "/compose", { user_id: "u-1", query: "?", memories: [] });
    const law = (name: string) => app.memprefix.forTenant({ name, cacheSecret: name }).timeLaw();
    expect(await law("acme")).not.toBeNull();
    expect(await law("default")).toBeNull();
  });
});
