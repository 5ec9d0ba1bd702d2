import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chooseSlot, residencyModel } from "../../../src/core/cache/residency.js";
import { checkIndex } from "./index-rules.js";
import { describeResidencyModel } from "./residency.suite.js";
import { anyPromptEvents, blockTokens, HEAD_TOKENS, type PromptServed, ServedPrompts } from "./served-prompts.js";
import { anySequence, label, labels } from "./served-sequences.js";
import { SlotCache } from "./slot-cache.js";

for (const slots of [1, 3]) describeResidencyModel(`${slots} slots`, residencyModel({ kind: "slots", slots }));

/** A prompt of the tests as tokens: no two prompts have the same behind their blocks. */
function tokensOf({ before, labels: blocks, clock }: PromptServed): number[] {
  const beginning =
    before === null ? many(HEAD_TOKENS, 1) : [...tokensOf(before), ...many(7, 2 + before.clock * 1_000)];
  const own = blocks.flatMap((block) => many(blockTokens(block), 10 * block));
  return [...beginning, ...own, ...many(4, -clock)];
}

const many = (length: number, token: number) => Array.from({ length }, () => token);

describe("residency: slots", () => {
  it("expects what the slots hold, prompt by prompt, and no more than them", () => {
    // At least one block: the tokens after none are unknown, and a tenth of a slot's tokens would differ.
    const blocksAsked = anySequence.filter(({ length }) => length > 0);
    const asked = fc.record({ labels: blocksAsked, follows: fc.option(fc.nat(30), { freq: 3 }) });
    const life = fc.property(fc.array(asked, { maxLength: 30 }), fc.integer({ min: 1, max: 4 }), (requests, slots) => {
      const prompts = new ServedPrompts(residencyModel({ kind: "slots", slots }), 1_000);
      const engine = new SlotCache(slots);
      for (const { labels: blocks, follows } of requests) {
        // Only one question of those asked with the same blocks is gone on from: here anchors do not tell them apart.
        const named = follows === null ? undefined : prompts.served[follows];
        const before = prompts.served.find(
          (one) => one.anchor === named?.anchor && `${one.labels}` === `${named.labels}`,
        );
        const served = prompts.serve(blocks, before ?? null);
        checkIndex(prompts.index);
        expect(served.expected).toBe(engine.serve(tokensOf(served)));
      }
    });
    fc.assert(life, { numRuns: 500 });
  });

  it("holds one prompt for each slot, whatever was held before", () => {
    fc.assert(
      fc.property(anyPromptEvents, fc.integer({ min: 1, max: 4 }), (events, slots) => {
        const prompts = new ServedPrompts(residencyModel({ kind: "all" }), 1_000);
        for (const event of events) prompts.apply(event);
        residencyModel({ kind: "slots", slots }).expire(prompts.index, prompts.now);
        checkIndex(prompts.index);
        const held = [...prompts.index.ends()].reduce((sum, { live }) => sum + live, 0);
        expect(held).toBeLessThanOrEqual(slots);
      }),
    );
  });

  it("lets the end of a prompt go that another one overwrote, and keeps what both begin with", () => {
    const prompts = new ServedPrompts(residencyModel({ kind: "slots", slots: 2 }));
    const first = prompts.serve(labels(7, 8, 1));
    const second = prompts.serve(labels(7, 8, 2));
    expect(second.expected).toBe(HEAD_TOKENS + blockTokens(label(7)) + blockTokens(label(8)));
    expect([first, second].map((prompt) => prompts.holds(prompt))).toEqual([false, true]);
  });

  it("refuses a number of slots that no engine has", () => {
    for (const slots of [0, 1.5, Number.NaN])
      expect(() => residencyModel({ kind: "slots", slots })).toThrow("slots is");
  });
});

describe("the slot for a prompt", () => {
  it("is always one of the free ones, and the least recently used of equal matches", () => {
    const any = fc.record({
      tokens: fc.nat(50),
      shared: fc.nat(50),
      lastUsed: fc.nat(20),
    });
    fc.assert(
      fc.property(fc.array(any, { minLength: 1, maxLength: 6 }), (free) => {
        const chosen = free[chooseSlot(free) ?? -1];
        if (chosen === undefined) throw new Error("none was chosen");
        const matches = free.filter((other) => other.shared > other.tokens / 10);
        const most = Math.max(...matches.map(({ shared }) => shared));
        const wanted = matches.length === 0 ? free : matches.filter(({ shared }) => shared === most);
        expect(wanted).toContain(chosen);
        expect(chosen.lastUsed).toBe(Math.min(...wanted.map(({ lastUsed }) => lastUsed)));
      }),
    );
  });
});
