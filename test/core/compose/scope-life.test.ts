import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RetrievedMemory } from "../../../src/core/blocks/context-block.js";
import { type ResidencyConfig, residencyModel } from "../../../src/core/cache/residency.js";
import type { Composition } from "../../../src/core/compose/compose.js";
import { ORDERING_POLICIES, POLICY_NAMES } from "../../../src/core/compose/policies.js";
import { EMPTY_SCOPE, foldScope, ScopeState, type StoredScope } from "../../../src/core/compose/scope-state.js";
import { renderBlock } from "../../../src/core/prompt/section.js";
import type { Label } from "../../../src/core/text/ids.js";
import { checkIndex } from "../cache/index-rules.js";
import { expectPromises, sectionsOf } from "../prompt/prompt-promises.js";
import { anyForm, Chat, countTokens, memory, UserScope, user } from "./scope-fixture.js";

const BOUNDS = { maxIndexNodes: 12, maxLoadedConversations: 1 };

/** Everything that changes a scope besides a compose. Numbers name memories, or requests so far. */
const anyChange = fc.oneof(
  fc.record({ does: fc.constantFrom("forget", "update", "process"), nth: fc.nat(9) }),
  fc.record({ does: fc.constantFrom("evict", "age"), nth: fc.nat(20) }),
  fc.record({ does: fc.constant("expire"), nth: fc.nat(1) }),
  fc.record({
    does: fc.constant("report"),
    nth: fc.nat(20),
    share: fc.constantFrom(0, 0.3, 0.7, 1, 2),
    scaled: fc.boolean(),
  }),
);
type Change = { readonly does: string; readonly nth: number; readonly share?: number; readonly scaled?: boolean };

const anyStep = fc.record({
  changes: fc.array(anyChange, { maxLength: 2 }),
  /** Two conversations, and single prompts. */
  chat: fc.nat(2),
  form: anyForm,
  policy: fc.constantFrom(...POLICY_NAMES),
  memories: fc.array(fc.tuple(fc.nat(9), fc.nat(7)), { maxLength: 6 }),
  /** Tokens of carried blocks allowed beside the retrieved ones. */
  carry: fc.option(fc.nat(40)),
  after: fc.nat(10_000),
  restart: fc.boolean(),
  split: fc.nat(20),
});
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

class Life {
  readonly scope: UserScope;
  readonly #chats: readonly Chat[];
  readonly #composed: Composition[] = [];
  readonly #forgotten = new Set<string>();

  constructor(config: ResidencyConfig) {
    this.scope = new UserScope(EMPTY_SCOPE, residencyModel(config), BOUNDS);
    this.#chats = ["one", "two"].map((id) => new Chat(this.scope, id));
  }

  take({ changes, chat, form, policy, memories, carry, after }: Step): Composition {
    const { scope } = this;
    const n = this.#composed.length;
    scope.now += after;
    for (const change of changes) this.#change(change);
    const requested = memories.map(([id, fact]) => memory(`m${id}`, `Fact ${fact}.`));
    const asked = requested.filter(({ id }) => !this.#forgotten.has(id));
    const tokens = countTokens(asked.map(({ text }) => renderBlock({ label: 99 as Label }, text)).join(""));
    const budget = carry === null ? null : tokens + carry;
    const options = {
      ...form,
      policy: ORDERING_POLICIES[policy],
      ...(budget === null ? {} : { memoryBudgetTokens: budget, memoryBudgetRatio: 100 }),
    };
    const talk = this.#chats[chat];
    const composition =
      talk === undefined
        ? scope.compose([user(`Question ${n}`)], requested, options)
        : talk.ask(`Question ${n}`, requested, options);
    talk?.answer(`Answer ${n}`);
    this.#composed.push(composition);
    checkIndex(scope.state.index);
    expectKept(composition, asked, budget);
    return composition;
  }

  #change({ does, nth, share = 0, scaled = false }: Change): void {
    const { scope } = this;
    const { state } = scope;
    const composed = this.#composed[nth];
    if (does === "forget") {
      scope.forget(`m${nth}`);
      this.#forgotten.add(`m${nth}`);
    }
    if (does === "expire") scope.expire(["one", "two"][nth] ?? "");
    if (does === "update") state.register.resolve([memory(`m${nth}`, `Fact ${nth}.`)]);
    if (does === "process") state.rememberWorker(`gpu${nth}`, [`Fact ${nth}.`]);
    if (does === "age") state.index.dropUnusedSince(scope.now - 1_000 * nth);
    if (does === "evict" && composed !== undefined) scope.evict(composed.leaf);
    if (does === "report" && composed !== undefined) {
      const { expectedCachedTokens, totalTokens } = composed.plan;
      scope.report(composed, Math.round(expectedCachedTokens * share), scaled ? totalTokens : null);
    }
    scope.store();
  }
}

/** The blocks that were asked for, and beside them carried ones within the budget. */
function expectKept(composition: Composition, asked: readonly RetrievedMemory[], budget: number | null): void {
  const carried = composition.memories.filter(({ placement }) => placement === "carried_over");
  if (carried.length === 0) {
    expectPromises(composition, asked);
    return;
  }
  const isCarried = new Set<number>(carried.map(({ label }) => label));
  const inTurn = sectionsOf(composition.messages).at(-1)?.blocks ?? [];
  let spent = 0;
  const labels = [...new Set(composition.memories.map(({ label }) => label))];
  for (const [at, block] of inTurn.entries()) {
    // Without labels blocks stand as they are listed.
    const label = (block.label ?? labels[at]) as Label;
    spent += countTokens(renderBlock({ label }, block.text));
    if (!isCarried.has(label)) expect(asked.map(({ text }) => text)).toContain(block.text);
  }
  expect(spent).toBeLessThanOrEqual(budget ?? 0);
  const ids = new Set(composition.memories.filter(({ rank }) => rank !== null).map(({ memoryId }) => memoryId));
  for (const { id } of asked) expect(ids).toContain(id);
}

/** All rows of a state, in an order that does not depend on what happened; nodes as they are once loaded. */
function rowsOf(scope: StoredScope) {
  const { register, ...rows } = scope;
  return {
    ...rows,
    nodes: new ScopeState(scope, countTokens, BOUNDS).index.stored(),
    blocks: register.blocks,
    versions: register.versions.map((version) => JSON.stringify(version)).sort(),
    forgotten: [...register.forgotten].sort(),
  };
}

describe.each<ResidencyConfig>([{ kind: "all" }, { kind: "ttl", ttlMs: 15_000 }])(
  "any life of a scope, residency $kind",
  (config) => {
    it("gives what was asked for, the same each time and after a reload, and folds to the state that it led to", () => {
      const life = fc.property(fc.array(anyStep, { maxLength: 14 }), (steps) => {
        const [kept, again, reloaded] = [new Life(config), new Life(config), new Life(config)];
        for (const step of steps) {
          const { stored } = reloaded.scope;
          const half = foldScope(EMPTY_SCOPE, structuredClone(stored.slice(0, step.split)));
          if (step.restart) reloaded.scope.restart(foldScope(half, structuredClone(stored.slice(step.split))));
          const composed = JSON.stringify(kept.take(step));
          expect(JSON.stringify(again.take(step))).toBe(composed);
          expect(JSON.stringify(reloaded.take(step))).toBe(composed);
          const { stored: changes, state } = kept.scope;
          expect(rowsOf(foldScope(EMPTY_SCOPE, changes))).toEqual(rowsOf(state.stored()));
        }
      });
      fc.assert(life, { numRuns: 150 });
    });
  },
);
