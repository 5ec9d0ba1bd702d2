import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Composition } from "../../../src/core/compose/compose.js";
import { bankAfter, bankAllowance, carryOver } from "../../../src/core/ordering/carry-over.js";
import { prefixExact } from "../../../src/core/ordering/ordering.js";
import { Chat, type memories, memory, UserScope, user } from "../compose/scope-fixture.js";
import { expectPromises } from "../prompt/prompt-promises.js";

const anyRatio = fc.double({ min: 1, max: 5, noNaN: true });

describe("a memory bank", () => {
  it("never lends what was not paid in, keeps single prompts in bounds, and is bounded itself", () => {
    const anyPrompt = fc.record({
      ratio: anyRatio,
      retrieved: fc.nat(500),
      share: fc.constantFrom(0, 0.1, 0.5, 0.9, 1),
    });
    const life = fc.property(fc.array(anyPrompt, { maxLength: 60 }), (prompts) => {
      let bank = 0;
      let [sent, granted, most] = [0, 0, 0];
      for (const { ratio, retrieved, share } of prompts) {
        const own = Math.floor(ratio * retrieved);
        const { tokens, banked } = bankAllowance(bank, ratio, retrieved);
        expect(banked).toBe(own - retrieved + bank);
        expect(tokens).toBeLessThanOrEqual(banked);
        expect(retrieved + tokens).toBeLessThanOrEqual(1.5 * ratio * retrieved);
        const carried = Math.floor(share * tokens);
        bank = bankAfter(bank, ratio, retrieved, carried);
        sent += retrieved + carried;
        granted += own;
        most = Math.max(most, 20 * (own - retrieved));
        expect(sent).toBeLessThanOrEqual(granted);
        expect(bank).toBeGreaterThanOrEqual(0);
        expect(bank).toBeLessThanOrEqual(Math.min(most, granted - sent));
      }
    });
    fc.assert(life, { numRuns: 500 });
  });
});

const anyStep = fc.record({
  /** Two conversations, and single prompts. */
  chat: fc.nat(2),
  memories: fc.array(fc.tuple(fc.nat(9), fc.nat(7)), { maxLength: 6 }),
  ratio: fc.option(anyRatio, { freq: 8 }),
  /** Tokens beside the retrieved ones that this prompt's own limit allows. */
  extra: fc.option(fc.nat(40)),
  carries: fc.boolean(),
  forget: fc.option(fc.nat(9), { freq: 5 }),
  /** Of the requests so far. */
  evict: fc.option(fc.nat(20)),
  restart: fc.boolean(),
});
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

/** One user's life, and what its prompts that ask with a ratio came to. */
class Life {
  readonly scope = new UserScope();
  readonly #chats = ["one", "two"].map((id) => new Chat(this.scope, id));
  readonly #composed: Composition[] = [];
  readonly #forgotten = new Set<string>();
  #sent = 0;
  #granted = 0;

  take(step: Step, restart: boolean): Composition {
    const { scope } = this;
    const n = this.#composed.length;
    if (step.forget !== null) {
      scope.forget(`m${step.forget}`);
      this.#forgotten.add(`m${step.forget}`);
    }
    const evicted = step.evict === null ? undefined : this.#composed[step.evict];
    if (evicted !== undefined) scope.evict(evicted.leaf);
    if (restart) scope.restart();
    const requested = step.memories.map(([id, fact]) => memory(`m${id}`, `Fact ${fact}.`));
    const policy = step.carries ? carryOver : prefixExact;
    const hard = step.extra === null ? null : this.#freshTokens(step, requested) + step.extra;
    const options = {
      policy,
      ...(step.ratio === null ? {} : { memoryBudgetRatio: step.ratio }),
      ...(hard === null ? {} : { memoryBudgetTokens: hard }),
    };
    const chat = this.#chats[step.chat];
    const composition =
      chat === undefined
        ? scope.compose([user(`Question ${n}`)], requested, options)
        : chat.ask(`Question ${n}`, requested, options);
    chat?.answer(`Answer ${n}`);
    this.#composed.push(composition);
    this.#check(step, composition, hard);
    if (composition.memories.every(({ placement }) => placement !== "carried_over"))
      expectPromises(
        composition,
        requested.filter(({ id }) => !this.#forgotten.has(id)),
      );
    return composition;
  }

  /** What the turn adds that was retrieved: known from a draft, which changes nothing that is planned by. */
  #freshTokens(step: Step, requested: ReturnType<typeof memories>): number {
    const chat = this.#chats[step.chat];
    const messages = [...(chat?.history ?? []), user("Draft")];
    return this.scope.draft(messages, requested, chat === undefined ? {} : { conversation: chat.id }).selection
      .freshTokens;
  }

  #check({ ratio }: Step, { memories: placed, turn }: Composition, hard: number | null): void {
    const tokensOf = (labels: Iterable<number>) =>
      [...labels].reduce((sum, label) => sum + (this.scope.state.register.get(label as never)?.tokens ?? 0), 0);
    const carried = new Set<number>(
      placed.filter(({ placement }) => placement === "carried_over").map(({ label }) => label),
    );
    const added = tokensOf(turn.injection.blocks.map(({ label }) => label));
    const retrieved = added - tokensOf(carried);
    if (ratio === null && hard === null) expect(carried.size).toBe(0);
    if (hard !== null) expect(added).toBeLessThanOrEqual(Math.max(hard, retrieved));
    if (ratio === null) return;
    this.#sent += added;
    this.#granted += Math.floor(ratio * retrieved);
    expect(this.#sent).toBeLessThanOrEqual(this.#granted);
    expect(added).toBeLessThanOrEqual(1.5 * ratio * retrieved);
    expect(this.scope.state.bankedTokens).toBeLessThanOrEqual(this.#granted - this.#sent);
  }
}

describe("prompts that share a memory budget", () => {
  it("never send more than it, whatever is composed, evicted, forgotten and limited beside; and the same after a reload", () => {
    const life = fc.property(fc.array(anyStep, { maxLength: 16 }), (steps) => {
      const [kept, again, reloaded] = [new Life(), new Life(), new Life()];
      for (const step of steps) {
        const composed = JSON.stringify(kept.take(step, false));
        expect(JSON.stringify(again.take(step, false))).toBe(composed);
        expect(JSON.stringify(reloaded.take(step, step.restart))).toBe(composed);
        expect(reloaded.scope.state.bankedTokens).toBe(kept.scope.state.bankedTokens);
      }
    });
    fc.assert(life, { numRuns: 150 });
  });
});
