import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ContextIndex } from "../../../src/core/cache/context-index.js";
import { searchPrefix } from "../../../src/core/ordering/prefix-search.js";
import type { Label } from "../../../src/core/text/ids.js";
import { indexEntries } from "./index-entries.js";
import { checkIndex } from "./index-rules.js";
import { anySequence, HERE } from "./served-sequences.js";

describe("context index, forgetting", () => {
  const wanting = (held: readonly Label[]) => new Map(held.map((block) => [block, 1]));
  const servedAfter = (sequences: readonly (readonly Label[])[]) => {
    const index = new ContextIndex([], 1, 1_000);
    for (const [at, sequence] of sequences.entries()) index.insert(HERE, sequence, at + 1);
    return index;
  };

  it("removes everything behind a forgotten block and nothing else", () => {
    const life = fc.property(fc.array(anySequence, { maxLength: 12 }), anySequence, (sequences, forgotten) => {
      const gone = new Set(forgotten.slice(0, 2));
      const index = servedAfter(sequences);
      index.forget(gone);
      checkIndex(index);
      for (const sequence of sequences) {
        const cut = sequence.findIndex((block) => gone.has(block));
        const found = searchPrefix(index.root(HERE), wanting(sequence)).labels;
        expect(found.some((block) => gone.has(block))).toBe(false);
        if (cut < 0) expect(found).toHaveLength(sequence.length);
      }
      for (const { labels: held } of indexEntries(index, 1_000))
        expect(held.some((block) => gone.has(block))).toBe(false);
    });
    fc.assert(life, { numRuns: 300 });
  });
});
