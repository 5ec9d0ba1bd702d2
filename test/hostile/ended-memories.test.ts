import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Scope } from "../../src/core/index.js";
import { openOwnMem0 } from "../../src/memory/own-mem0.js";
import { openRestMem0 } from "../../src/memory/rest-mem0.js";
import { type Composed, servedApp } from "../http/server/served-app.js";
import { restMem0Server, type ServedMemory } from "../memory/rest-mem0-server.js";
import { conversationOf, serve as serveAlone } from "./conversations.js";

/*
 * What Mem0 says no longer holds is not given as if it did: found, given by the caller, known from before, or said earlier in a conversation.
 */

const OLD = "Ada's dog is called Rex";
const NEW = "Ada's dog is called Bo";
const old = { id: "old", memory: OLD, user_id: "ada" };
const tea = { id: "tea", memory: "Ada drinks green tea", user_id: "ada" };
const NOON = Date.parse("2026-03-01T12:00:00Z");
const DAY_MS = 86_400_000;

/** How Mem0 says of a memory that it no longer holds; `test/memory/mem0-end.test.ts` has every way. */
const ENDED: readonly (readonly [string, object])[] = [
  ["superseded", { lifecycle_state: "superseded", replaced_by: "new" }],
  ["expired", { expiration_date: "2026-02-28" }],
  ["deleted, without its text", { event: "DELETE", memory: null }],
];

describe("a memory that no longer holds", () => {
  const mem0 = restMem0Server();
  const app = servedApp({
    source: () => openRestMem0({ url: mem0.url }),
    environment: { MEMPREFIX_RETENTION: "keep" },
  });
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOON });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const textOf = ({ messages }: Composed) => JSON.stringify(messages);
  const codesOf = ({ warnings }: Composed) => warnings.map(({ code, memory_ids }) => [code, memory_ids]);
  const serve = (...memories: ServedMemory[]) => serveAlone(mem0, ...memories);
  const conversation = (id: string) => conversationOf(app, id);

  it("is not given: found by a search, or given by the caller", async () => {
    for (const [what, more] of ENDED) {
      const ended = { ...old, ...more };
      serve(ended, tea);
      for (const given of [{}, { memories: [ended, tea] }, { memories: [ended, tea], top_k: 5 }]) {
        const answer = await app.compose({ user_id: "ada", query: "Which dog?", ...given });
        expect(textOf(answer), what).not.toContain(OLD);
        expect(textOf(answer), what).toContain(tea.memory);
        expect(codesOf(answer), what).toEqual([["memory_ended", ["old"]]]);
      }
    }
    serve({ ...old, expiration_date: "2026-03-01" });
    const lastDay = await app.compose({ user_id: "ada", query: "Which dog?" });
    expect(textOf(lastDay)).toContain(OLD);
    expect(lastDay.warnings).toEqual([]);
  });

  it("takes nobody's place in a search", async () => {
    const ended = Array.from({ length: 3 }, (_, n) => ({ ...old, id: `old ${n}`, lifecycle_state: "superseded" }));
    serve(...ended, tea, { ...tea, id: "dog", memory: NEW });
    for (const top_k of [1, 2, 3]) {
      const answer = await app.compose({ user_id: "ada", query: "Which dog?", top_k });
      expect(answer.blocks.map(({ memory_id: id }) => id)).toEqual(["tea", "dog"].slice(0, top_k));
      expect(textOf(answer)).not.toContain(OLD);
    }
    serve(...ended);
    expect((await app.compose({ user_id: "ada", query: "Which dog?", top_k: 2 })).blocks).toEqual([]);
  });

  it("costs no search where its source gives no more than it was asked for first", async () => {
    const ended = { ...old, is_deleted: true };
    const source = openOwnMem0({
      search: (_query, { topK }) => {
        if (topK > 2) throw new RangeError("top_k is at most 2");
        return { results: [ended, tea] };
      },
    });
    const scope = { tenant: "default", userId: "ada", agentId: null } as Scope;
    const found = await source.search({ scope, query: "Which dog?", topK: 2 }, new AbortController().signal);
    expect(found.map(({ id }) => id)).toEqual(["old", "tea"]);
  });

  it("is not given again from what is known: by carry-over, or while the source is down", async () => {
    for (const [what, more] of ENDED) {
      const ask = { user_id: `ada ${what}`, policy: "carry-over", memory_budget_tokens: 10_000 };
      const long = { ...tea, memory: `${tea.memory}. `.repeat(200) };
      await app.compose({ ...ask, query: "Which dog?", memories: [old, long] });
      expect(textOf(await app.compose({ ...ask, query: "Tea?", memories: [long] })), what).toContain(OLD);
      await app.compose({ ...ask, query: "Which dog?", memories: [{ ...old, ...more }, long] });
      expect(textOf(await app.compose({ ...ask, query: "Tea?", memories: [long] })), what).not.toContain(OLD);
      mem0.isDown = true;
      const known = await app.compose({ ...ask, query: "Is Ada's dog called Rex?" });
      expect(textOf(known), what).not.toContain(OLD);
      mem0.isDown = false;
    }
  });

  it("ends by the clock of the app, whether the source is asked again or not", async () => {
    const lasts = [{ expiration_date: "2026-03-02" }, { metadata: { expirationDate: "20260302" } }];
    for (const [at, more] of lasts.entries()) {
      const ask = { user_id: `ada ${at}`, query: "Is Ada's dog called Rex?" };
      vi.setSystemTime(NOON);
      mem0.isDown = false;
      serve({ ...old, ...more, user_id: ask.user_id });
      expect(textOf(await app.compose(ask))).toContain(OLD);
      mem0.isDown = true;
      vi.setSystemTime(NOON + 1.3 * DAY_MS);
      expect(textOf(await app.compose(ask)), "on its last day").toContain(OLD);
      vi.setSystemTime(NOON + 2 * DAY_MS);
      expect(textOf(await app.compose(ask)), "on the next").not.toContain(OLD);
    }
  });

  it("leaves the conversation that gave it from that turn on, without a word of it", async () => {
    for (const [what, more] of ENDED) {
      const say = conversation(what);
      await say("one", { memories: [old, tea] });
      const next = await say("two", { memories: [{ ...old, ...more }, tea] });
      expect(next.all, what).not.toMatch(/Rex|Update/);
      expect(next.all, what).toMatch(/"one.*To one.*green tea.*two/);
      expect(next.answer.plan, what).toMatchObject({ fresh_start: true, fresh_start_reason: "memory_forgotten" });
      const third = await say("three", { memories: [tea] });
      expect(third.answer.messages.slice(0, -2), what).toEqual(next.answer.messages);
      expect(third.answer.plan.fresh_start, what).toBe(false);
      const again = await say("four", { memories: [old, tea] });
      expect(again.last, what).toContain(`- ${OLD}\\n`);
      await say("five", { memories: [{ ...old, ...more }] });
    }
  });
});
