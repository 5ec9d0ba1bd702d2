/*
 * ordering: the order of a request's blocks. One contract, {@link OrderingPolicy}; memprefix's own policies prefix-exact and carry-over; and
 * retrieval and sorted, which use no knowledge of the scope.
 * Enters: a request's blocks with their tokens, the allowance for carried blocks, what the scope knows. Leaves: an order, and which blocks
 * are carried.
 */

import type { ContextIndex } from "../cache/context-index.js";
import type { Spared } from "../cost/engine-model.js";
import { keptIn } from "../text/collections.js";
import type { Digest, Label, TurnId } from "../text/ids.js";
import { searchPrefix, servedAfter } from "./prefix-search.js";
import { type TurnRow, TurnRows } from "./turn-rows.js";

/** A block that a request retrieved, with the tokens of its line. */
export interface RetrievedBlock {
  readonly label: Label;
  readonly tokens: number;
}

/** The budget for blocks that the request did not retrieve. */
export interface CarryAllowance {
  /** Maximum tokens of carried blocks in the prompt, above 0. */
  readonly tokens: number;
  /** The part of the prompt's own limit that is left, at least `tokens`; null: no limit. */
  readonly ownTokens: number | null;
  /** The memory bank's balance with this prompt's share, at least `tokens`; null: the prompt uses no bank. */
  readonly bankedTokens: number | null;
  /** Tokens of all blocks that could be retrieved: if they fit into the prompt, carrying one displaces no other. */
  readonly knownTokens: number;
  /** What a path spares the engine, see {@link Spared}. */
  readonly spared: Spared;
  /** Tokens of a block's line; null if it must not be carried: superseded, forgotten, a run's, left out of this prompt, or in it already. */
  readonly tokensOf: (label: Label) => number | null;
}

/** The blocks of one request that are not in its prompt yet. */
export interface OrderingRequest {
  /** Digest of the prompt before the blocks; only sequences served after the same bytes can be reused. */
  readonly anchor: Digest;
  /** Distinct blocks in relevance order, best first. */
  readonly retrieved: readonly RetrievedBlock[];
  /** Null: no blocks but the retrieved ones. */
  readonly carrying: CarryAllowance | null;
  /**
   * How many tokens memprefix's own policies must find cached to move blocks: with less they keep relevance order, which needs no ranking.
   * Default: 0, they also move blocks for later requests alone.
   */
  readonly leastHit?: number;
}

/** An order of the blocks. How much of it should be cached follows from the served sequences, for every policy. */
export interface Ordering {
  /** Every retrieved block exactly once, and the carried blocks. */
  readonly labels: readonly Label[];
  /** The carried blocks: not retrieved, kept in their cached place so that the blocks after them hit. */
  readonly carried: ReadonlySet<Label>;
  /** The node that the policy matched, as child positions; empty for none. */
  readonly searchPath: readonly number[];
}

export const NOTHING_CARRIED: ReadonlySet<Label> = new Set();

/** An order of the retrieved blocks alone. */
export function withoutCarried(labels: readonly Label[], searchPath: readonly number[] = []): Ordering {
  return { labels, carried: NOTHING_CARRIED, searchPath };
}

export function labelsOf(blocks: readonly RetrievedBlock[]): Label[] {
  return blocks.map(({ label }) => label);
}

/**
 * Number of remembered requests, FIFO; also the number of bits of a {@link RequestMask}. Figures for other sizes:
 * `docs/internals/ordering-trials.md`.
 */
export const RECENT_REQUESTS = 64;
/** Bits in one half of a mask. */
const WORD = 32;

/** The blocks of one request in relevance order, as stored. */
export type RecentRetrieval = TurnRow;

/** A set of remembered requests, one bit each. Bits are reassigned, so their positions have no order. */
export interface RequestMask {
  readonly low: number;
  readonly high: number;
}

const NO_REQUEST: RequestMask = { low: 0, high: 0 };

/** The block sets of a scope's last {@link RECENT_REQUESTS} requests: the prediction of later ones. */
export class RecentRetrievals extends TurnRows<RecentRetrieval> {
  readonly #askedBy = new Map<Label, { -readonly [K in keyof RequestMask]: number }>();
  /** Each request's bit in every mask. */
  readonly #bits = new Map<TurnId, number>();
  readonly #freeBits = Array.from({ length: RECENT_REQUESTS }, (_, bit) => bit);

  constructor(rows: readonly RecentRetrieval[]) {
    super(RECENT_REQUESTS);
    this.load(rows);
  }

