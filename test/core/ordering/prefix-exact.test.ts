import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  orderForReuse,
  prefixExact,
  RecentRetrievals,
  type RetrievedBlock,
} from "../../../src/core/ordering/ordering.js";
import type { Label, TurnId } from "../../../src/core/text/ids.js";
import { conformanceCases, SKIPPED } from "../conformance-cases.js";
import {
  anyAnchor,
  anyEvents,
  anyLife,
  anyRequest,
  anyWanted,
  HERE,
  label,
  labels,
  ServedSequences,
} from "../context-index/served-sequences.js";

const inOrder = (...numbers: readonly number[]) => numbers.map((n) => ({ label: label(n), tokens: 5 }));

/** What prefix-exact makes of a request for these blocks, and how many of them should be cached. */
function ordered(served: ServedSequences, retrieved: readonly RetrievedBlock[], anchor = HERE) {
  const ordering = prefixExact.order({ anchor, retrieved, carrying: null }, served.known);
  return { ...ordering, cachedBlocks: served.index.heldBlocks(anchor, ordering.labels) };
}

describe("prefix-exact", () => {
  it("finds as many cached tokens as a look at every served sequence would", () => {
    const lives = fc.property(anyEvents, anyAnchor, anyWanted, (events, anchor, wanted) => {
      const served = ServedSequences.after(events);
      const match = served.index.search(anchor, wanted);
      expect(match.tokens).toBe(served.mostCachedTokens(anchor, wanted));
      expect(match.labels.every((block) => wanted.has(block))).toBe(true);
      expect(match.labels.reduce((sum, block) => sum + (wanted.get(block) ?? 0), 0)).toBe(match.tokens);
    });
    fc.assert(lives, { numRuns: 1_000 });
  });

  it("puts the rest after the cached prefix in relevance order", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    const ordering = ordered(served, inOrder(9, 2, 7, 1, 8));
    expect(ordering).toEqual({ labels: [1, 2, 9, 7, 8], carried: new Set(), cachedBlocks: 2, searchPath: [0] });
  });

  it("puts first of the rest what a recent request wanted behind the same prefix", () => {
    const served = new ServedSequences();
    for (let n = 0; n < 2; n++) {
      served.compose(prefixExact, { anchor: HERE, retrieved: inOrder(1, 2, 8), carrying: null });
      served.evict(0);
    }
    served.serve(HERE, labels(1, 2));
    expect(ordered(served, inOrder(9, 2, 1, 8)).labels).toEqual([1, 2, 8, 9]);
  });

  it("keeps relevance order where less is cached than the least that is worth a ranking", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    const retrieved = inOrder(9, 2, 7, 1, 8);
    const orderFor = (leastHit: number) =>
      prefixExact.order({ anchor: HERE, retrieved, carrying: null, leastHit }, served.known).labels;
    expect(orderFor(10)).toEqual([1, 2, 9, 7, 8]);
    expect(orderFor(11)).toEqual([9, 2, 7, 1, 8]);
  });

  it("saves exactly what its search finds", () => {
    const lives = fc.property(anyLife, anyRequest, (life, request) => {
      const served = ServedSequences.composedBy(prefixExact, life);
      const { labels: blocks, cachedBlocks } = ordered(served, request.retrieved, request.anchor);
      const tokens = new Map(request.retrieved.map((block) => [block.label, block.tokens]));
      const saved = blocks.slice(0, cachedBlocks).reduce((sum, block) => sum + (tokens.get(block) ?? 0), 0);
      expect(saved).toBe(served.mostCachedTokens(request.anchor, tokens));
    });
    fc.assert(lives);
  });

  it("prefers more tokens to more blocks", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    served.serve(HERE, labels(4));
    const tokens = [1, 1, 1, 50];
    const retrieved = labels(1, 2, 3, 4).map((wanted, at) => ({ label: wanted, tokens: tokens[at] ?? 0 }));
    expect(ordered(served, retrieved).labels).toEqual([4, 1, 2, 3]);
  });

  it("takes the path used last where two save the same", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2));
    served.serve(HERE, labels(2, 1));
    const first = () => ordered(served, inOrder(1, 2)).labels;
    expect(first()).toEqual([2, 1]);
    served.serve(HERE, labels(1, 2));
    expect(first()).toEqual([1, 2]);
  });

  it("reuses nothing that was served behind another prefix", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    const elsewhere = "other instructions" as typeof HERE;
    const ordering = ordered(served, inOrder(3, 2, 1), elsewhere);
    expect(ordering).toEqual({ labels: [3, 2, 1], carried: new Set(), cachedBlocks: 0, searchPath: [] });
  });
});

/** One case of `online-cases.json`; blocks are named by letters or numbers. */
interface OnlineCase {
  readonly served: readonly (readonly (string | number)[])[];
  readonly request: readonly (string | number)[];
  readonly ordered?: readonly (string | number)[];
  readonly cachedPrefixBlocks?: number;
  readonly why?: string;
}

const known = conformanceCases("online-cases.json") as { prefixExact: OnlineCase[] } | null;

describe.skipIf(known === null)(`prefix-exact, conformance cases${known === null ? SKIPPED : ""}`, () => {
  const cases = known?.prefixExact ?? [];

  it("has cases to run", () => {
    expect(cases.length).toBeGreaterThan(0);
  });

  it.each(cases.map((online) => ({ title: JSON.stringify(online), online })))("$title", ({ online }) => {
    const known = new Map<string | number, Label>();
    const named = (block: string | number): Label => {
      const given = known.get(block) ?? label(known.size + 1);
      known.set(block, given);
      return given;
    };
    const served = new ServedSequences();
    for (const sequence of online.served) served.serve(HERE, sequence.map(named));
    const retrieved = online.request.map((block) => ({ label: named(block), tokens: 1 }));
    const ordering = ordered(served, retrieved);
    expect(online.ordered ?? online.cachedPrefixBlocks, "a case must say what it expects").toBeDefined();
    if (online.ordered !== undefined) expect(ordering.labels).toEqual(online.ordered.map(named));
    if (online.cachedPrefixBlocks !== undefined) expect(ordering.cachedBlocks).toBe(online.cachedPrefixBlocks);
  });
});

