import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { orderAfter, plannedOrder, prefixExact } from "../../../src/core/ordering/ordering.js";
import type { Label } from "../../../src/core/text/ids.js";
import { anyLife, anyRequest, anySequence, ServedSequences } from "../cache/served-sequences.js";

const textOf = (label: Label) => `text of ${label}`;

describe("an order by a batch plan", () => {
  it("places the planned blocks first, and the others as prefix-exact does behind them", () => {
    const behind = fc.property(anyLife, anyRequest, anySequence, (life, request, plan) => {
      const { known } = ServedSequences.composedBy(prefixExact, life);
      const retrieved = request.retrieved.map(({ label }) => label);
      const front = plan.filter((label) => retrieved.includes(label));
      const { labels, carried } = plannedOrder(plan.map(textOf), textOf).order(request, known);
      expect([...labels].sort()).toEqual([...retrieved].sort());
      expect(carried.size).toBe(0);
      expect(labels).toEqual(
        front.length === 0
          ? prefixExact.order(request, known).labels
          : [...front, ...orderAfter(front, request, known)],
      );
    });
    fc.assert(behind, { numRuns: 500 });
  });

  it("follows what was served behind the planned blocks, the most relevant at each step", () => {
    let followed = 0;
    const behind = fc.property(anyLife, anyRequest, fc.nat(3), (life, request, planned) => {
      const { known } = ServedSequences.composedBy(prefixExact, life);
      const retrieved = request.retrieved.map(({ label }) => label);
      const sequence = prefixExact.order(request, known).labels.slice(0, planned);
      const labels = orderAfter(sequence, request, known);
      for (const label of labels) {
        const left = retrieved.filter((other) => !sequence.includes(other));
        const isServed = (other: Label) =>
          known.index.heldBlocks(request.anchor, [...sequence, other]) > sequence.length;
        const next = left.find(isServed);
        if (next === undefined) break;
        expect(label).toBe(next);
        sequence.push(label);
        followed++;
      }
    });
    fc.assert(behind, { numRuns: 500 });
    expect(followed).toBeGreaterThan(0);
  });
});
