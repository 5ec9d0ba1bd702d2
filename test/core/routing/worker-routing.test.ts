import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BatchWorker, routeToWorkers } from "../../../src/core/routing/worker-routing.js";
import { anyBatch } from "../batch/batches.js";
import { label } from "../cache/served-sequences.js";

const NAMES = ["north", "south", "west"];
const IDLE: readonly BatchWorker[] = NAMES.map((name) => ({ name, tokens: 0, processed: [] }));

type Request = Parameters<typeof routeToWorkers>[0][number];

function request(key: string, ...blocks: readonly number[]): Request {
  return { key, blocks: blocks.map((block) => ({ label: label(block), tokens: 10 })) };
}

const tokensIn = ({ blocks }: Request) => blocks.reduce((sum, { tokens }) => sum + tokens, 0);

/** The workers after a batch. */
function workersAfter(
  workers: readonly BatchWorker[],
  requests: readonly Request[],
  names: readonly string[],
): BatchWorker[] {
  return workers.map(({ name, tokens, processed }) => {
    const own = requests.filter((_, at) => names[at] === name);
    const blocks = own.flatMap(({ key, blocks: taken }) => taken.map((block) => ({ key, label: block.label })));
    return {
      name,
      tokens: own.reduce((sum, one) => sum + tokensIn(one), tokens),
      processed: [...processed, ...blocks],
    };
  });
}

describe("routing to workers", () => {
  it("gives block sets to the worker that has processed most of them", () => {
    const first = [request("ana", 1, 2), request("ana", 7, 8), request("ana", 4, 5)];
    const routed = routeToWorkers(first, IDLE);
    expect(routed).toEqual(["north", "south", "west"]);
    const next = [request("ana", 8, 7, 1), request("ana", 5, 4, 8), request("ana", 1, 2, 9)];
    expect(routeToWorkers(next, workersAfter(IDLE, first, routed))).toEqual(["south", "west", "north"]);
  });

  it("does not take another key's blocks for the same", () => {
    const first = [request("ana", 1), request("ben", 9), request("cho", 9)];
    const next = [request("cho", 1, 9), request("ana", 1, 9), request("ben", 9, 1)];
    const workers = workersAfter(IDLE, first, routeToWorkers(first, IDLE));
    expect(routeToWorkers(next, workers)).toEqual(["west", "north", "south"]);
  });

  it("keeps every worker below 1.1 times the mean plus the largest request, batch after batch", () => {
    const balanced = fc.property(fc.array(anyBatch, { minLength: 1, maxLength: 4 }), (batches) => {
      let workers = IDLE;
      for (const batch of batches) {
        const names = routeToWorkers(batch, workers);
        expect(routeToWorkers(structuredClone(batch), workers)).toEqual(names);
        workers = workersAfter(workers, batch, names);
        const mean = workers.reduce((sum, { tokens }) => sum + tokens, 0) / NAMES.length;
        const largest = Math.max(0, ...batches.flat().map(tokensIn));
        for (const { tokens } of workers) expect(tokens).toBeLessThanOrEqual(1.1 * mean + largest + 1e-6);
      }
    });
    fc.assert(balanced, { numRuns: 200 });
  });
});