/** Blocks of five tokens each. */
const blocks = (...numbers: readonly number[]) => labels(...numbers).map((block) => ({ label: block, tokens: 5 }));
const requests = (...sets: readonly (readonly number[])[]) => remembering(sets.map((set) => labels(...set)));
const setsOf = (recent: RecentRetrievals) => [...recent.sets()];

function remembering(requests: readonly (readonly Label[])[]): RecentRetrievals {
  return new RecentRetrievals(requests.map((asked, at) => ({ turn: (at + 1) as TurnId, labels: asked })));
}

const times = (count: number, set: readonly number[]) => Array.from({ length: count }, () => set);

describe("order for reuse", () => {
  it("keeps the relevance order where no recent request wants any of the blocks", () => {
    for (const recent of [requests(), requests([]), requests([7, 8], [9])]) {
      expect(orderForReuse([], blocks(3, 1, 2), labels(3, 1, 2), recent)).toEqual([3, 1, 2]);
    }
  });

  it("keeps the relevance order where recent requests want all of the blocks alike", () => {
    const recent = requests(...times(5, [1, 2, 3]));
    expect(orderForReuse([], blocks(3, 1, 2), labels(3, 1, 2), recent)).toEqual([3, 1, 2]);
  });

  it("puts first what most requests like this one want", () => {
    const recent = requests(...times(4, [3, 4]));
    expect(orderForReuse([], blocks(1, 2, 3, 4), labels(1, 2, 3, 4), recent)).toEqual([3, 4, 1, 2]);
  });

  it("goes on with what those want that want everything before it", () => {
    const recent = requests(...times(6, [3, 4]), ...times(4, [1, 2]));
    // By themselves 1 is wanted more than 4, but not behind 3.
    expect(orderForReuse([], blocks(1, 2, 3, 4), labels(1, 2, 3, 4), recent)).toEqual([3, 4, 1, 2]);
    expect(orderForReuse([], blocks(1, 2, 4), labels(1, 2, 3, 4), recent)).toEqual([1, 2, 4]);
  });

  it("leaves out requests that do not want what stands in front", () => {
    const recent = requests(...times(20, [1, 4]), ...times(4, [1, 2, 3]));
    const asked = labels(1, 5, 2, 3, 4);
    expect(orderForReuse(labels(1, 2), blocks(5, 3, 4), asked, recent)).toEqual([3, 5, 4]);
    expect(orderForReuse(labels(1), blocks(5, 2, 3, 4), asked, recent)[0]).toBe(4);
    expect(orderForReuse(labels(1, 9), blocks(5, 3, 4), asked, recent)).toEqual([5, 3, 4]);
  });

  it("counts a request the more, the more it has in common with this one", () => {
    const recent = requests(...times(2, [1, 2, 3, 5]), ...times(8, [4]));
    // Eight that share a quarter count less than two that share three quarters.
    expect(orderForReuse(labels(), blocks(4, 3, 2, 1), labels(4, 3, 2, 1), recent)).toEqual([3, 2, 1, 4]);
  });

  it("puts the longer of two first that are about as likely to be wanted again", () => {
    const rest = [
      { label: label(1), tokens: 1 },
      { label: label(2), tokens: 100 },
    ];
    expect(orderForReuse([], rest, labels(1, 2), requests([1, 2]))).toEqual([2, 1]);
    expect(orderForReuse([], rest, labels(1, 2), requests())).toEqual([1, 2]);
  });

  it("orders nothing into nothing", () => {
    expect(orderForReuse(labels(1), [], labels(1), requests([1, 2]))).toEqual([]);
    expect(orderForReuse([], [], [], requests([1, 2]))).toEqual([]);
  });

  const anyBlocks = fc.uniqueArray(fc.integer({ min: 1, max: 12 }).map(label), { maxLength: 10 });
  const anyRecent = fc.array(anyBlocks, { maxLength: 20 });

  it("gives back every block once, and the same order each time", () => {
    const anyTokens = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 10, maxLength: 10 });
    const permutes = fc.property(
      anyBlocks,
      fc.nat({ max: 4 }),
      anyTokens,
      anyRecent,
      (asked, inFront, tokens, requested) => {
        const recent = remembering(requested);
        const rest = asked.slice(inFront).map((block, at) => ({ label: block, tokens: tokens[at] ?? 1 }));
        const before = structuredClone([rest, asked, setsOf(recent)]);
        const ordered = orderForReuse(asked.slice(0, inFront), rest, asked, recent);
        expect([...ordered].sort()).toEqual(asked.slice(inFront).sort());
        expect(orderForReuse(asked.slice(0, inFront), rest, asked, recent)).toEqual(ordered);
        expect([rest, asked, setsOf(recent)]).toEqual(before);
      },
    );
    fc.assert(permutes);
  });

  it("is not swayed by requests that share nothing with the blocks", () => {
    const ignores = fc.property(anyBlocks, anyRecent, (asked, recent) => {
      const rest = asked.map((block) => ({ label: block, tokens: 5 }));
      const strangers = [labels(20, 21), labels(22), []];
      const ordered = orderForReuse([], rest, asked, remembering(recent));
      expect(orderForReuse([], rest, asked, remembering([...strangers, ...recent]))).toEqual(ordered);
    });
    fc.assert(ignores);
  });
});
