import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadEveryUser } from "../../src/cli/stored-users.js";
import { type ChatMessage, type Label, labelsIn, type Scope, type Turn } from "../../src/core/index.js";
import { storedCounts } from "../stored-counts.js";
import { type ComposedUsers, conversationId, NOW, requestId, type Said, scopeOf, storedOf } from "./composed-users.js";
import { type OpenDatabase, SuiteStore } from "./suite-database.js";

const coach: Scope = { ...scopeOf("ana"), agentId: "coach" as Scope["agentId"] };
const SCOPES: readonly Scope[] = [scopeOf("ana"), coach, scopeOf("bo")];
const CONVERSATIONS = ["c1", "c2"];
const MEMORIES = ["m-one", "m-two", "m-three", "m-four"];
const SYSTEMS = ["Be kind.", "Be brief.", "Remember: what one says, as of 1."];

/** Steps after which each store sees what the others have done. */
const BETWEEN_LOOKS = 4;

/** The texts of a memory, by version; two memories share one. */
const textOf = (memory: string, version: number) =>
  version === 0 && (memory === "m-two" || memory === "m-three")
    ? "The two of them say the very same"
    : `what ${memory.slice(2)} says, as of ${version}.`;

interface KnownTurn {
  readonly turn: Turn;
  readonly said: readonly ChatMessage[];
  readonly request: string | null;
  readonly at: number;
}

class KnownScope {
  readonly conversations = new Map<string, readonly KnownTurn[]>();
  readonly singles = new Map<string, KnownTurn>();

  /** Ends everything before what was given a label, or says a text. */
  forget(gone: ReadonlySet<Label>, texts: readonly string[]): void {
    const isGone = ({ turn, said }: KnownTurn) =>
      [...labelsIn(turn.injection)].some((label) => gone.has(label)) ||
      texts.some((text) => JSON.stringify(said).includes(text));
    for (const [id, turns] of this.conversations) {
      const first = turns.findIndex(isGone);
      this.conversations.set(id, first < 0 ? turns : turns.slice(0, first));
    }
    for (const [id, single] of this.singles) if (isGone(single)) this.singles.delete(id);
  }

  expire(before: number): void {
    for (const [id, turns] of this.conversations) if ((turns.at(-1)?.at ?? 0) < before) this.conversations.delete(id);
    for (const [id, { at }] of this.singles) if (at < before) this.singles.delete(id);
  }

  withdraw(request: string): void {
    this.singles.delete(request);
    for (const [id, turns] of this.conversations)
      if (turns.at(-1)?.request === request) this.conversations.set(id, turns.slice(0, -1));
      else
        this.conversations.set(
          id,
          turns.map((one) => (one.request === request ? { ...one, request: null } : one)),
        );
  }
}

/** A store that is used in any way, beside what should be in it. */
class RandomUse {
  readonly #known = new Map<Scope, KnownScope>(SCOPES.map((scope) => [scope, new KnownScope()]));
  readonly #requests: { readonly scope: Scope; readonly said: Said }[] = [];
  #at = NOW;
  #users: ComposedUsers;

  /** @param stores their users; each step is another's */
  constructor(
    private readonly suite: SuiteStore,
    private readonly stores: readonly ComposedUsers[],
  ) {
    this.#users = suite.users;
  }

