import { describe, expect, it } from "vitest";
import { ContextIndex } from "../../../src/core/cache/context-index.js";
import { searchPrefix } from "../../../src/core/ordering/prefix-search.js";
import type { Label } from "../../../src/core/text/ids.js";
import { indexEntries } from "./index-entries.js";
import { checkIndex } from "./index-rules.js";
import { HERE, label, labels, ServedSequences } from "./served-sequences.js";

/** Wanted blocks that count how often they are looked at: what a search costs, without a clock. */
class CountedWants extends Map<Label, number> {
  looks = 0;

  override get(wanted: Label): number | undefined {
    this.looks++;
    return super.get(wanted);
  }

  override has(wanted: Label): boolean {
    this.looks++;
    return super.has(wanted);
  }

  override *keys(): MapIterator<Label> {
    for (const wanted of super.keys()) {
      this.looks++;
      yield wanted;
    }
  }
}

describe("context index, bounds", () => {
  it('"1,000 or more children under one node must not fail or slow each search to a scan of all of them"', () => {
    const served = new ServedSequences();
    for (let n = 1; n <= 2_000; n++) served.serve(HERE, labels(n, n + 10_000));
    checkIndex(served.index);
    const wanted = new CountedWants();
    for (let n = 1; n <= 20; n++) wanted.set(label(n * 100), 1);
    wanted.set(label(12_000), 1);
    const match = searchPrefix(served.index.root(HERE), wanted);
    expect(match).toEqual({ labels: [2_000, 12_000], tokens: 2, searchPath: [1_999] });
    // 21 wanted blocks: each looked up among the children, then the runs of the 20 that begin with one.
    expect(wanted.looks).toBeLessThanOrEqual(21 + 2 * 20);
  });

  it('"the same request 300 times adds one leaf, not 300"', () => {
    const served = new ServedSequences();
    const nodes = new Set(Array.from({ length: 300 }, () => served.serve(HERE, labels(3, 1, 2))));
    expect(nodes.size).toBe(1);
    expect(served.index.size).toBe(2);
    expect(indexEntries(served.index, 10).at(-1)).toMatchObject({ labels: [3, 1, 2], uses: 300, live: 300 });
  });

  it('"unbounded maps": never holds more than its bound, and evicts the least recently used', () => {
    const served = new ServedSequences(undefined, new ContextIndex([], 1, 100));
    for (let n = 1; n <= 1_000; n++) {
      served.serve(HERE, labels(n % 7, n, n + 5_000));
      served.index.check();
      if (n % 10 === 0) checkIndex(served.index);
      expect(served.index.size).toBeLessThanOrEqual(100);
    }
    const held = indexEntries(served.index, 1_000);
    expect(held.length).toBeGreaterThan(80);
    expect(Math.min(...held.filter(({ live }) => live > 0).map(({ lastUsed }) => lastUsed))).toBeGreaterThan(900);
  });

  it("never gives up the sequence that is being served for the bound", () => {
    const served = new ServedSequences(undefined, new ContextIndex([], 1, 2));
    for (let n = 1; n <= 5; n++) {
      const node = served.serve(HERE, labels(n));
      checkIndex(served.index);
      expect(searchPrefix(served.index.root(HERE), new Map([[label(n), 1]])).labels).toEqual([n]);
      if (n === 5) expect(served.index.evict(node)).toBe(true);
    }
    expect(served.index.size).toBe(0);
  });
});
