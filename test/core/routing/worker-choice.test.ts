import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type RoutedPrompt, routePrompt, WorkerBlocks, WorkerLoads } from "../../../src/core/routing/worker-routing.js";
import { label, labels } from "../cache/served-sequences.js";

const NAMES = ["north", "south", "west", "east"];
const BLOCK_TOKENS = 500;

function prompt(blocks: readonly number[], history: RoutedPrompt["history"] = null): RoutedPrompt {
  return {
    tokens: blocks.length * BLOCK_TOKENS,
    blocks: blocks.map((block) => ({ label: label(block), tokens: BLOCK_TOKENS })),
    history,
  };
}

/** Routes prompts one after the other, as online requests are. */
function router(names: readonly string[] = NAMES) {
  const processed = new WorkerBlocks([]);
  const loads = new WorkerLoads();
  let now = 0;
  return {
    wait: (ms: number) => {
      now += ms;
    },
    send: (blocks: readonly number[], history: RoutedPrompt["history"] = null): string => {
      const routed = prompt(blocks, history);
      const worker = routePrompt(routed, names, processed, loads, now);
      loads.add(worker, routed.tokens, now);
      processed.take(worker, labels(...blocks));
      return worker;
    },
    loads: () => loads.of(names, now),
  };
}

describe("routing of single prompts", () => {
  it("goes to the worker that holds most of the prompt", () => {
    const { send } = router();
    expect([send([1, 2]), send([7, 8]), send([4, 5, 6])]).toEqual(["north", "south", "west"]);
    expect([send([8, 7, 1]), send([5, 6, 4, 8]), send([1, 2, 9])]).toEqual(["south", "west", "north"]);
  });

  it("lets no load pass 1.1 times the mean by more than the lead and one prompt", () => {
    const anyStep = fc.record({
      blocks: fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 }),
      wait: fc.constantFrom(0, 1, 500, 20_000),
      heldBy: fc.constantFrom(null, ...NAMES),
    });
    const balanced = fc.property(
      fc.array(anyStep, { maxLength: 120 }),
      fc.integer({ min: 1, max: 4 }),
      (steps, size) => {
        const names = NAMES.slice(0, size);
        const { send, wait, loads } = router(names);
        for (const { blocks, wait: ms, heldBy } of steps) {
          wait(ms);
          send(blocks, heldBy === null ? null : { worker: heldBy, tokens: 9_999 });
          const all = loads();
          const mean = all.reduce((sum, load) => sum + load, 0) / names.length;
          for (const load of all) expect(load).toBeLessThanOrEqual(1.1 * mean + 8_192 + 8 * BLOCK_TOKENS + 1e-6);
        }
      },
    );
    fc.assert(balanced, { numRuns: 200 });
  });
});

describe("loads of workers", () => {
  it("halve every ten seconds, and a clock that is set back changes nothing", () => {
    const loads = new WorkerLoads();
    loads.add("north", 800, 0);
    expect(loads.of(["north"], 10_000)).toEqual([400]);
    expect(loads.of(["north"], -5_000)).toEqual([800]);
    loads.add("north", 100, 10_000);
    expect(loads.of(["north"], 20_000)).toEqual([250]);
  });
});
