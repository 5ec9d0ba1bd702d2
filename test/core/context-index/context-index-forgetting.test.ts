import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ContextIndex } from "../../../src/core/context-index/context-index.js";
import type { Label } from "../../../src/core/text/ids.js";
import { anySequence, HERE, labels } from "./served-sequences.js";

describe("context index, forgetting", () => {
  const wanting = (held: readonly Label[]) => new Map(held.map((block) => [block, 1]));
  const servedAfter = (sequences: readonly (readonly Label[])[]) => {
    const index = new ContextIndex([], 1, 1_000);
    for (const [at, sequence] of sequences.entries()) index.insert(HERE, sequence, at + 1);
    return index;
  };

  it("cuts a sequence where the forgotten block stood, and keeps what stood before it", () => {
    const index = servedAfter([labels(1, 2, 3, 4)]);
    index.forget(new Set(labels(3)));
    index.check();
    expect(index.search(HERE, wanting(labels(1, 2, 3, 4))).labels).toEqual([1, 2]);
  });

  it("removes everything behind a forgotten block and nothing else", () => {
    const life = fc.property(fc.array(anySequence, { maxLength: 12 }), anySequence, (sequences, forgotten) => {
      const gone = new Set(forgotten.slice(0, 2));
      const index = servedAfter(sequences);
      index.forget(gone);
      index.check();
      for (const sequence of sequences) {
        const cut = sequence.findIndex((block) => gone.has(block));
        const found = index.search(HERE, wanting(sequence)).labels;
        expect(found.some((block) => gone.has(block))).toBe(false);
        if (cut < 0) expect(found).toHaveLength(sequence.length);
      }
      for (const { labels: held } of index.entries(1_000)) expect(held.some((block) => gone.has(block))).toBe(false);
    });
    fc.assert(life, { numRuns: 300 });
  });

  it("forgets the same after a reload, whichever of two branches comes first", () => {
    const kept = servedAfter([labels(9, 2, 3, 4), labels(9, 1), labels(9, 2, 3, 5)]);
    const reloaded = new ContextIndex(
      kept.drain().upserted.toSorted((a, b) => a.id - b.id),
      kept.nextId,
      1_000,
    );
    for (const index of [kept, reloaded]) {
      index.forget(new Set(labels(1, 3)));
      index.check();
    }
    expect(reloaded.entries(10)).toEqual(kept.entries(10));
  });

  it("is usable after everything in it was forgotten", () => {
    const index = servedAfter([labels(1, 2), labels(2, 1), labels(2)]);
    index.forget(new Set(labels(1, 2)));
    index.check();
    index.insert(HERE, labels(3), 9);
    index.check();
    expect(index.search(HERE, wanting(labels(3))).labels).toEqual([3]);
  });
});
