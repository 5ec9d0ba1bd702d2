import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Scope } from "../../src/core/index.js";
import { openOwnMem0 } from "../../src/memory/own-mem0.js";
import { openRestMem0 } from "../../src/memory/rest-mem0.js";
import { type Composed, servedApp } from "../http/server/served-app.js";
import { restMem0Server } from "../memory/rest-mem0-server.js";

/*
 * What Mem0 says no longer holds is not given as if it did: found, given by the caller, known from before, or said earlier in a conversation.
 */

const OLD = "Ada's dog is called Rex";
const NEW = "Ada's dog is called Bo";
const old = { id: "old", memory: OLD, user_id: "ada" };
const tea = { id: "tea", memory: "Ada drinks green tea", user_id: "ada" };
const NOON = Date.parse("2026-03-01T12:00:00Z");
const DAY_MS = 86_400_000;

/** How Mem0 says of a memory that it no longer holds. */
const ENDED: readonly (readonly [string, object])[] = [
  ["superseded, by its platform", { lifecycle_state: "superseded", replaced_by: "new" }],
  ["superseded, by its SDK", { lifecycleState: "superseded", replacedBy: "new" }],
  ["replaced, without a state", { replaced_by: "elsewhere" }],
  ["superseded by a list", { superseded_by: ["new"] }],
  ["archived", { lifecycle_state: "archived" }],
  ["deleted, in capitals", { lifecycle_state: "DELETED" }],
  ["expired by its state", { lifecycleState: "expired" }],
  ["paused in OpenMemory", { state: "paused" }],
  ["expired yesterday", { expiration_date: "2026-02-28" }],
  ["expired yesterday, by the SDK", { expirationDate: "2026-02-28" }],
  ["expired, as mem0ai/oss says it", { metadata: { expiration_date: "2026-02-28" } }],
  ["valid until an hour ago", { valid_until: "2026-03-01T11:00:00Z" }],
  ["valid until an hour ago, in seconds", { valid_until: NOON / 1_000 - 3_600 }],
  ["invalid since this morning", { invalid_at: "2026-03-01T09:00:00+01:00" }],
  ["deleted, as histories say it", { is_deleted: true }],
  ["deleted, in SQLite's words", { is_deleted: 1 }],
  ["deleted by an answer to add", { event: "DELETE" }],
  ["archived in OpenMemory", { archived_at: "2026-02-01T08:00:00", deleted_at: null }],
  ["deleted in OpenMemory", { deletedAt: "2026-02-01T08:00:00Z" }],
  ["not the latest version", { is_latest: false }],
  ["not the latest, in one word", { latest: false }],
  ["not the current one, by the SDK", { isCurrent: false }],
  ["not valid, in SQLite's words", { is_valid: 0 }],
  ["archived, by a status", { status: "archived" }],
  ["expired an hour ago", { expires_at: "2026-03-01T11:00:00Z" }],
  ["expired an hour ago, by the SDK", { expiresAt: NOON - 3_600_000 }],
  ["valid to yesterday", { valid_to: "2026-02-28" }],
  ["superseded, by a flag", { superseded: true }],
  ["expired yesterday, in short", { expiration_date: "20260228" }],
  ["expired yesterday, in seconds", { expiration_date: NOON / 1_000 - 86_400 }],
  ["superseded, in Python's words", { lifecycle_state: "LifecycleState.SUPERSEDED" }],
  ["deleted, in two words", { status: "Soft-Deleted" }],
  ["removed", { state: "removed" }],
  ["retracted at a time", { retracted_at: "2026-02-01T08:00:00Z" }],
  ["expired yesterday, at a time of the day", { expiration_date: "2026-02-28T00:00:00+00:00" }],
  ["expired yesterday, in Python's words", { expiration_date: "2026-02-28 00:00:00" }],
  ["deleted, without its text", { event: "DELETE", memory: null }],
];

