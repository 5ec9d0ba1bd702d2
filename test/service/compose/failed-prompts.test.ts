import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CachingEngine } from "../../../src/core/index.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { openInMemory } from "../../../src/store/sqlite/open.js";
import { type Store, StoreUnavailableError } from "../../../src/store/store.js";
import { composeWith, NOON, openService } from "./service-fixture.js";

/** Steps of one compose that can fail: calls of the store, of its transaction, of the engine's adapter. */
class Steps {
  #left = Number.POSITIVE_INFINITY;
  taken = 0;

  /** The step after so many fails, once. */
  failAfter(steps: number): void {
    this.#left = steps;
    this.taken = 0;
  }

  take(): void {
    this.taken++;
    if (this.#left-- === 0) throw new StoreUnavailableError("full");
  }

  /** The same object, each call of which is a step, also what the store's `hold` gives. */
  of<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (object, name) => {
        const value: unknown = Reflect.get(object, name);
        if (typeof value !== "function") return typeof value === "object" && value !== null ? this.of(value) : value;
        if (name === "hold") return this.#hold(object as Store);
        return (...given: unknown[]) => {
          this.take();
          return value.apply(object, given) as unknown;
        };
      },
    });
  }

  #hold(store: Store): Store["hold"] {
    return async (scope, known, work) => {
      this.take();
      return store.hold(scope, known, (held) => work(this.of(held)));
    };
  }
}

const TURNS = [
  { userId: "ana", conversationId: "c", query: "Where does she live?" },
  { userId: "bo", conversationId: "d", query: "And he?" },
  { userId: "ana", conversationId: "c", query: "Since when?" },
] as const;
const MEMORIES = ["She moved to another town.", "He stayed where he was.", "They met in spring."].map((memory, at) => ({
  id: `m${at}`,
  memory: memory.repeat(30),
}));

/** What a service with a small shared cache answers to the turns, and what it takes its engine to hold, if a step of one turn fails first. */
async function answersOf(failing: { readonly turn: number; readonly after: number } | null) {
  const cachingEngine = new CachingEngine();
  cachingEngine.read({ capacityTokens: 4_096, blockTokens: 16, computedTokens: null }, NOON);
  const steps = new Steps();
  const { generic } = ENGINES;
  const emit: typeof generic.emit = (prompt) => {
    steps.take();
    return generic.emit(prompt);
  };
  const service = openService({
    cachingEngine,
    store: steps.of(storeIn(openInMemory())),
    engines: { ...ENGINES, generic: { ...generic, emit } },
    workers: ["one", "two"],
  });
  const answers: unknown[] = [];
  let hasFailed = false;
  for (const [at, turn] of TURNS.entries()) {
    const ask = () => composeWith(service, { ...turn, requestId: `r${at}`, memories: MEMORIES, history: "stored" });
    if (failing?.turn === at) {
      steps.failAfter(failing.after);
      hasFailed = await ask().then(
        () => false,
        () => true,
      );
      steps.failAfter(Number.POSITIVE_INFINITY);
    }
    const { messages, plan } = await ask();
    answers.push({ messages, plan, cache: service.cacheState });
  }
  await service.close();
  return { answers, hasFailed };
}

describe("a prompt that fails anywhere between its plan and its commit", () => {
  it("leaves no trace in the index, the conversation or the engine's cache", async () => {
    const { answers } = await answersOf(null);
    const failures: number[] = [];
    const places = fc.record({ turn: fc.nat({ max: TURNS.length - 1 }), after: fc.nat({ max: 24 }) });
    await fc.assert(
      fc.asyncProperty(places, async (failing) => {
        const tried = await answersOf(failing);
        if (tried.hasFailed) failures.push(failing.after);
        expect(tried.answers).toEqual(answers);
      }),
    );
    expect(new Set(failures).size).toBeGreaterThan(5);
  });
});
