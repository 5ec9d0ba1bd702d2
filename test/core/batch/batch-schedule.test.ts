import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Urgency, underUrgency } from "../../../src/core/batch/batch-plan.js";
import { anyBatch } from "./batches.js";

const sequenced = anyBatch.chain((batch) =>
  fc.tuple(
    fc.constant<readonly Urgency[]>(batch),
    fc.shuffledSubarray([...batch.keys()], { minLength: batch.length, maxLength: batch.length }),
  ),
);

describe("a sequence under priorities, deadlines and conversations", () => {
  it("executes higher priorities first, then earlier deadlines, then what has none; in a class as it was", () => {
    const requests = [{ deadline: 9 }, { priority: 1 }, {}, { deadline: 3 }, { priority: 1, deadline: 50 }, {}];
    expect(underUrgency([5, 4, 3, 2, 1, 0], requests)).toEqual([4, 1, 3, 0, 5, 2]);
  });

  it("makes a turn wait for the earlier one, and executes it right behind", () => {
    const requests = [{ conversation: "a" }, {}, { conversation: "a" }, { conversation: "a" }, {}];
    expect(underUrgency([3, 2, 4, 0, 1], requests)).toEqual([4, 0, 2, 3, 1]);
  });

  it("executes each once, conversations in order, and nothing before what is more urgent", () => {
    const kept = fc.property(sequenced, ([requests, sequence]) => {
      const executed = underUrgency(sequence, requests);
      expect([...executed].sort((a, b) => a - b)).toEqual([...requests.keys()]);
      const rank = new Map(executed.map((request, at) => [request, at]));
      const rankOf = (request: number) => rank.get(request) ?? -1;
      for (const [a, first] of requests.entries()) {
        for (const [b, second] of requests.entries()) {
          if (a < b && first.conversation !== undefined && first.conversation === second.conversation) {
            expect(rankOf(a)).toBeLessThan(rankOf(b));
          }
          const isMoreUrgent =
            (first.priority ?? 0) > (second.priority ?? 0) ||
            ((first.priority ?? 0) === (second.priority ?? 0) &&
              (first.deadline ?? Number.POSITIVE_INFINITY) < (second.deadline ?? Number.POSITIVE_INFINITY));
          // One that a later turn waits for may be drawn forward by it.
          if (isMoreUrgent && second.conversation === undefined) expect(rankOf(a)).toBeLessThan(rankOf(b));
        }
      }
    });
    fc.assert(kept, { numRuns: 300 });
  });
});
