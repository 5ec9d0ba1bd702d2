import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { IndexNode } from "../../../src/core/cache/index-node.js";
import type { ResidencyModel } from "../../../src/core/cache/residency.js";
import type { Label } from "../../../src/core/text/ids.js";
import { indexEntries } from "./index-entries.js";
import { checkIndex } from "./index-rules.js";
import { anyPromptEvents, type PromptEvent, ServedPrompts } from "./served-prompts.js";
import { labels } from "./served-sequences.js";

const BOUND = 30;
const byId = (a: IndexNode, b: IndexNode) => a.id - b.id;

/** The behaviour of every residency model. */
export function describeResidencyModel(name: string, model: ResidencyModel): void {
  const lived = (events: readonly PromptEvent[]) => {
    const prompts = new ServedPrompts(model, BOUND);
    for (const event of events) prompts.apply(event);
    return prompts;
  };

  describe(`residency: ${name}`, () => {
    it("keeps the tree's rules, its bound and its rows whatever is served, evicted, reported and forgotten", () => {
      const life = fc.property(anyPromptEvents, (events) => {
        const prompts = new ServedPrompts(model, BOUND);
        for (const event of events) {
          prompts.apply(event);
          checkIndex(prompts.index);
          expect(prompts.rows.size).toBe(prompts.index.size);
        }
      });
      fc.assert(life, { numRuns: 500 });
    });

    it("only removes, never what a remaining prefix extends, and nothing more when asked again at once", () => {
      const life = fc.property(anyPromptEvents, fc.integer({ min: 0, max: 20_000 }), (events, later) => {
        const prompts = lived(events);
        const before = indexEntries(prompts.index, 1_000).map((entry) => entry.labels);
        const held = prompts.served.filter((prompt) => prompts.holds(prompt));
        prompts.now += later;
        prompts.expire();
        checkIndex(prompts.index);
        const beginsOne = (left: readonly Label[]) =>
          before.some((one) => left.every((block, at) => one[at] === block));
        for (const { labels: left } of indexEntries(prompts.index, 1_000)) expect(beginsOne(left)).toBe(true);
        for (const prompt of prompts.served) if (prompts.holds(prompt)) expect(held).toContain(prompt);
        const left = indexEntries(prompts.index, 1_000);
        prompts.expire();
        expect(indexEntries(prompts.index, 1_000)).toEqual(left);
        for (const { parent } of prompts.rows.values())
          if (parent !== null) expect(prompts.rows.has(parent)).toBe(true);
      });
      fc.assert(life, { numRuns: 300 });
    });

    it("goes on after a reload as if there had been none, in whatever order the rows come back", () => {
      const order = fc.constantFrom<(a: IndexNode, b: IndexNode) => number>(byId, (a, b) => b.id - a.id);
      const life = fc.property(anyPromptEvents, anyPromptEvents, order, (events, more, rowOrder) => {
        const [kept, reloaded] = [lived(events), lived(events)];
        reloaded.reload(rowOrder);
        for (const event of more) {
          kept.apply(event);
          reloaded.apply(event);
          checkIndex(reloaded.index);
          expect([...reloaded.rows.values()].sort(byId)).toEqual([...kept.rows.values()].sort(byId));
        }
      });
      fc.assert(life, { numRuns: 300 });
    });

    it("does not bring back what an eviction named or a report showed to be gone", () => {
      const prompts = new ServedPrompts(model);
      const [one, two] = [prompts.serve(labels(1, 2)), prompts.serve(labels(3))];
      prompts.index.evict(one.node);
      prompts.expire();
      expect(prompts.holds(one)).toBe(false);
      prompts.index.miss(prompts.serve(labels(4)).node, 3, 0, prompts.now);
      prompts.expire();
      expect(prompts.holds(two)).toBe(false);
      checkIndex(prompts.index);
    });
  });
}
