import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ContextIndex } from "../../../src/core/cache/context-index.js";
import { blocksKey } from "../../../src/core/ordering/ordering.js";
import {
  contextPilot,
  NO_PUBLISHED_ROWS,
  PublishedKnowledge,
  type PublishedRows,
} from "../../../src/core/published/published-knowledge.js";
import type { Label, NodeId } from "../../../src/core/text/ids.js";
import { indexEntries } from "../cache/index-entries.js";
import { anyLife, HERE, labels, ServedSequences } from "../cache/served-sequences.js";
import { entriesOf, prefixesOf, ticket } from "./clustered-contexts.js";

/** The rows of a scope that has used both kinds. */
function stored(): PublishedRows {
  const scope = new PublishedKnowledge(NO_PUBLISHED_ROWS, 1_000);
  scope.clusters.insert(labels(1, 2, 3), 1);
  scope.clusters.insert(labels(1, 2, 4), 2);
  scope.accesses.take(labels(1, 2, 3), ticket(1));
  return structuredClone(scope.stored());
}

describe("what the published policies keep of a scope", () => {
  it("forgets and evicts what was stored", () => {
    const rows = stored();
    const forgetting = new PublishedKnowledge(rows, 1_000);
    forgetting.forget(new Set(labels(2)));
    expect(JSON.stringify(entriesOf(forgetting.clusters))).not.toContain("2,");
    expect(forgetting.accesses.countOf(labels(2)[0] as never)).toBe(0);
    expect(forgetting.drain().accesses.upserted).toHaveLength(1);
    const evicting = new PublishedKnowledge(rows, 1_000);
    evicting.evicted({ labels: labels(1, 2, 4), held: 2 });
    expect(evicting.clusters.search(labels(1, 2, 4)).blocks).not.toContain(4);
  });
});

describe("what the published policies keep, beside the context index", () => {
  it("holds no context of which the engine lost a prompt, whatever was composed and evicted", () => {
    const lives = fc.property(anyLife, (life) => {
      const served = ServedSequences.composedBy(contextPilot, life);
      const { published } = served.known;
      const held = new Set([...servedPaths(served)].map((path) => blocksKey(path)));
      published.clusters.check();
      for (const { isLeaf, blocks } of entriesOf(published.clusters))
        if (isLeaf) expect(held.has(blocksKey(blocks))).toBe(true);
    });
    fc.assert(lives, { numRuns: 300 });
  });

  it.each<[string, (index: ContextIndex, ends: readonly NodeId[]) => void]>([
    ["evictions by id", (index, ends) => ends.forEach((end) => void index.evict(end))],
    ["a TTL", (index) => index.dropUnusedSince(1_000)],
    ["an engine's event", (index, [end]) => index.lose(end as NodeId, 20)],
    ["a report of a miss", (index, [, end]) => index.miss(end as NodeId, 2, 0, 1_000)],
  ])("loses what %s takes from that, and keeps the counts", (_what, lose) => {
    const published = new PublishedKnowledge(NO_PUBLISHED_ROWS, 100);
    const index = new ContextIndex([], 1, 100, () => 10, published);
    const [first, second] = [labels(1, 2, 3), labels(1, 2, 4)];
    const ends = [first, second].map((sequence, at) => {
      published.clusters.insert(sequence, at + 1);
      published.accesses.take(sequence, ticket(at + 1));
      return index.insert(HERE, sequence, at + 1, { at: 1, follows: null, tokensBefore: 0, tokensBehind: 0 });
    });
    expect(prefixesOf(published.accesses)).toEqual([[1, 2]]);
    lose(index, ends);
    const isHeld = (sequence: readonly Label[]) => index.heldBlocks(HERE, sequence) === sequence.length;
    expect(isHeld(first)).toBe(false);
    for (const sequence of [first, second]) expect(published.clusters.leafOf(sequence) !== null).toBe(isHeld(sequence));
    const left = labels(1, 2).slice(0, index.heldBlocks(HERE, first));
    expect(prefixesOf(published.accesses)).toEqual(left.length === 0 ? [] : [left]);
    expect(published.accesses.countOf(labels(1)[0] as never)).toBe(2);
  });
});

/** Every sequence that the index holds whole, and each of its beginnings. */
function* servedPaths({ index }: ServedSequences): Generator<readonly Label[]> {
  for (const { labels: path } of indexEntries(index, 10_000))
    for (let length = 1; length <= path.length; length++) yield path.slice(0, length);
}