  /** The block sets, oldest first. */
  sets(): ReadonlySet<Label>[] {
    return this.stored().map(({ labels }) => new Set(labels));
  }

  /** The requests that retrieved a block. */
  askedBy(label: Label): RequestMask {
    return this.#askedBy.get(label) ?? NO_REQUEST;
  }

  /** Records what a request retrieved; an empty request is not recorded. */
  take(labels: readonly Label[], turn: TurnId): void {
    if (labels.length > 0) this.put({ turn, labels });
  }

  protected override entered({ turn, labels }: RecentRetrieval): void {
    const bit = this.#freeBits.pop() as number;
    this.#bits.set(turn, bit);
    for (const label of labels) {
      const mask = keptIn(this.#askedBy, label, () => ({ low: 0, high: 0 }));
      if (bit < WORD) mask.low |= 1 << bit;
      else mask.high |= 1 << (bit - WORD);
    }
  }

  protected override left({ turn, labels }: RecentRetrieval): void {
    const bit = this.#bits.get(turn) as number;
    this.#bits.delete(turn);
    this.#freeBits.push(bit);
    for (const label of labels) {
      const mask = this.#askedBy.get(label);
      if (mask === undefined) continue;
      if (bit < WORD) mask.low &= ~(1 << bit);
      else mask.high &= ~(1 << (bit - WORD));
      if (mask.low === 0 && mask.high === 0) this.#askedBy.delete(label);
    }
  }

  protected override shortened(row: RecentRetrieval, labels: readonly Label[]): RecentRetrieval {
    return { ...row, labels };
  }
}

/** The scope's knowledge that every policy can use. */
export interface ScopeKnowledge {
  /** Served sequences that should be cached. */
  readonly index: ContextIndex;
  /** Block sets of recent requests, of all policies. */
  readonly recent: RecentRetrievals;
}

/**
 * Orders a request's blocks by the scope's knowledge. `order` is pure. `K` is the knowledge that the policy reads: more than
 * {@link ScopeKnowledge} for a policy with state of its own. Every policy passes `test/core/ordering/ordering.suite.ts`.
 */
export interface OrderingPolicy<in K extends ScopeKnowledge = ScopeKnowledge> {
  readonly name: string;
  order(request: OrderingRequest, known: K): Ordering;
  /**
   * Orders the blocks of `request` that are not in `front`, which was sent already. Absent: `order` orders them as if they were the whole
   * request.
   */
  orderBehind?(front: readonly Label[], request: OrderingRequest, known: K): readonly Label[];
  /** Records an order after it was served; absent: the policy has no state of its own. */
  learn?(request: OrderingRequest, ordering: Ordering, known: K, turn: TurnId): void;
}

/** Relevance order, as the memory search returns it: the baseline of every comparison. */
export const retrieval: OrderingPolicy = {
  name: "retrieval",
  order: ({ retrieved }) => withoutCarried(labelsOf(retrieved)),
};

/** By label, oldest block first: the same blocks always have the same order. */
export const sorted: OrderingPolicy = {
  name: "sorted",
  order: ({ retrieved }) => withoutCarried(labelsOf(retrieved).sort((a, b) => a - b)),
};

/**
 * Orders a prompt that extends an earlier one: the earlier blocks keep their places, the request's other blocks follow. A carried block
 * that the request retrieved counts as retrieved. Orders from scratch if the request may no longer carry what the earlier prompt did,
 * because another process drew on the memory bank meanwhile.
 */
export function orderAfter<K extends ScopeKnowledge>(
  before: Ordering,
  policy: OrderingPolicy<K>,
  request: OrderingRequest,
  known: K,
): Ordering {
  const wanted = new Set(labelsOf(request.retrieved));
  const carried = [...before.carried].filter((label) => !wanted.has(label));
  if (!isAllowed(carried, request)) return policy.order(request, known);
  // Labels can change if the scope was reloaded meanwhile.
  const front = before.labels.filter((label) => wanted.has(label) || before.carried.has(label));
  const placed = new Set(front);
  const rest = request.retrieved.filter(({ label }) => !placed.has(label));
  const following = (): Ordering["labels"] => {
    if (rest.length === 0) return [];
    if (policy.orderBehind !== undefined) return policy.orderBehind(front, request, known);
    return policy.order({ ...request, retrieved: rest, carrying: null }, known).labels;
  };
  return {
    labels: [...front, ...following()],
    carried: new Set(carried),
    searchPath: before.searchPath,
  };
}

function isAllowed(carried: readonly Label[], { carrying }: OrderingRequest): boolean {
  let left = carrying?.tokens ?? 0;
  for (const label of carried) left -= carrying?.tokensOf(label) ?? Number.POSITIVE_INFINITY;
  return left >= 0;
}

/**
 * Aligns a context with a node's prefix (Alg. 2): the context's blocks that the prefix has, in the prefix's order, then the rest in the
 * context's order.
 */
export function alignTo(prefix: readonly Label[], context: readonly Label[]): Label[] {
  if (prefix.length === 0) return [...context];
  const wanted = new Set(context);
  const front = new Set(prefix.filter((label) => wanted.has(label)));
  return [...front, ...context.filter((label) => !front.has(label))];
}

/** The blocks of `a` that are also in `b`, in the order of `a`. */
export function intersectionOf(a: readonly Label[], b: readonly Label[]): Label[] {
  const others = new Set(b);
  return a.filter((label) => others.has(label));
}

/** A key of a set of blocks: equal for contexts with the same blocks in any order, because the index decides the order. */
export function blocksKey(context: readonly number[]): string {
  return Uint32Array.from(context).sort().join();
}

/**
 * Prefix-exact ordering, memprefix's own (docs/internals/algorithms.md, "Prefix-exact ordering"): first the served sequence of retrieved
 * blocks that saves the most prefill tokens, then the rest in the order that later requests can reuse most of.
 */
export const prefixExact: OrderingPolicy = {
  name: "prefix-exact",
  order(request, known) {
    const { anchor, retrieved, leastHit = 0 } = request;
    const { index, recent } = known;
    const match = searchPrefix(index.root(anchor), new Map(retrieved.map(({ label, tokens }) => [label, tokens])));
    if (match.tokens < leastHit) return retrieval.order(request, known);
    const matched = new Set(match.labels);
    const rest = retrieved.filter(({ label }) => !matched.has(label));
    const following = orderForReuse(match.labels, rest, labelsOf(retrieved), recent);
    return withoutCarried([...match.labels, ...following], match.searchPath);
  },
  orderBehind,
};

/** Weight of the relevance rank relative to recent requests, in units of one request with the same blocks. */
const RANK_WEIGHT = 0.75;
/** Exponent of a block's tokens in its score: of two blocks equally likely to be wanted again, the longer one goes first. */
const TOKENS_POWER = 0.15;

/**
 * Orders the blocks after a cached prefix so that later requests find a long prefix in turn. Later requests are predicted from recent
 * ones, weighted by how many blocks each shares with this request. Greedy: the next block is the one wanted by most weight among the recent
 * requests that want every block before it. Where few do, the relevance rank decides, because the blocks most relevant to a question return
 * with similar questions. If no recent request wants any of the blocks, they stay in relevance order. Alternatives that were measured:
 * `docs/internals/ordering-trials.md`.
 *
 * @param front blocks placed before, of this request or carried
 * @param rest distinct blocks in relevance order
 * @param asked all blocks of the request
 * @param rankWeight weight of the relevance rank relative to recent requests, in units of one request with the same blocks
 */
export function orderForReuse(
  front: readonly Label[],
  rest: readonly RetrievedBlock[],
  asked: readonly Label[],
  recent: RecentRetrievals,
  rankWeight = RANK_WEIGHT,
): Label[] {
  const like = new LikeRequests(front, asked, recent);
  const wantedBy = rest.map(({ label }) => recent.askedBy(label));
  const shared = wantedBy.map((mask) => like.weightOf(mask));
  if (shared.every((weight) => weight === 0)) return labelsOf(rest);
  const rankOf = new Map(asked.map((label, rank) => [label, rank]));
  const rank = rest.map(({ label }) => rankWeight * (1 - (rankOf.get(label) ?? 0) / asked.length));
  const size = rest.map(({ tokens }) => tokens ** TOKENS_POWER);
  // Weights are whole numbers, so sums do not depend on the order of the remembered requests.
  const whole = asked.length ** 2;

  const left = rest.map((_block, at) => at);
  const ordered: Label[] = [];
  while (left.length > 0) {
    let best = 0;
    let bestScore = -1;
    for (let i = 0; i < left.length; i++) {
      const at = left[i] as number;
      const score = ((shared[at] as number) / whole + (rank[at] as number)) * (size[at] as number);
      if (score > bestScore) {
        best = i;
        bestScore = score;
      }
    }
    const [at = 0] = left.splice(best, 1);
    ordered.push((rest[at] as RetrievedBlock).label);
    if (!like.keep(wantedBy[at] as RequestMask)) continue;
    for (const other of left) shared[other] = like.weightOf(wantedBy[other] as RequestMask);
  }
  return ordered;
}

/** The recent requests that want every block placed so far. */
class LikeRequests {
  /**
   * By bit: the number of blocks that the recent request shares with this one, squared. Predicts how likely later requests are to resemble
   * it.
   */
  readonly #weights = new Float64Array(RECENT_REQUESTS);
  #low = ~0;
  #high = ~0;

