import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { routeToWorkers, type WorkerHistory } from "../../../src/core/routing/worker-routing.js";
import { anyBatch } from "../batch/batches.js";
import { label } from "../context-index/served-sequences.js";

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

  it("gives a repeated request to the worker that has it as long as the bound allows, one request at a time too", () => {
    let histories: readonly WorkerHistory[] = [];
    const workers = Array.from({ length: 3 }, () => {
      const routing = routeToWorkers([request("ana", 1, 2)], ["north", "south"], histories);
      histories = routing.histories;
      return routing.workers[0];
    });
    // 40 tokens are within 1.1 times the mean of 20, plus the largest request; 60 would not be within 1.1 times 30, plus 20.
    expect(workers).toEqual(["north", "north", "south"]);
  });

  it("lets a new worker begin at the mean, and drops one that is gone", () => {
    const { histories } = routeToWorkers([request("ana", 1, 2), request("ana", 3, 4)], ["north", "south"], []);
    const next = routeToWorkers([request("ana", 1, 2)], ["north", "east"], histories, { slack: 1 });
    expect(next.workers).toEqual(["north"]);
    expect(next.histories.map(({ name, tokens }) => [name, tokens])).toEqual([
      ["north", 40],
      ["east", 20],
    ]);
  });

  it("remembers the blocks processed last, as many as it may", () => {
    const requests = [request("ana", 1, 2), request("ana", 3), request("ana", 1, 4)];
    const { histories } = routeToWorkers(requests, ["north"], [], { maxRemembered: 3 });
    expect(histories[0]?.processed.map((block) => block.label)).toEqual([3, 1, 4]);
  });

  it("refuses no workers, or two of one name", () => {
    expect(() => routeToWorkers([], [], [])).toThrow(RangeError);
    expect(() => routeToWorkers([], ["north", "north"], [])).toThrow(RangeError);
  });
});
