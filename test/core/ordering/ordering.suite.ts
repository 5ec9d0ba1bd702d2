import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Ordering, OrderingRequest } from "../../../src/core/ordering/ordering.js";
import type { ScopePolicy, WithPublished } from "../../../src/core/published/published-knowledge.js";
import type { Digest, Label } from "../../../src/core/text/ids.js";
import { indexEntries } from "../cache/index-entries.js";
import {
  allowance,
  anyLife,
  anyRequest,
  blocksOf,
  HERE,
  label,
  labels,
  type ScopeEvent,
  ServedSequences,
} from "../cache/served-sequences.js";

/** Behaviours that a policy leaves out by its nature → why. */
export type OrderingSkips = Readonly<Record<string, string>>;

const NOTHING = { labels: [], carried: new Set(), searchPath: [] };
const ascending = (blocks: readonly Label[]) => [...blocks].sort((a, b) => a - b);

/** The behaviour of every ordering policy. A skipped behaviour states why in its title. */
export function describeOrderingPolicy(policy: ScopePolicy, skips: OrderingSkips = {}): void {
  const titles = new Set<string>();
  const behaves = (title: string, holds: () => void) => {
    titles.add(title);
    const reason = skips[title];
    it.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (skipped: ${reason})`, holds);
  };
  const behavesAfter = (title: string, holds: (life: ScopeEvent[], request: OrderingRequest) => void) =>
    behaves(title, () => fc.assert(fc.property(anyLife, anyRequest, holds)));
  const orders = (title: string, holds: (ordering: Ordering, request: OrderingRequest, at: ServedSequences) => void) =>
    behavesAfter(title, (life, request) => {
      const served = ServedSequences.composedBy(policy, life);
      holds(policy.order(request, served.known), request, served);
    });

  describe(`ordering policy ${policy.name}`, () => {
    orders("gives back every retrieved block once, and beside them the carried ones only", (ordering, request) => {
      const retrieved = request.retrieved.map((block) => block.label);
      const kept = ordering.labels.filter((block) => !ordering.carried.has(block));
      expect(ascending(kept)).toEqual(ascending(retrieved));
      expect(ascending(ordering.labels)).toEqual(ascending([...retrieved, ...ordering.carried]));
    });

    orders("carries nothing that the request does not allow", ({ carried }, { carrying }) => {
      let tokens = 0;
      for (const block of carried) {
        const own = carrying?.tokensOf(block) ?? null;
        expect(own).not.toBeNull();
        tokens += own ?? 0;
      }
      expect(tokens).toBeLessThanOrEqual(carrying?.tokens ?? 0);
    });

    orders("carries only what is cached and has a cached retrieved block behind it", (ordering, { anchor }, served) => {
      const { labels: ordered, carried } = ordering;
      const cached = ordered.slice(0, served.index.heldBlocks(anchor, ordered));
      expect(cached.length === 0 || served.holds(anchor, cached)).toBe(true);
      const lastCarried = ordered.findLastIndex((block) => carried.has(block));
      if (lastCarried >= 0) expect(cached.length).toBeGreaterThan(lastCarried + 1);
    });

    behavesAfter("leaves all that the scope knows as it is", (life, request) => {
      const { known } = ServedSequences.composedBy(policy, life);
      drained(known);
      const before = contents(known);
      policy.order(request, known);
      expect(contents(known)).toEqual(before);
      for (const changes of drained(known)) expect(changes).toEqual({ upserted: [], removed: [] });
    });

    behavesAfter("gives the same order for the same request and knowledge", (life, request) => {
      const { known } = ServedSequences.composedBy(policy, life);
      const first = policy.order(request, known);
      expect(policy.order(request, known)).toEqual(first);
      expect(policy.order(request, ServedSequences.composedBy(policy, life).known)).toEqual(first);
    });

    behaves("leaves the retrieval order alone where nothing is known", () => {
      const retrieved = labels(5, 2, 9).map((block) => ({ label: block, tokens: 3 }));
      for (const carrying of [null, allowance(20, 0, new Map([[label(1), 3]]))]) {
        const ordering = policy.order({ anchor: HERE, retrieved, carrying }, new ServedSequences().known);
        expect(ordering).toEqual({ ...NOTHING, labels: [5, 2, 9] });
      }
    });

    behaves("orders nothing into nothing", () => {
      const served = new ServedSequences();
      const one = new Map([[label(1), 3]]);
      served.compose(policy, { anchor: HERE, retrieved: blocksOf(one), carrying: null });
      for (const anchor of [HERE, "never served" as Digest]) {
        for (const carrying of [null, allowance(20, 0, one)]) {
          expect(policy.order({ anchor, retrieved: [], carrying }, served.known)).toEqual(NOTHING);
        }
      }
      expect(served.compose(policy, { anchor: HERE, retrieved: [], carrying: null })).toEqual(NOTHING);
    });

    it("skips only what there is to skip", () => {
      for (const skipped of Object.keys(skips)) expect(titles).toContain(skipped);
    });
  });
}

function contents({ index, recent, published }: WithPublished): unknown {
  const { clusters, accesses } = published;
  return [indexEntries(index, 1_000), [...recent.sets()], clusters.stored(), accesses.stored()];
}

function drained({ index, recent, published }: WithPublished) {
  return [index, recent, published.clusters, published.accesses].map((part) => part.drain());
}