  constructor(front: readonly Label[], asked: readonly Label[], recent: RecentRetrievals) {
    for (const label of front) {
      const { low, high } = recent.askedBy(label);
      this.#low &= low;
      this.#high &= high;
    }
    if (this.#low === 0 && this.#high === 0) return;
    for (const label of asked) {
      const { low, high } = recent.askedBy(label);
      for (let bits = low; bits !== 0; bits &= bits - 1) this.#count(lowestBit(bits));
      for (let bits = high; bits !== 0; bits &= bits - 1) this.#count(WORD + lowestBit(bits));
    }
    for (let bit = 0; bit < RECENT_REQUESTS; bit++) this.#weights[bit] = (this.#weights[bit] as number) ** 2;
  }

  /** Total weight of those of these requests that are in the mask. */
  weightOf({ low, high }: RequestMask): number {
    let sum = 0;
    for (let bits = low & this.#low; bits !== 0; bits &= bits - 1) sum += this.#weights[lowestBit(bits)] as number;
    for (let bits = high & this.#high; bits !== 0; bits &= bits - 1)
      sum += this.#weights[WORD + lowestBit(bits)] as number;
    return sum;
  }

  /** Keeps only the requests in the mask; false if that changes nothing. */
  keep({ low, high }: RequestMask): boolean {
    const isSmaller = (this.#low & ~low) !== 0 || (this.#high & ~high) !== 0;
    this.#low &= low;
    this.#high &= high;
    return isSmaller;
  }

  #count(bit: number): void {
    this.#weights[bit] = (this.#weights[bit] as number) + 1;
  }
}

function lowestBit(bits: number): number {
  return WORD - 1 - Math.clz32(bits & -bits);
}

/**
 * Orders the request's blocks that are not in `front`: first along served continuations of the front, the most relevant at each step; then
 * the rest in the order that later requests can reuse most of, or by relevance where too little is cached.
 */
export function orderBehind(
  front: readonly Label[],
  { anchor, retrieved, leastHit = 0 }: OrderingRequest,
  { index, recent }: ScopeKnowledge,
): readonly Label[] {
  const placed = new Set(front);
  const left = retrieved.filter(({ label }) => !placed.has(label));
  const sequence = [...front];
  for (;;) {
    const served = servedAfter(index.root(anchor), sequence);
    const next = left.findIndex(({ label }) => served.has(label));
    if (next < 0) break;
    for (const { label } of left.splice(next, 1)) sequence.push(label);
  }
  const isWorthMoving = () => {
    const held = new Set(sequence.slice(0, index.heldBlocks(anchor, sequence)));
    return retrieved.reduce((sum, { label, tokens }) => sum + (held.has(label) ? tokens : 0), 0) >= leastHit;
  };
  const isMoved = leastHit === 0 || isWorthMoving();
  const rest = isMoved ? orderForReuse(sequence, left, labelsOf(retrieved), recent) : labelsOf(left);
  return [...sequence.slice(front.length), ...rest];
}

/**
 * The blocks that a batch plan places first in a request's prompt, as digests of their texts: labels are assigned only when the request is
 * composed. All other blocks follow as `prefix-exact` orders them after those.
 */
export function plannedOrder(
  planned: readonly Digest[],
  textDigestOf: (label: Label) => Digest | undefined,
): OrderingPolicy {
  const ranks = new Map(planned.map((digest, rank) => [digest, rank]));
  const rankOf = (label: Label): number | undefined => {
    const digest = textDigestOf(label);
    return digest === undefined ? undefined : ranks.get(digest);
  };
  return {
    name: "batch",
    order: (request, known) => {
      const front = request.retrieved
        .flatMap(({ label }) => {
          const rank = rankOf(label);
          return rank === undefined ? [] : [{ label, rank }];
        })
        .sort((a, b) => a.rank - b.rank)
        .map(({ label }) => label);
      if (front.length === 0) return prefixExact.order(request, known);
      return withoutCarried([...front, ...orderBehind(front, request, known)]);
    },
    orderBehind,
  };
}
