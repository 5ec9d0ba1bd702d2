import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KEEPS_ALL } from "../../../src/core/cache/residency.js";
import { ORDERING_POLICIES, POLICY_NAMES } from "../../../src/core/compose/policies.js";
import {
  EMPTY_SCOPE,
  foldScope,
  type ScopeChanges,
  ScopeState,
  type StoredScope,
} from "../../../src/core/compose/scope-state.js";
import { digestOf, type NodeId, type TurnId } from "../../../src/core/text/ids.js";
import { Chat, countTokens, memory, UserScope, user } from "./scope-fixture.js";

const BOUNDS = { maxIndexNodes: 12, maxLoadedConversations: 4 };

const anyMemories = fc.array(fc.tuple(fc.nat(9), fc.nat(7)), { maxLength: 6 });

/** Everything that changes a scope. */
const anyStep = fc.record({
  does: fc.oneof(
    { weight: 6, arbitrary: fc.constant("compose" as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom("forget" as const, "evict" as const, "expire" as const, "update" as const),
    },
    { weight: 1, arbitrary: fc.constantFrom("report" as const, "process" as const, "age" as const) },
  ),
  chat: fc.option(fc.constantFrom("one", "two")),
  policy: fc.constantFrom(...POLICY_NAMES),
  ratio: fc.option(fc.constantFrom(1, 1.5), { freq: 3 }),
  memories: anyMemories,
  nth: fc.nat(9),
  split: fc.nat(20),
});
type Step = typeof anyStep extends fc.Arbitrary<infer Made> ? Made : never;

class Life {
  readonly scope = new UserScope(EMPTY_SCOPE, KEEPS_ALL, BOUNDS);
  readonly #chats = new Map(["one", "two"].map((id) => [id, new Chat(this.scope, id)]));
  readonly #served: { readonly leaf: NodeId; readonly turn: TurnId }[] = [];
  #asked = 0;

  live(step: Step): void {
    const { scope } = this;
    const { state } = scope;
    const named = step.memories.map(([id, fact]) => memory(`m${id}`, `Fact ${fact}.`));
    const nth = this.#served[step.nth];
    scope.now += 1_000;
    switch (step.does) {
      case "compose":
        this.#compose(step);
        break;
      case "forget":
        scope.forget(`m${step.nth}`);
        break;
      case "evict":
        if (nth !== undefined) state.index.evict(nth.leaf);
        break;
      case "expire":
        scope.expire(step.chat ?? "one");
        break;
      case "update":
        state.register.resolve(named);
        break;
      case "report":
        if (nth !== undefined) state.index.miss(nth.leaf, nth.turn, 0, scope.now);
        break;
      case "process":
        state.rememberWorker(
          `gpu${step.nth}`,
          named.map(({ text }) => digestOf(text)),
        );
        break;
      case "age":
        state.index.dropUnusedSince(scope.now - 1_000 * step.nth);
    }
    scope.store();
  }

  #compose({ chat, policy, ratio, memories }: Step): void {
    const retrieved = memories.map(([id, fact]) => memory(`m${id}`, `Fact ${fact}.`));
    const options = {
      policy: ORDERING_POLICIES[policy],
      ...(ratio === null ? {} : { memoryBudgetRatio: ratio }),
    };
    const question = `Question ${++this.#asked}`;
    const talk = chat === null ? undefined : this.#chats.get(chat);
    const composition =
      talk === undefined
        ? this.scope.compose([user(question)], retrieved, options)
        : talk.ask(question, retrieved, options);
    talk?.answer(`Answer ${this.#asked}`);
    this.#served.push({ leaf: composition.leaf, turn: composition.turn.id });
  }
}

function foldedInTwo(changes: readonly ScopeChanges[], split: number): StoredScope {
  return foldScope(plain(foldScope(EMPTY_SCOPE, changes.slice(0, split))), changes.slice(split));
}

function plain(scope: StoredScope): StoredScope {
  const { published, ...rows } = scope;
  const { clusters, accesses } = structuredClone({ clusters: published.clusters, accesses: published.accesses });
  return { ...structuredClone(rows), published: { clusters, accesses } };
}

/** All rows of a state, in an order that does not depend on what happened; nodes as they are once loaded. */
function rowsOf(scope: StoredScope) {
  const { register, published, ...rows } = scope;
  return {
    ...rows,
    nodes: new ScopeState(scope, countTokens, BOUNDS).index.stored(),
    blocks: register.blocks,
    versions: register.versions.map((version) => JSON.stringify(version)).sort(),
    forgotten: [...register.forgotten].sort(),
    clusters: published.clusters,
    accesses: published.accesses,
  };
}

const anyLife = fc.array(anyStep, { maxLength: 16 });

describe("a scope's changes, folded", () => {
  it("give the state that they led to, from wherever they are folded", () => {
    const property = fc.property(anyLife, (steps) => {
      const life = new Life();
      for (const step of steps) {
        life.live(step);
        const { stored, state } = life.scope;
        const now = rowsOf(state.stored());
        expect(rowsOf(foldScope(EMPTY_SCOPE, stored))).toEqual(now);
        expect(rowsOf(foldedInTwo(stored, step.split))).toEqual(now);
        expect(rowsOf(stored.reduce((state, changes) => foldScope(state, [changes]), EMPTY_SCOPE))).toEqual(now);
      }
    });
    fc.assert(property, { numRuns: 150 });
  });
});
