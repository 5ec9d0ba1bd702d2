import fc from "fast-check";
import { ContextIndex } from "../../../src/core/cache/context-index.js";
import {
  type CarryAllowance,
  type Ordering,
  type OrderingRequest,
  RecentRetrievals,
  type RetrievedBlock,
} from "../../../src/core/ordering/ordering.js";
import {
  NO_PUBLISHED_ROWS,
  PublishedKnowledge,
  type ScopePolicy,
  type WithPublished,
} from "../../../src/core/published/published-knowledge.js";
import type { Digest, Label, NodeId, TurnId } from "../../../src/core/text/ids.js";

/** A label, for tests that name blocks by number. */
export function label(n: number): Label {
  return n as Label;
}

export function labels(...numbers: readonly number[]): Label[] {
  return numbers.map(label);
}

export const HERE = "what stands before the blocks" as Digest;
export const ELSEWHERE = "another prompt beginning" as Digest;

/** One served request that the engine still holds. */
export interface ServedSequence {
  readonly anchor: Digest;
  readonly labels: readonly Label[];
  readonly node: NodeId;
  readonly turn: TurnId;
}

/** Something that happens to an index. */
export type IndexEvent =
  | { readonly kind: "serve"; readonly anchor: Digest; readonly labels: readonly Label[] }
  /** Evicts the request that was served `age` requests before the last; the oldest where there are not that many. */
  | { readonly kind: "evict"; readonly age: number };

/** Distinct labels from 1 to 8 in any order. */
export const anySequence = fc.uniqueArray(fc.integer({ min: 1, max: 8 }).map(label), { maxLength: 7 });

export const anyAnchor = fc.constantFrom(HERE, HERE, HERE, ELSEWHERE);

/** Wanted labels with what each saves. */
export const anyWanted = fc
  .uniqueArray(fc.tuple(fc.integer({ min: 1, max: 8 }).map(label), fc.integer({ min: 1, max: 9 })), {
    selector: ([wanted]) => wanted,
    maxLength: 8,
  })
  .map((entries) => new Map(entries));

/** A life of an index: mostly serving, sometimes evicting. */
export const anyEvents: fc.Arbitrary<IndexEvent[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("serve" as const), anchor: anyAnchor, labels: anySequence }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("evict" as const), age: fc.nat({ max: 9 }) }) },
  ),
  { maxLength: 25 },
);

/** Room for blocks that were not retrieved, with an engine for which only computed tokens count; of those only the ones with tokens here may be carried. */
export function allowance(
  tokens: number,
  knownTokens: number,
  carriable: ReadonlyMap<Label, number>,
  limits: Pick<CarryAllowance, "ownTokens" | "bankedTokens"> = { ownTokens: tokens, bankedTokens: null },
): CarryAllowance {
  return {
    tokens,
    ...limits,
    knownTokens,
    spared: (saved) => saved,
    tokensOf: (block) => carriable.get(block) ?? null,
  };
}

/** What the prompt's own limit and the memory bank leave beyond the allowance, one of them or both. */
const anyLimits = (tokens: number) =>
  fc.tuple(fc.option(fc.nat({ max: 30 })), fc.option(fc.nat({ max: 200 }))).map(([own, banked]) => ({
    ownTokens: own === null ? (banked === null ? tokens : null) : tokens + own,
    bankedTokens: banked === null ? null : tokens + banked,
  }));

/** Nothing to carry, or room between scarce and plenty for some of the labels from 1 to 8. */
const anyCarrying: fc.Arbitrary<CarryAllowance | null> = fc.option(
  fc
    .tuple(fc.integer({ min: 1, max: 30 }), fc.nat({ max: 90 }), anyWanted)
    .chain(([tokens, knownTokens, carriable]) =>
      anyLimits(tokens).map((limits) => allowance(tokens, knownTokens, carriable, limits)),
    ),
  { freq: 3 },
);

