import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  MAX_WORKER_BLOCKS,
  MAX_WORKERS,
  WorkerBlocks,
  type WorkerRow,
} from "../../../src/core/routing/worker-routing.js";
import { label, labels } from "../cache/served-sequences.js";

describe("what workers processed", () => {
  it("holds so many blocks of a worker, those processed last, and so many workers", () => {
    const workers = new WorkerBlocks([]);
    workers.take("a", labels(...Array.from({ length: MAX_WORKER_BLOCKS }, (_, n) => n + 1)));
    workers.take("a", labels(1, 9_999));
    expect(workers.of("a").size).toBe(MAX_WORKER_BLOCKS);
    expect(workers.of("a").has(label(2))).toBe(false);
    expect(workers.of("a").has(label(1))).toBe(true);
    for (let n = 0; n < MAX_WORKERS; n++) workers.take(`worker-${n}`, labels(1));
    expect(workers.size).toBe(MAX_WORKERS);
    expect(workers.of("a").size).toBe(0);
  });

  it("is the same when it is loaded again, at whatever point", () => {
    const anyStep = fc.record({
      name: fc.constantFrom("a", "b", "c"),
      labels: fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }),
      forgets: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 20 }), (steps) => {
        const steady = new WorkerBlocks([]);
        let reloaded = new WorkerBlocks([]);
        const rows = new Map<number, WorkerRow>();
        for (const step of steps) {
          for (const workers of [steady, reloaded]) {
            if (step.forgets) workers.forget(new Set(labels(...step.labels)));
            else workers.take(step.name, labels(...step.labels));
          }
          const { upserted, removed } = structuredClone(reloaded.drain());
          for (const id of removed) rows.delete(id);
          for (const row of upserted) rows.set(row.id, row);
          reloaded = new WorkerBlocks([...rows.values()].sort((x, y) => x.id - y.id));
          for (const name of ["a", "b", "c"]) expect([...reloaded.of(name)]).toEqual([...steady.of(name)]);
          expect(reloaded.size).toBe(steady.size);
        }
      }),
    );
  });
});
