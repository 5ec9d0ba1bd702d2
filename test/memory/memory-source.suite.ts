import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AgentId, MemoryId, Scope, UserId } from "../../src/core/text/ids.js";
import { type MemorySource, MemorySourceError, type MemorySourceFailure } from "../../src/memory/memory-source.js";

/** A source to try, and how to be rid of it. */
export interface OpenedSource {
  readonly source: MemorySource;
  dispose(): Promise<void>;
}

/** What differs between sources by the nature of what is behind them. */
export interface SourceTraits {
  open(): Promise<OpenedSource>;
  /** Whose memories a search without an agent sees: those without an agent, or all of the user's. */
  readonly withoutAgent: "those without one" | "all";
  /** Behaviours that cannot be asked of this source → why not. */
  readonly skips?: Readonly<Record<string, string>>;
}

/** A scope out of plain strings. */
export function scopeOf(user: string, agent: string | null = null, tenant = "default"): Scope {
  return { tenant, userId: user as UserId, agentId: agent as AgentId | null };
}

/** What a call failed with; fails the test if it did not, or with anything else than the one error that sources may reject with. */
export async function failureOf(call: Promise<unknown>): Promise<MemorySourceFailure> {
  const outcome = await call.then(
    () => "it resolved",
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(MemorySourceError);
  return (outcome as MemorySourceError).failure;
}

/** Ids that Mem0, SQLite, JSON or a URL might take for something else. */
const ODD_IDS = [
  ...["*", "", " ", " ada", "ada ", "ada lovelace", "%", "ada%20", "ada:x", "a'b\"c", "ädä", "memprefix/t/ada"],
];

/** Refused by memprefix, or by what is behind the source. */
const SAID_SO = { kind: expect.stringMatching(/^(?:unsupported|refused)$/) };

const FORGETS_A_USER = "forgets a user in all agents, and nobody else";

const never = new AbortController().signal;

/** The behaviour of every memory source. A skipped behaviour states why in its title. */
export function describeMemorySource(name: string, traits: SourceTraits): void {
  const ada = scopeOf("ada");
  const bob = scopeOf("bob");

  describe(name, { timeout: 30_000 }, () => {
    let opened: OpenedSource;
    let source: MemorySource;
    beforeEach(async () => {
      opened = await traits.open();
      source = opened.source;
    });
    afterEach(() => opened.dispose());

    const skips = new Map(Object.entries(traits.skips ?? {}));
    const forgetsUsers = !skips.has(FORGETS_A_USER);
    const behaviour = (title: string, run: () => Promise<void>) => {
      const reason = skips.get(title);
      skips.delete(title);
      if (reason === undefined) it(title, run);
      else it.skip(`${title} (skipped: ${reason})`, run);
    };
    const keep = async (scope: Scope, ...texts: string[]) =>
      await source.add(
        scope,
        texts.map((text) => ({ text })),
        never,
      );
    const found = async (scope: Scope, query = "what tea does she drink?", topK = 10) =>
      await source.search({ scope, query, topK }, never);
    const textsFor = async (scope: Scope) => (await found(scope)).map(({ text }) => text).toSorted();
    const idOf = async (scope: Scope, text: string): Promise<MemoryId> => {
      const memory = (await found(scope)).find((candidate) => candidate.text === text);
      if (memory === undefined) throw new Error(`"${text}" was not found`);
      return memory.id;
    };

    behaviour("finds what was added, the most relevant first", async () => {
      await keep(ada, "her bicycle is red", "she drinks green tea", "the tax office opens at nine");
      const [first] = await found(ada, "she drinks what kind of tea?");
      expect(first?.text).toBe("she drinks green tea");
    });

    behaviour("gives back what it added with ids, in order", async () => {
      const added = await keep(ada, "she drinks green tea", "she drinks black tea", "she drinks green tea");
      expect(added.map(({ text }) => text)).toEqual([
        "she drinks green tea",
        "she drinks black tea",
        "she drinks green tea",
      ]);
      expect(new Set(added.map(({ id }) => id)).size).toBe(3);
    });

    behaviour("keeps metadata beside a memory", async () => {
      const metadata = { source: "chat", user_id: "bob", userId: "bob", nested: { at: "2025-01-01" } };
      await source.add(ada, [{ text: "she drinks green tea", metadata }], never);
      expect(await textsFor(ada)).toEqual(["she drinks green tea"]);
      expect(await textsFor(bob)).toEqual([]);
    });

    behaviour("never shows one user another user's memories", async () => {
      await keep(ada, "she drinks green tea");
      await keep(bob, "he drinks black tea");
      expect(await textsFor(ada)).toEqual(["she drinks green tea"]);
      expect(await textsFor(bob)).toEqual(["he drinks black tea"]);
      expect(await textsFor(scopeOf("eve"))).toEqual([]);
    });

    behaviour("keeps the users of different tenants apart", async () => {
      const acme = scopeOf("ada", null, "acme");
      await keep(ada, "she drinks green tea");
      await keep(acme, "she drinks black tea");
      expect(await textsFor(ada)).toEqual(["she drinks green tea"]);
      expect(await textsFor(acme)).toEqual(["she drinks black tea"]);
      if (forgetsUsers) await source.deleteUser(acme, never);
      expect(await textsFor(ada)).toEqual(["she drinks green tea"]);
    });

    behaviour("keeps a user's agents apart", async () => {
      await keep(scopeOf("ada", "planner"), "she plans tea at five");
      await keep(scopeOf("ada", "coach"), "she drinks too much tea");
      expect(await textsFor(scopeOf("ada", "planner"))).toEqual(["she plans tea at five"]);
      expect(await textsFor(scopeOf("ada", "coach"))).toEqual(["she drinks too much tea"]);
    });

    behaviour(`without an agent, finds ${traits.withoutAgent}`, async () => {
      await keep(ada, "she drinks green tea");
      await keep(scopeOf("ada", "planner"), "she plans tea at five");
      const expected =
        traits.withoutAgent === "all" ? ["she drinks green tea", "she plans tea at five"] : ["she drinks green tea"];
      expect(await textsFor(ada)).toEqual(expected);
      expect(await textsFor(scopeOf("ada", "planner"))).toEqual(["she plans tea at five"]);
    });

    behaviour("takes no odd id for another one", async () => {
      await keep(ada, "she drinks green tea");
      await keep(scopeOf("ada", "planner"), "she plans tea at five");
      for (const id of ODD_IDS) {
        for (const scope of [scopeOf(id), scopeOf("ada", id)]) {
          const kept = await keep(scope, `tea of "${id}"`).catch((error: unknown) => error);
          // A source may refuse an id that it cannot keep apart, but only by saying so.
          if (kept instanceof Error) {
            expect(await failureOf(Promise.reject(kept))).toMatchObject(SAID_SO);
            expect(await failureOf(found(scope))).toMatchObject(SAID_SO);
            const deleted = await source.delete(scope, "x" as MemoryId, never).catch((error: unknown) => error);
            if (deleted !== false) expect(deleted).toMatchObject({ failure: SAID_SO });
          } else {
            expect(await textsFor(scope)).toEqual([`tea of "${id}"`]);
          }
        }
        await source
          .deleteUser(scopeOf(id), never)
          .catch((error: unknown) => expect(error).toBeInstanceOf(MemorySourceError));
        expect(await textsFor(scopeOf("ada", "planner"))).toEqual(["she plans tea at five"]);
      }
      expect(await textsFor(ada)).toContain("she drinks green tea");
    });

    behaviour("gives at most topK memories", async () => {
      await keep(ada, "she drinks green tea", "she drinks black tea", "she drinks white tea", "she drinks red tea");
      expect(await found(ada, "she drinks tea", 1)).toHaveLength(1);
      expect(await found(ada, "she drinks tea", 3)).toHaveLength(3);
      expect(await found(ada, "she drinks tea", 1_000)).toHaveLength(4);
    });

    behaviour("deletes exactly the memory that is named", async () => {
      await keep(ada, "she drinks green tea", "she drinks black tea");
      const id = await idOf(ada, "she drinks green tea");
      expect(await source.delete(ada, id, never)).toBe(true);
      expect(await textsFor(ada)).toEqual(["she drinks black tea"]);
      expect(await source.delete(ada, id, never)).toBe(false);
    });

    behaviour("deletes a memory once, however many ask at a time", async () => {
      await keep(ada, "she drinks green tea");
      const id = await idOf(ada, "she drinks green tea");
      const outcomes = await Promise.all([source.delete(ada, id, never), source.delete(ada, id, never)]);
      expect(outcomes).toContain(true);
      expect(await textsFor(ada)).toEqual([]);
    });

    behaviour("deletes no memory of another user or agent", async () => {
      await keep(ada, "she drinks green tea");
      const id = await idOf(ada, "she drinks green tea");
      for (const other of [bob, scopeOf("ada", "planner"), scopeOf("ada", null, "acme")]) {
        expect(await source.delete(other, id, never)).toBe(false);
      }
      expect(await textsFor(ada)).toEqual(["she drinks green tea"]);
    });

    behaviour("deletes a user's memory for whoever names the user alone, whatever agent it was kept with", async () => {
      const withAgent = scopeOf("ada", "planner");
      await keep(withAgent, "she plans a trip to the coast");
      const id = await idOf(withAgent, "she plans a trip to the coast");
      expect(await source.delete(bob, id, never)).toBe(false);
      expect(await source.delete(ada, id, never)).toBe(true);
      expect(await textsFor(withAgent)).toEqual([]);
    });

    behaviour("deletes nothing for an id that is none", async () => {
      await keep(ada, "she drinks green tea");
      for (const id of ["unknown", "", ".", "..", "../memories", "*", "%2e%2e", "a?b#c"]) {
        expect(await source.delete(ada, id as MemoryId, never)).toBe(false);
      }
      expect(await textsFor(ada)).toEqual(["she drinks green tea"]);
    });

    behaviour(FORGETS_A_USER, async () => {
      await keep(ada, "she drinks green tea");
      await keep(scopeOf("ada", "planner"), "she plans tea at five");
      await keep(bob, "he drinks black tea");
      await source.deleteUser(ada, never);
      expect(await textsFor(ada)).toEqual([]);
      expect(await textsFor(scopeOf("ada", "planner"))).toEqual([]);
      expect(await textsFor(bob)).toEqual(["he drinks black tea"]);
      await source.deleteUser(ada, never);
    });

    behaviour("keeps no text that could not be in a prompt", async () => {
      for (const text of ["", " \n\t", "a\0b", "\ud800", "x".repeat(100_001)]) {
        expect(await failureOf(keep(ada, "she drinks green tea", text))).toMatchObject({ kind: "unsupported" });
      }
      expect(await textsFor(ada)).toEqual([]);
    });

    behaviour("takes calls that run at the same time", async () => {
      await keep(bob, ...Array.from({ length: 6 }, (_, index) => `he drinks tea number ${index}`));
      const [first, second, ...rest] = await found(bob);
      if (first === undefined || second === undefined) throw new Error("nothing was found");
      const outcomes = await Promise.all([
        ...Array.from({ length: 6 }, (_, index) => keep(ada, `she drinks tea number ${index}`)),
        source.delete(bob, first.id, never),
        source.delete(bob, second.id, never),
        source.delete(ada, second.id, never),
        found(bob),
      ]);
      expect(outcomes.slice(6, 9)).toEqual([true, true, false]);
      expect(await textsFor(ada)).toHaveLength(6);
      expect(await textsFor(bob)).toEqual(rest.map(({ text }) => text).toSorted());
    });

    behaviour("does nothing for a signal that has aborted", async () => {
      const aborted = AbortSignal.abort();
      expect(await failureOf(source.search({ scope: ada, query: "tea", topK: 1 }, aborted))).toEqual({
        kind: "aborted",
      });
      expect(await failureOf(source.add(ada, [{ text: "tea" }], aborted))).toEqual({ kind: "aborted" });
      expect(await failureOf(source.delete(ada, "x" as MemoryId, aborted))).toEqual({ kind: "aborted" });
      expect(await failureOf(source.deleteUser(ada, aborted))).toEqual({ kind: "aborted" });
      expect(await textsFor(ada)).toEqual([]);
    });

    behaviour("lets go when the signal aborts", async () => {
      await keep(ada, "she drinks green tea");
      const abort = new AbortController();
      const searching = source.search({ scope: ada, query: "tea", topK: 1 }, abort.signal);
      abort.abort();
      expect(await failureOf(searching)).toEqual({ kind: "aborted" });
    });

    behaviour("can be closed twice", async () => {
      await source.close();
      await source.close();
    });

    if (skips.size > 0) throw new Error(`no such behaviour: ${[...skips.keys()].join(", ")}`);
  });
}