export const anyRequest: fc.Arbitrary<OrderingRequest> = fc.record({
  anchor: anyAnchor,
  retrieved: anyWanted.map(blocksOf),
  carrying: anyCarrying,
});

export function blocksOf(wanted: ReadonlyMap<Label, number>): RetrievedBlock[] {
  return [...wanted].map(([block, tokens]) => ({ label: block, tokens }));
}

/** Something that happens to a scope. */
export type ScopeEvent =
  | { readonly kind: "compose"; readonly request: OrderingRequest }
  | Extract<IndexEvent, { kind: "evict" }>;

/** A life of a scope: mostly composing, sometimes evicting. */
export const anyLife: fc.Arbitrary<ScopeEvent[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("compose" as const), request: anyRequest }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("evict" as const), age: fc.nat({ max: 9 }) }) },
  ),
  { maxLength: 20 },
);

/** A context index beside the plain list of what it stands for, as the oracle that it is compared with. */
export class ServedSequences {
  readonly held: ServedSequence[] = [];
  /** What policies order by. All but the index learns from {@link compose} only. */
  readonly known: WithPublished;
  #now = 0;

  constructor(
    published = new PublishedKnowledge(NO_PUBLISHED_ROWS, 10_000),
    readonly index: ContextIndex = new ContextIndex([], 1, 10_000, undefined, published),
  ) {
    this.known = { index, recent: new RecentRetrievals([]), published };
  }

  /** An index with this life behind it. */
  static after(events: readonly IndexEvent[]): ServedSequences {
    const served = new ServedSequences();
    for (const event of events) served.apply(event);
    return served;
  }

  /** The requests of a life ordered by one policy, each taken in as a compose does. */
  static composedBy(policy: ScopePolicy, life: readonly ScopeEvent[]): ServedSequences {
    const served = new ServedSequences();
    for (const event of life) {
      if (event.kind === "compose") served.compose(policy, event.request);
      else served.evict(event.age);
    }
    return served;
  }

  compose(policy: ScopePolicy, request: OrderingRequest): Ordering {
    const ordering = policy.order(request, this.known);
    this.serve(request.anchor, ordering.labels);
    const turn = this.#now as TurnId;
    policy.learn?.(request, ordering, this.known, turn);
    const asked = request.retrieved.map((block) => block.label);
    this.known.recent.take(asked, turn);
    return ordering;
  }

  apply(event: IndexEvent): void {
    if (event.kind === "serve") this.serve(event.anchor, event.labels);
    else this.evict(event.age);
  }

  serve(anchor: Digest, sequence: readonly Label[]): NodeId {
    const node = this.index.insert(anchor, sequence, ++this.#now);
    this.held.push({ anchor, labels: sequence, node, turn: this.#now as TurnId });
    return node;
  }

  evict(age: number): void {
    const [gone] = this.held.splice(Math.max(0, this.held.length - 1 - age), 1);
    if (gone === undefined) return;
    this.index.evict(gone.node);
  }

  /** The most tokens that any held sequence has in common with the wanted blocks, from its front. By brute force. */
  mostCachedTokens(anchor: Digest, wanted: ReadonlyMap<Label, number>): number {
    let most = 0;
    for (const sequence of this.held) {
      if (sequence.anchor !== anchor) continue;
      let tokens = 0;
      for (const block of sequence.labels) {
        const weight = wanted.get(block);
        if (weight === undefined) break;
        tokens += weight;
      }
      most = Math.max(most, tokens);
    }
    return most;
  }

  /** Whether some held sequence begins with these blocks behind this anchor. */
  holds(anchor: Digest, prefix: readonly Label[]): boolean {
    return this.held.some(
      (sequence) => sequence.anchor === anchor && prefix.every((block, at) => sequence.labels[at] === block),
    );
  }
}

/** Whether some request whose blocks began with this sequence was served behind the anchor and should still be held. */
export function isHeld(index: ContextIndex, anchor: Digest, sequence: readonly Label[]): boolean {
  return index.hasAnchor(anchor) && index.heldBlocks(anchor, sequence) === sequence.length;
}
