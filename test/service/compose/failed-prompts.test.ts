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

/** Before a turn, a prompt of its conversation or of another one of its user fails after so many steps. */
interface Failing {
  readonly turn: number;
  readonly after: number;
  readonly isElsewhere: boolean;
}

/** What a service with a small shared cache answers to the turns, and what it takes its engine to hold, if a prompt between them fails. */
async function answersOf(failing: Failing | null) {
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
    const asked = { ...turn, requestId: `r${at}`, memories: MEMORIES, history: "stored" } as const;
    if (failing?.turn === at) {
      const lost = { ...asked, requestId: "lost", ...(failing.isElsewhere ? { conversationId: "lost" } : {}) };
      steps.failAfter(failing.after);
      hasFailed = await composeWith(service, lost).then(
        () => false,
        () => true,
      );
      steps.failAfter(Number.POSITIVE_INFINITY);
      if (!hasFailed) break;
    }
    const { messages, plan } = await composeWith(service, asked);
    answers.push({ messages, plan, cache: service.cacheState });
  }
  await service.close();
  return { answers, hasFailed };
}

describe("a prompt that fails anywhere between its plan and its commit", () => {
  it.each([
    ["of the same conversation", false],
    ["of another one", true],
  ])(
    "leaves no trace in the index, the conversation or the engine's cache: a fault at every step, %s",
    async (_, isElsewhere) => {
      const { answers } = await answersOf(null);
      for (const turn of TURNS.keys()) {
        let after = 0;
        for (; ; after++) {
          const tried = await answersOf({ turn, after, isElsewhere });
          if (!tried.hasFailed) break;
          expect(tried.answers, `turn ${turn}, step ${after}`).toEqual(answers);
        }
        // It reads the scope, plans, emits, and commits.
        expect(after).toBeGreaterThan(5);
      }
    },
  );
});
