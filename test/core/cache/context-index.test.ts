import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ContextIndex } from "../../../src/core/cache/context-index.js";
import { searchPrefix } from "../../../src/core/ordering/prefix-search.js";
import type { Label } from "../../../src/core/text/ids.js";
import { indexEntries } from "./index-entries.js";
import { checkIndex } from "./index-rules.js";
import { anyEvents, anySequence, ELSEWHERE, HERE, label, labels, ServedSequences } from "./served-sequences.js";

/** What an index holds, as sequences with their search paths. */
function shapeOf(index: ContextIndex): [readonly number[], readonly Label[]][] {
  return indexEntries(index, 1_000).map(({ searchPath, labels: held }) => [searchPath, held]);
}

function wanting(...numbers: readonly number[]): Map<Label, number> {
  return new Map(numbers.map((n) => [label(n), 1]));
}

describe("context index", () => {
  it("splits a node where a sequence leaves it, and gives each branch its own position", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    served.serve(HERE, labels(1, 2, 4));
    served.serve(HERE, labels(5));
    expect(shapeOf(served.index)).toEqual([
      [[], []],
      [[0], [1, 2]],
      [
        [0, 0],
        [1, 2, 3],
      ],
      [
        [0, 1],
        [1, 2, 4],
      ],
      [[1], [5]],
    ]);
  });

  it("keeps anchors apart", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2));
    expect(served.index.hasAnchor(ELSEWHERE)).toBe(false);
    expect(searchPrefix(served.index.root(ELSEWHERE), wanting(1, 2)).tokens).toBe(0);
    served.serve(ELSEWHERE, labels(2, 1));
    expect(searchPrefix(served.index.root(HERE), wanting(1, 2)).labels).toEqual([1, 2]);
    expect(searchPrefix(served.index.root(ELSEWHERE), wanting(1, 2)).labels).toEqual([2, 1]);
  });

  it("keeps the tree's rules and every sequence that is still held, whatever happens in whatever order", () => {
    const life = fc.property(anyEvents, (events) => {
      const served = new ServedSequences();
      for (const event of events) {
        served.apply(event);
        checkIndex(served.index);
        for (const { anchor, labels: held } of served.held) {
          expect(searchPrefix(served.index.root(anchor), wanting(...held)).labels).toHaveLength(held.length);
        }
        for (const entry of indexEntries(served.index, 1_000)) {
          expect(served.holds(HERE, entry.labels) || served.holds(ELSEWHERE, entry.labels)).toBe(true);
        }
      }
      expect(indexEntries(served.index, 1_000).reduce((sum, { live }) => sum + live, 0)).toBe(served.held.length);
    });
    fc.assert(life);
  });

  it("removes everything after a forgotten block and nothing else", () => {
    const life = fc.property(fc.array(anySequence, { maxLength: 12 }), anySequence, (sequences, forgotten) => {
      const gone = new Set(forgotten.slice(0, 2));
      const served = new ServedSequences();
      for (const sequence of sequences) served.serve(HERE, sequence);
      served.index.forget(gone);
      checkIndex(served.index);
      for (const sequence of sequences) {
        const found = searchPrefix(served.index.root(HERE), wanting(...sequence)).labels;
        expect(found.some((block) => gone.has(block))).toBe(false);
        if (!sequence.some((block) => gone.has(block))) expect(found).toHaveLength(sequence.length);
      }
      for (const { labels: held } of indexEntries(served.index, 1_000))
        expect(held.some((block) => gone.has(block))).toBe(false);
    });
    fc.assert(life, { numRuns: 300 });
  });
});