  /** Does one step, and compares. */
  async step(nth: number, [, run]: Step): Promise<void> {
    this.#users = this.stores[nth % this.stores.length] ?? this.suite.users;
    await run(this, this.#users);
    // In between, stores are some steps behind.
    if (nth % BETWEEN_LOOKS === 0) await this.look();
    await this.check();
  }

  /** Has every store see what the others have done. */
  async look(): Promise<void> {
    for (const users of this.stores)
      for (const scope of SCOPES) {
        const state = await users.look(scope);
        if (state !== null) expect(state.stored()).toEqual((await storedOf(users.store, scope)).stored);
      }
  }

  /** What an earlier run left. */
  async clear(): Promise<void> {
    for (const users of this.stores) users.drop();
    for (const scope of SCOPES) await this.delete(scope);
  }

  request(nth: number) {
    return this.#requests.at(-1 - (nth % Math.max(1, this.#requests.length)));
  }

  get at(): number {
    return this.#at;
  }

  async compose(scope: Scope, said: Omit<Said, "requestId" | "at">): Promise<void> {
    const name = `r${this.#requests.length + 1}`;
    const whole: Said = { ...said, requestId: name, at: this.#next() };
    this.#requests.push({ scope, said: whole });
    const { turn, given, restated, head } = await this.#users.compose(scope, whole);
    const known = this.#of(scope);
    const own = { turn, said: [...head, ...given], request: name, at: this.at };
    if (said.conversation === undefined) {
      known.singles.set(name, own);
      return;
    }
    const again = restated.map((one) => ({ turn: one.turn, said: one.given, request: null, at: this.at }));
    const before = known.conversations.get(said.conversation) ?? [];
    known.conversations.set(said.conversation, [...before, ...again, own]);
  }

  /** Takes a request back, and composes it again, as after an engine rejected it. */
  async reject(nth: number): Promise<void> {
    const request = this.request(nth);
    if (request === undefined) return;
    const { scope, said } = request;
    await this.#users.withdraw(scope, said.requestId);
    this.#of(scope).withdraw(said.requestId);
    const { requestId: _, at: _at, ...again } = said;
    await this.compose(scope, again);
  }

  async forget(scope: Scope, memory: string): Promise<void> {
    const scopes = SCOPES.filter(({ userId }) => userId === scope.userId);
    const before = await Promise.all(scopes.map((one) => storedOf(this.#users.store, one)));
    const receipt = await this.#users.forget(scope, memory, [], this.#next());
    const gone = new Set(receipt.labels);
    const after = await Promise.all(scopes.map((one) => storedOf(this.#users.store, one)));
    const goneIn = (at: number) => {
      const left = new Set(after[at]?.stored?.register.blocks.map(({ label }) => label));
      return before[at]?.stored?.register.blocks.filter(({ label }) => !left.has(label)) ?? [];
    };
    const texts = scopes.flatMap((_, at) => goneIn(at).map(({ text }) => text));
    for (const [at, one] of scopes.entries()) {
      const labels = goneIn(at).map(({ label }) => label);
      expect(labels.every((label) => gone.has(label))).toBe(true);
      this.#of(one).forget(new Set(labels), texts);
      expect(after[at]?.stored?.register.versions.map(({ memoryId }) => memoryId)).not.toContain(memory);
      expect(after[at]?.stored?.register.forgotten).toContain(memory);
    }
    const kept = new Set(after.flatMap(({ stored }) => stored?.register.blocks.map(({ text }) => text) ?? []));
    for (const text of texts)
      if (!kept.has(text))
        for (const { version } of after)
          if (version !== null) expect(await this.suite.placesOf(text, version.scopeId)).toEqual([]);
  }

  async expire(scope: Scope, share: number): Promise<void> {
    const before = NOW + share * (this.#at - NOW);
    await this.#users.expire(scope, before);
    for (const one of SCOPES) if (one.userId === scope.userId) this.#of(one).expire(before);
  }

  async delete(scope: Scope): Promise<void> {
    await this.#users.deleteUser(scope);
    for (const one of SCOPES) if (one.userId === scope.userId) this.#known.set(one, new KnownScope());
  }

  /** Compares all that is stored with what should be. */
  async check(): Promise<void> {
    const { store } = this.#users;
    for (const scope of SCOPES) {
      const { stored, version } = await storedOf(store, scope);
      const state = this.#users.state(scope);
      if (state !== undefined && this.stores.length === 1) expect(stored).toEqual(state.stored());
      const known = this.#of(scope);
      const scopeId = version?.scopeId ?? 0;
      for (const id of CONVERSATIONS) {
        const turns = known.conversations.get(id) ?? [];
        expect((await store.loadConversation(scopeId, conversationId(id))).turns).toEqual(
          turns.map(({ turn }) => turn),
        );
        for (const { request, said } of turns.slice(-3)) {
          if (request === null) continue;
          const found = await store.findRequest(scopeId, requestId(request));
          expect([...(found?.head ?? []), ...(found?.turns.at(-1)?.given ?? [])]).toEqual(said);
        }
      }
      for (const [id, { said }] of known.singles) {
        const found = await store.findRequest(scopeId, requestId(id));
        expect([...(found?.head ?? []), ...(found?.turns[0]?.given ?? [])]).toEqual(said);
      }
      const turns = [...known.conversations.values()].flat().length + known.singles.size;
      expect(storedCounts(await store.exportUser(scope), scope.agentId).turns).toBe(turns);
    }
    expect((await loadEveryUser(store)).findings).toEqual([]);
  }

  #of(scope: Scope): KnownScope {
    return this.#known.get(scope) as KnownScope;
  }

  #next(): number {
    this.#at += 1_000;
    return this.#at;
  }
}

type Step = readonly [name: string, run: (use: RandomUse, users: ComposedUsers) => Promise<unknown>];

const memory = fc.constantFrom(...MEMORIES);
const version = fc.nat({ max: 2 });
const nth = fc.nat({ max: 5 });
const scope = fc.constantFrom(...SCOPES);
const named = (name: string, ...of: readonly unknown[]) => `${name} ${JSON.stringify(of)}`;

const anyCompose = fc
  .record({
    scope,
    conversation: fc.constantFrom(null, ...CONVERSATIONS),
    given: fc.uniqueArray(fc.tuple(memory, version), { maxLength: 4, selector: ([one]) => one }),
    quoted: fc.option(fc.tuple(memory, version), { freq: 4 }),
    system: fc.constantFrom(...SYSTEMS),
    history: fc.constantFrom("whole", "whole", "whole", "none", "told"),
    retention: fc.constantFrom("keep", "keep", "volatile", "ephemeral"),
    number: fc.nat({ max: 99 }),
  })
  .map((asked): Step => {
    const { scope: of, conversation, given, quoted, system, history, retention, number } = asked;
    const quote = quoted === null ? "" : ` Is it "${textOf(...quoted)}"?`;
    const said = {
      question: `Question ${number}.${quote}`,
      memories: Object.fromEntries(given.map(([one, at]) => [one, textOf(one, at)])),
      system,
      retention,
      ...(conversation === null ? {} : { conversation }),
      ...(history === "whole"
        ? {}
        : { history: history === "none" ? [] : ["Hello?", `Hello.${quote}`, "Well?", "Well."] }),
    } as const;
    return [named("compose", asked), (use) => use.compose(of, said)];
  });

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: anyCompose, weight: 14 },
  {
    arbitrary: fc.tuple(nth, fc.option(fc.nat({ max: 99 }))).map(
      ([at, cached]): Step => [
        named("report", at, cached),
        async (use, users) => {
          const request = use.request(at);
          const observed = cached === null ? { ttftMs: 1.5 } : { promptTokens: 100, cachedTokens: cached };
          if (request !== undefined) await users.report(request.scope, request.said.requestId, observed);
        },
      ],
    ),
    weight: 2,
  },
  {
    arbitrary: fc.tuple(scope, fc.array(nth, { maxLength: 3 })).map(
      ([of, list]): Step => [
        named("evict", of, list),
        (use, users) =>
          users.evict(
            of,
            list.map((at) => use.request(at)?.said.requestId ?? "none"),
          ),
      ],
    ),
    weight: 2,
  },
  {
    arbitrary: fc
      .tuple(scope, memory, version)
      .map(
        ([of, one, at]): Step => [named("update", of, one, at), (_, users) => users.update(of, one, textOf(one, at))],
      ),
    weight: 1,
  },
  { arbitrary: nth.map((at): Step => [named("reject", at), (use) => use.reject(at)]), weight: 2 },
  {
    arbitrary: fc
      .tuple(scope, memory)
      .map(([of, one]): Step => [named("forget", of, one), (use) => use.forget(of, one)]),
    weight: 3,
  },
  {
    arbitrary: fc
      .tuple(scope, fc.double({ min: 0, max: 1, noNaN: true }))
      .map(([of, share]): Step => [named("expire", of, share), (use) => use.expire(of, share)]),
    weight: 2,
  },
  { arbitrary: scope.map((of): Step => [named("delete", of), (use) => use.delete(of)]), weight: 1 },
  { arbitrary: fc.constant<Step>(["drop", async (_, users) => users.drop()]), weight: 2 },
);

/**
 * Whatever is done, what comes back is what was stored, and nothing is left of what was forgotten.
 *
 * @param counts how many stores take turns
 */
export function describeRandomUse(open: OpenDatabase, counts: readonly (1 | 2)[]): void {
  describe("any use", () => {
    const suite = new SuiteStore(open);

    it.for(counts)(
      "of %d stores in turn stores what was composed, and leaves nothing of what was forgotten",
      { timeout: 300_000 },
      async (count, context) => {
        const stores = [suite.users, ...(count === 2 ? [await suite.other(context)] : [])];
        const steps = fc.array(anyStep, { minLength: 1, maxLength: 24, size: "max" });
        const uses = fc.asyncProperty(steps, async (list) => {
          const use = new RandomUse(suite, stores);
          await use.clear();
          for (const [nth, step] of list.entries()) await use.step(nth, step);
        });
        await fc.assert(uses, { numRuns: 60 });
      },
    );
  });
}