/** What says nothing of the kind. */
const HOLDING: readonly (readonly [string, object])[] = [
  ["active", { lifecycle_state: "active", state: "active", event: "ADD", is_deleted: false, replaced_by: null }],
  ["active in other words", { status: "SUCCEEDED", latest: true, is_valid: null, expires_at: null, valid_to: "" }],
  ["active in Python's words", { lifecycle_state: "LifecycleState.ACTIVE", state: "not.archived.yet" }],
  ["expiring today", { expiration_date: "2026-03-01" }],
  ["valid until tonight", { valid_until: "2026-03-01T23:00:00Z", invalid_at: "2026-03-02" }],
  ["of the day, in seconds", { expiration_date: NOON / 1_000 - 3_600, is_latest: true, archived_at: null }],
  ["replaced by itself, or by nobody", { replaced_by: "old", superseded_by: " " }],
  ["archived next week", { archived_at: "2026-03-08" }],
  ["no date", { expiration_date: "soon", valid_until: {}, invalid_at: "" }],
  ["metadata of the application's", { metadata: { state: "archived", event: "DELETE", valid_until: "2020-01-01" } }],
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
  const serve = (...memories: (typeof old)[]) => {
    mem0.memories.clear();
    for (const memory of memories) mem0.memories.set(memory.id, memory);
  };
  /** A conversation that goes on by what its prompts were answered. */
  const conversation = (id: string) => {
    const said: object[] = [];
    return async (content: string, more: object = {}) => {
      said.push({ role: "user", content });
      const answer = await app.compose({ user_id: "ada", conversation_id: id, messages: [...said], ...more });
      said.push({ role: "assistant", content: `To ${content}` });
      return { answer, last: JSON.stringify(answer.messages.at(-1)), all: textOf(answer) };
    };
  };

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
    for (const [what, more] of HOLDING) {
      serve({ ...old, ...more });
      const answer = await app.compose({ user_id: "ada", query: "Which dog?" });
      expect(textOf(answer), what).toContain(OLD);
      expect(answer.warnings, what).toEqual([]);
    }
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

  it("is told from one that was added again", async () => {
    const memories = [{ ...old, event: "DELETE" }, tea, old];
    const answer = await app.compose({ user_id: "ada", query: "Which dog?", memories });
    expect(textOf(answer)).toContain(OLD);
    expect(answer.warnings).toEqual([]);
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
    const lasts = [
      { expiration_date: "2026-03-02" },
      { valid_until: "2026-03-02T20:00:00Z" },
      { invalidAt: "2026-03-03" },
    ];
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

  it("is said to be no longer true in a conversation that gave it, once", async () => {
    for (const [what, more] of ENDED) {
      const say = conversation(what);
      await say("one", { memories: [old, tea] });
      const next = await say("two", { memories: [{ ...old, ...more }, tea] });
      expect(next.last, what).toContain(`No longer true: ${OLD}\\n`);
      expect(next.last, what).not.toContain(`- ${OLD}`);
      const third = await say("three", { memories: [tea] });
      expect(third.last, what).not.toContain("No longer true");
      expect(third.all, what).toContain("No longer true");
      const again = await say("four", { memories: [old, tea] });
      expect(again.last, what).toContain(`Current again: ${OLD}\\n`);
      await say("five", { memories: [{ ...old, ...more }] });
    }
  });

  it("is said so when its time ends, although nobody speaks of it", async () => {
    const say = conversation("c");
    await say("one", { memories: [{ ...old, expiration_date: "2026-03-01" }, tea] });
    vi.setSystemTime(NOON + DAY_MS);
    expect((await say("two", { memories: [tea] })).last).toContain(`No longer true: ${OLD}\\n`);
  });

  it("is corrected by the memory that took its place", async () => {
    const say = conversation("c");
    await say("one", { memories: [old, tea] });
    const fresh = { id: "new", memory: NEW, user_id: "ada" };
    const ended = { ...old, lifecycle_state: "superseded", replaced_by: "new" };
    const { last, answer } = await say("two", { memories: [fresh, ended, tea] });
    expect(last).toContain(`- ${NEW}\\n</memories>\\nNo longer true: ${OLD}\\n`);
    expect(answer.blocks).toMatchObject([{ memory_id: "new", replaces: [1] }, { memory_id: "tea" }]);
    expect((await say("three", { memories: [fresh, ended, tea] })).last).not.toContain("No longer");
  });

  it("stays so after a restart, and after any retention", async () => {
    for (const retention of ["keep", "volatile", "ephemeral", "auto"]) {
      const say = conversation(retention);
      await say("one", { memories: [old, tea], retention });
      await say("two", { memories: [{ ...old, is_deleted: true }], retention });
      const { all } = await say("three", { memories: [tea], retention });
      if (all.includes(OLD)) expect(all, retention).toContain("No longer true");
    }
    const exported = JSON.parse((await app.send("GET", "/users/ada/export")).text);
    expect(JSON.stringify(exported)).toContain(OLD);
  });
});
