import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ContextIndex } from "../../../src/core/context-index/context-index.js";
import type { IndexNode } from "../../../src/core/context-index/prefix-forest.js";
import type { Digest, Label, NodeId } from "../../../src/core/text/ids.js";
import { anyAnchor, anySequence, anyWanted, ELSEWHERE, HERE, label, labels } from "./served-sequences.js";

type Step =
  | { readonly kind: "serve"; readonly anchor: Digest; readonly labels: readonly Label[] }
  | { readonly kind: "evict"; readonly nth: number }
  | { readonly kind: "forget"; readonly labels: readonly Label[] };

const anySteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constant("serve" as const), anchor: anyAnchor, labels: anySequence }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("evict" as const), nth: fc.nat({ max: 30 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("forget" as const),
        labels: fc.uniqueArray(fc.integer({ min: 1, max: 8 }).map(label), { minLength: 1, maxLength: 2 }),
      }),
    },
  ),
  { maxLength: 20 },
);

const BOUND = 30;

/** An index with a store under it that applies what each step drained. */
class StoredIndex {
  readonly rows = new Map<NodeId, IndexNode>();
  readonly #served: NodeId[] = [];
  #now = 0;

  constructor(public index = new ContextIndex([], 1, BOUND)) {}

  take(step: Step): unknown {
    const outcome = this.#apply(step);
    const { upserted, removed } = structuredClone(this.index.drain());
    for (const node of upserted) this.rows.set(node.id, node);
    for (const id of removed) this.rows.delete(id);
    return outcome;
  }

  reload(order: (a: IndexNode, b: IndexNode) => number): void {
    this.index = new ContextIndex(structuredClone([...this.rows.values()]).sort(order), this.index.nextId, BOUND);
  }

  #apply(step: Step): unknown {
    if (step.kind === "forget") return this.index.forget(new Set(step.labels));
    if (step.kind === "evict") return this.index.evict(this.#served[step.nth] ?? (0 as NodeId));
    const node = this.index.insert(step.anchor, step.labels, ++this.#now);
    this.#served.push(node);
    return node;
  }
}

/** The nodes behind an anchor, as they are listed by last use. */
function listedByUse(index: ContextIndex, anchor: Digest): NodeId[] {
  const ids: NodeId[] = [];
  for (let node = index.root(anchor) ?? null; node !== null; node = node.staler) ids.push(node.row.id);
  return ids;
}

const byId = (a: IndexNode, b: IndexNode) => a.id - b.id;

describe("context index, stored as rows", () => {
  it("keeps its rules through serving, evicting and forgetting, and hands over exactly the rows that it has", () => {
    const life = fc.property(anySteps, (steps) => {
      const stored = new StoredIndex();
      for (const step of steps) {
        stored.take(step);
        stored.index.check();
        expect(stored.rows.size).toBe(stored.index.size);
      }
    });
    fc.assert(life, { numRuns: 300 });
  });

  it("answers and continues after a reload as if there had been none, in whatever order the rows come back", () => {
    const order = fc.constantFrom<(a: IndexNode, b: IndexNode) => number>(byId, (a, b) => b.id - a.id);
    const life = fc.property(anySteps, anySteps, anyWanted, order, (before, after, wanted, rowOrder) => {
      const kept = new StoredIndex();
      const reloaded = new StoredIndex();
      const compare = () => {
        for (const anchor of [HERE, ELSEWHERE]) {
          expect(reloaded.index.search(anchor, wanted)).toEqual(kept.index.search(anchor, wanted));
          expect(listedByUse(reloaded.index, anchor)).toEqual(listedByUse(kept.index, anchor));
        }
        expect([...reloaded.rows.values()].sort(byId)).toEqual([...kept.rows.values()].sort(byId));
        expect(reloaded.index.nextId).toBe(kept.index.nextId);
      };
      for (const step of before) {
        kept.take(step);
        reloaded.take(step);
      }
      reloaded.reload(rowOrder);
      compare();
      if (rowOrder === byId) expect(reloaded.index.entries(100)).toEqual(kept.index.entries(100));
      for (const step of after) {
        expect(reloaded.take(step)).toEqual(kept.take(step));
        compare();
      }
    });
    fc.assert(life, { numRuns: 500 });
  });

  it("hands over every change once", () => {
    const index = new ContextIndex([], 1, BOUND);
    const node = index.insert(HERE, labels(1, 2), 1);
    const ids = ({ upserted, removed }: ReturnType<ContextIndex["drain"]>) => [
      upserted.map(({ id }) => id).sort(),
      removed,
    ];
    expect(ids(index.drain())).toEqual([[1, 2], []]);
    expect(ids(index.drain())).toEqual([[], []]);
    index.evict(node);
    expect(ids(index.drain())).toEqual([[], expect.arrayContaining([1, 2])]);
  });

  it("hands over rows that later changes do not reach", () => {
    const index = new ContextIndex([], 1, BOUND);
    index.insert(HERE, labels(1, 2), 1);
    const { upserted } = index.drain();
    const before = structuredClone(upserted);
    index.insert(HERE, labels(1, 3), 2);
    expect(upserted).toEqual(before);
  });

  it("never reuses an id, even after everything was evicted and reloaded", () => {
    const index = new ContextIndex([], 1, BOUND);
    const node = index.insert(HERE, labels(1), 1);
    index.evict(node);
    const reloaded = new ContextIndex([], index.nextId, BOUND);
    expect(reloaded.insert(HERE, labels(1), 2)).toBeGreaterThan(node);
  });

  it("refuses rows whose parent is missing", () => {
    const index = new ContextIndex([], 1, BOUND);
    index.insert(HERE, labels(1), 1);
    const orphan = index.drain().upserted.filter(({ anchor }) => anchor === null);
    expect(() => new ContextIndex(orphan, 9, BOUND)).toThrow("no parent");
  });
});
