import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BatchRequest, type PlannedRequest, turnsInOrder } from "../../../src/core/batch/batch-plan.js";
import { BATCH_PLANNERS, planBatch } from "../../../src/core/compose/policies.js";
import type { Label } from "../../../src/core/text/ids.js";
import { label } from "../cache/served-sequences.js";
import { anyBatch, anyPlainBatch } from "./batches.js";

const sorted = (blocks: readonly Label[]) => [...blocks].sort((a, b) => a - b);

/** Cached tokens of a plan: prefixes of earlier prompts with the same key; the cache holds the last so many prompts. */
function cachedTokens(plan: readonly PlannedRequest[], batch: readonly BatchRequest[], held: number): number {
  const tokensOf = (request: BatchRequest | undefined, block: Label) =>
    request?.blocks.find((each) => each.label === block)?.tokens ?? 0;
  return plan.reduce((sum, { request, order, rank }) => {
    const hits = plan.slice(Math.max(0, rank - held), rank).map((earlier) => {
      if (batch[earlier.request]?.key !== batch[request]?.key) return 0;
      const differs = order.findIndex((block, at) => earlier.order[at] !== block);
      const shared = differs < 0 ? order : order.slice(0, differs);
      return shared.reduce((tokens, block) => tokens + tokensOf(batch[request], block), 0);
    });
    return sum + Math.max(0, ...hits);
  }, 0);
}

function batchOf(...sets: readonly (readonly number[])[]): BatchRequest[] {
  return sets.map((set) => ({ key: "ana", blocks: set.map((block) => ({ label: label(block), tokens: 10 })) }));
}

describe.each(BATCH_PLANNERS)("a batch planned by %s", (planner) => {
  it("executes every request once, each with exactly its own blocks, and a conversation's in their order", () => {
    const complete = fc.property(anyBatch, (batch) => {
      const plan = planBatch(batch, planner).requests;
      expect(plan.map(({ rank }) => rank)).toEqual([...batch.keys()]);
      expect(plan.map(({ request }) => request).sort((a, b) => a - b)).toEqual([...batch.keys()]);
      for (const { request, order } of plan) {
        expect(sorted(order)).toEqual(sorted(batch[request]?.blocks.map((block) => block.label) ?? []));
      }
      for (const conversation of ["x", "y"]) {
        const turns = plan.filter(({ request }) => batch[request]?.conversation === conversation);
        expect(turns).toEqual(turns.toSorted((a, b) => a.request - b.request));
      }
    });
    fc.assert(complete, { numRuns: 300 });
  });

  it("is the same every time, and of one key's blocks whatever the others' are", () => {
    const independent = fc.property(anyPlainBatch, (batch) => {
      const plan = planBatch(batch, planner).requests;
      expect(planBatch(structuredClone(batch), planner).requests).toEqual(plan);
      for (const key of ["ana", "ben"]) {
        const own = [...batch.keys()].filter((at) => batch[at]?.key === key);
        const alone = planBatch(
          own.map((at) => batch[at] as BatchRequest),
          planner,
        ).requests;
        for (const { request, order } of alone) {
          expect(plan.find((each) => each.request === own[request])?.order).toEqual(order);
        }
      }
    });
    fc.assert(independent, { numRuns: 200 });
  });

  it("gives requests of different keys no common prefix of a search path", () => {
    const apart = fc.property(anyPlainBatch, (batch) => {
      const keysAt = new Map<number, Set<string>>();
      for (const { request, searchPath } of planBatch(batch, planner).requests) {
        const [first] = searchPath;
        if (first === undefined) continue;
        keysAt.set(first, (keysAt.get(first) ?? new Set()).add(batch[request]?.key ?? ""));
      }
      for (const keys of keysAt.values()) expect(keys.size).toBe(1);
    });
    fc.assert(apart, { numRuns: 200 });
  });

  it("refuses a request that lists a block twice", () => {
    expect(() => planBatch(batchOf([1, 1]), planner)).toThrow("twice");
  });
});

it("a turn that waited for the one before it runs right after that", () => {
  const requests = [{ conversation: "a" }, {}, { conversation: "a" }, { conversation: "a" }, {}];
  expect(turnsInOrder([3, 2, 4, 0, 1], requests)).toEqual([4, 0, 2, 3, 1]);
});

describe("shared prefixes", () => {
  it("reuse with room for all they share between two prompts what an endless cache would, in the order planned", () => {
    // Depth first: what a prompt shares with any earlier one, it shares with the one just before.
    const neighbours = fc.property(anyPlainBatch, (batch) => {
      const plan = planBatch(batch).requests;
      expect(cachedTokens(plan, batch, 1)).toBe(cachedTokens(plan, batch, batch.length));
    });
    fc.assert(neighbours, { numRuns: 300 });
  });

  it("find the best tree of three requests", () => {
    const three = fc.tuple(anySet(), anySet(), anySet());
    const best = fc.property(three, (sets) => {
      const batch = batchOf(...sets);
      const common = (...of: readonly (readonly number[])[]) =>
        10 * (of[0]?.filter((block) => of.every((set) => set.includes(block))).length ?? 0);
      const [a, b, c] = sets;
      const most = common(a, b, c) + Math.max(common(a, b), common(a, c), common(b, c));
      expect(cachedTokens(planBatch(batch).requests, batch, 3)).toBe(most);
    });
    fc.assert(best, { numRuns: 200 });
  });

  function anySet() {
    return fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 7 });
  }
});
