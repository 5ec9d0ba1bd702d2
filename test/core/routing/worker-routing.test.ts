import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { routeToWorkers, type WorkerHistory } from "../../../src/core/routing/worker-routing.js";
import { anyBatch } from "../batch/batches.js";
import { label } from "../cache/served-sequences.js";

const NAMES = ["north", "south", "west"];

function request(key: string, ...blocks: readonly number[]) {
  return { key, blocks: blocks.map((block) => ({ label: label(block), tokens: 10 })) };
}

describe("routing to workers", () => {
  it("gives block sets to the worker that has processed most of them", () => {
    const first = routeToWorkers([request("ana", 1, 2), request("ana", 7, 8), request("ana", 4, 5)], NAMES, []);
    expect(first.workers).toEqual(["north", "south", "west"]);
    const next = routeToWorkers(
      [request("ana", 8, 7, 1), request("ana", 5, 4, 8), request("ana", 1, 2, 9)],
      NAMES,
      first.histories,
    );
    expect(next.workers).toEqual(["south", "west", "north"]);
  });

  it("does not take another key's blocks for the same", () => {
    const { histories } = routeToWorkers([request("ana", 1), request("ben", 9), request("cho", 9)], NAMES, []);
    const { workers } = routeToWorkers(
      [request("cho", 1, 9), request("ana", 1, 9), request("ben", 9, 1)],
      NAMES,
      histories,
    );
    expect(workers).toEqual(["west", "north", "south"]);
  });

  it("keeps every worker below (1 + slack) times the mean plus the largest request, batch after batch", () => {
    const anySlack = fc.constantFrom(0, 0.1, 0.5);
    const balanced = fc.property(fc.array(anyBatch, { minLength: 1, maxLength: 4 }), anySlack, (batches, slack) => {
      let histories: readonly WorkerHistory[] = [];
      let largest = 0;
      for (const batch of batches) {
        for (const { blocks } of batch) {
          largest = Math.max(
            largest,
            blocks.reduce((sum, { tokens }) => sum + tokens, 0),
          );
        }
        const routing = routeToWorkers(batch, NAMES, histories, { slack });
        expect(routeToWorkers(structuredClone(batch), NAMES, histories, { slack })).toEqual(routing);
        expect(routing.workers).toHaveLength(batch.length);
        histories = JSON.parse(JSON.stringify(routing.histories));
        expect(histories).toEqual(routing.histories);
        const mean = histories.reduce((sum, { tokens }) => sum + tokens, 0) / NAMES.length;
        for (const { tokens } of histories) expect(tokens).toBeLessThanOrEqual((1 + slack) * mean + largest + 1e-6);
      }
    });
    fc.assert(balanced, { numRuns: 200 });
  });

  it("refuses no workers, or two of one name", () => {
    expect(() => routeToWorkers([], [], [])).toThrow(RangeError);
    expect(() => routeToWorkers([], ["north", "north"], [])).toThrow(RangeError);
  });
});
