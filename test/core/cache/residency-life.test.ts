import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RetrievedMemory } from "../../../src/core/blocks/context-block.js";
import { type ResidencyConfig, residencyModel } from "../../../src/core/cache/residency.js";
import type { Composition } from "../../../src/core/compose/compose.js";
import { EMPTY_SCOPE } from "../../../src/core/compose/scope-state.js";
import { carryOver } from "../../../src/core/ordering/carry-over.js";
import { renderBlock } from "../../../src/core/prompt/section.js";
import type { Label } from "../../../src/core/text/ids.js";
import { Chat, countTokens, memory, UserScope } from "../compose/scope-fixture.js";
import { expectPromises, sectionsOf } from "../prompt/prompt-promises.js";
import { checkIndex } from "./index-rules.js";

const MODELS: readonly ResidencyConfig[] = [{ kind: "all" }, { kind: "ttl", ttlMs: 15_000 }];

const anyStep = fc.record({
  /** Two conversations, and single prompts. */
  chat: fc.nat(2),
  memories: fc.array(fc.tuple(fc.nat(9), fc.nat(7)), { maxLength: 6 }),
  /** Tokens of carried blocks allowed beside the retrieved ones; null: another policy. */
  carry: fc.option(fc.nat(40)),
  after: fc.nat(10_000),
  forget: fc.option(fc.nat(9), { freq: 5 }),
  /** Of the requests so far. */
  evict: fc.option(fc.nat(20)),
  report: fc.option(fc.record({ nth: fc.nat(20), share: fc.constantFrom(0, 0.3, 0.7, 1, 2), scaled: fc.boolean() })),
  restart: fc.boolean(),
});
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

class Life {
  readonly scope: UserScope;
  readonly #chats: readonly Chat[];
  readonly #composed: Composition[] = [];
  readonly #forgotten = new Set<string>();

  constructor(config: ResidencyConfig) {
    this.scope = new UserScope(EMPTY_SCOPE, residencyModel(config));
    this.#chats = ["one", "two"].map((id) => new Chat(this.scope, id));
  }

  take(step: Step, restart = step.restart): Composition {
    const { scope } = this;
    const n = this.#composed.length;
    scope.now += step.after;
    if (step.forget !== null) {
      scope.forget(`m${step.forget}`);
      this.#forgotten.add(`m${step.forget}`);
    }
    const evicted = step.evict === null ? undefined : this.#composed[step.evict];
    if (evicted !== undefined) scope.evict(evicted.leaf);
    const reported = step.report === null ? undefined : this.#composed[step.report.nth];
    if (reported !== undefined && step.report !== null) {
      const cached = Math.round(reported.plan.expectedCachedTokens * step.report.share);
      scope.report(reported, cached, step.report.scaled ? reported.plan.totalTokens : null);
    }
    if (restart) scope.restart();
    const requested = step.memories.map(([id, fact]) => memory(`m${id}`, `Fact ${fact}.`));
    const asked = requested.filter(({ id }) => !this.#forgotten.has(id));
    const tokens = countTokens(asked.map(({ text }) => renderBlock({ label: 99 as never }, text)).join(""));
    const budget = step.carry === null ? null : tokens + step.carry;
    const options = budget === null ? {} : { policy: carryOver, memoryBudgetTokens: budget };
    const chat = this.#chats[step.chat];
    const composition =
      chat === undefined
        ? scope.compose([{ role: "user", content: `Question ${n}` }], requested, options)
        : chat.ask(`Question ${n}`, requested, options);
    chat?.answer(`Answer ${n}`);
    this.#composed.push(composition);
    checkIndex(scope.state.index);
    expectKept(composition, asked, budget);
    return composition;
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
  const section = sectionsOf(composition.messages).at(-1);
  const inTurn = section?.blocks ?? [];
  let spent = 0;
  const labels = [...new Set(composition.memories.map(({ label }) => label))];
  for (const [at, block] of inTurn.entries()) {
    // Without labels blocks stand as they are listed.
    const label = (block.label ?? labels[at]) as Label;
    spent += countTokens(renderBlock({ label }, block.text));
    if (!isCarried.has(label)) expect(asked.map(({ text }) => text)).toContain(block.text);
  }
  expect(spent).toBeLessThanOrEqual(budget ?? 0);
  const ids = composition.memories.filter(({ rank }) => rank !== null).map(({ memoryId }) => memoryId);
  expect(new Set(ids)).toEqual(new Set(asked.map(({ id }) => id)));
}

describe.each(MODELS)("any composes, evictions, reports and forgets, residency $kind", (config) => {
  it("give the blocks that were asked for, and the same bytes each time and after a reload", () => {
    const life = fc.property(fc.array(anyStep, { maxLength: 14 }), (steps) => {
      const [kept, again, reloaded] = [new Life(config), new Life(config), new Life(config)];
      for (const step of steps) {
        const composed = JSON.stringify(kept.take(step, false));
        expect(JSON.stringify(again.take(step, false))).toBe(composed);
        expect(JSON.stringify(reloaded.take(step))).toBe(composed);
      }
    });
    fc.assert(life, { numRuns: 150 });
  });
});
