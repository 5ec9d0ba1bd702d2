/* ordering: the order of a request's blocks. Enters: blocks, the scope's knowledge. Leaves: an order, and which blocks are carried. */

import type { ContextIndex } from "../cache/context-index.js";
import type { Spared } from "../cost/engine-model.js";
import { keptIn } from "../text/collections.js";
import type { Digest, Label, TurnId } from "../text/ids.js";
import { searchPrefix, servedAfter } from "./prefix-search.js";
import { type TurnRow, TurnRows } from "./turn-rows.js";

export interface RetrievedBlock {
  readonly label: Label;
  readonly tokens: number;
}

export interface CarryAllowance {
  readonly tokens: number;
  /** What is left of the prompt's own limit, at least `tokens`; null: no limit. */
  readonly ownTokens: number | null;
  /** The memory bank's balance with this prompt's share, at least `tokens`; null: no bank. */
  readonly bankedTokens: number | null;
  /** Tokens of all blocks that could be retrieved. If they fit, carrying one displaces no other. */
  readonly knownTokens: number;
  readonly spared: Spared;
  /** Tokens of a block's line; null if it must not be carried: superseded, forgotten, a run's, of an untrusted origin, left out of this prompt, or in it already. */
  readonly tokensOf: (label: Label) => number | null;
}

export interface OrderingRequest {
  /** Only sequences served after the same bytes can be reused. */
  readonly anchor: Digest;
  readonly retrieved: readonly RetrievedBlock[];
  /** Null: retrieved blocks only. */
  readonly carrying: CarryAllowance | null;
  /** With fewer cached tokens, memprefix's own policies keep relevance order, which needs no ranking line. Default: 0. */
  readonly leastHit?: number;
}

/** An order of the blocks. Served sequences determine how much of it is cached. */
export interface Ordering {
  /** Every retrieved block exactly once, and the carried blocks. */
  readonly labels: readonly Label[];
  /** Not retrieved; kept in their cached place so that the blocks after them hit. */
  readonly carried: ReadonlySet<Label>;
  /** The node that the policy matched, as child positions. */
  readonly searchPath: readonly number[];
}

export const NOTHING_CARRIED: ReadonlySet<Label> = new Set();

export function withoutCarried(labels: readonly Label[], searchPath: readonly number[] = []): Ordering {
  return { labels, carried: NOTHING_CARRIED, searchPath };
}

export function labelsOf(blocks: readonly RetrievedBlock[]): Label[] {
  return blocks.map(({ label }) => label);
}

/** Remembered requests, FIFO: one bit each in a {@link RequestMask}. Other sizes: `docs/internals/ordering-trials.md`. */
export const RECENT_REQUESTS = 64;
const WORD = 32;

/** A set of remembered requests. Bits are reassigned, so their positions have no order. */
export interface RequestMask {
  readonly low: number;
  readonly high: number;
}

const NO_REQUEST: RequestMask = { low: 0, high: 0 };

/** The block sets of the last {@link RECENT_REQUESTS} requests, which predict later ones. Rows have them in relevance order. */
export class RecentRetrievals extends TurnRows<TurnRow> {
  readonly #requestersOf = new Map<Label, { -readonly [K in keyof RequestMask]: number }>();
  /** Each request's bit in every mask. */
  readonly #bits = new Map<TurnId, number>();
  readonly #freeBits = Array.from({ length: RECENT_REQUESTS }, (_, bit) => bit);

  constructor(rows: readonly TurnRow[]) {
    super(RECENT_REQUESTS);
    this.load(rows);
  }

  sets(): ReadonlySet<Label>[] {
    return this.stored().map(({ labels }) => new Set(labels));
  }

  requestersOf(label: Label): RequestMask {
    return this.#requestersOf.get(label) ?? NO_REQUEST;
  }

  take(labels: readonly Label[], turn: TurnId): void {
    if (labels.length > 0) this.put({ turn, labels });
  }

  protected override entered({ turn, labels }: TurnRow): void {
    const bit = this.#freeBits.pop() as number;
    this.#bits.set(turn, bit);
    for (const label of labels) {
      const mask = keptIn(this.#requestersOf, label, () => ({ low: 0, high: 0 }));
      if (bit < WORD) mask.low |= 1 << bit;
      else mask.high |= 1 << (bit - WORD);
    }
  }

  protected override left({ turn, labels }: TurnRow): void {
    const bit = this.#bits.get(turn) as number;
    this.#bits.delete(turn);
    this.#freeBits.push(bit);
    for (const label of labels) {
      const mask = this.#requestersOf.get(label);
      if (mask === undefined) continue;
      if (bit < WORD) mask.low &= ~(1 << bit);
      else mask.high &= ~(1 << (bit - WORD));
      if (mask.low === 0 && mask.high === 0) this.#requestersOf.delete(label);
    }
  }

  protected override shortened(row: TurnRow, labels: readonly Label[]): TurnRow {
    return { ...row, labels };
  }
}

export interface ScopeKnowledge {
  readonly index: ContextIndex;
  readonly recent: RecentRetrievals;
}

/** Orders a request's blocks. `order` is pure. Every policy passes `test/core/ordering/ordering.suite.ts`. */
export interface OrderingPolicy<in K extends ScopeKnowledge = ScopeKnowledge> {
  readonly name: string;
  order(request: OrderingRequest, known: K): Ordering;
  /** Orders the blocks that are not in `front`, which was sent already. Absent: `order` does, as if they were the whole request. */
  orderAfter?(front: readonly Label[], request: OrderingRequest, known: K): readonly Label[];
  /** Records an order after it was served. */
  learn?(request: OrderingRequest, ordering: Ordering, known: K, turn: TurnId): void;
}

/** Relevance order: the baseline of every comparison. */
export const retrieval: OrderingPolicy = {
  name: "retrieval",
  order: ({ retrieved }) => withoutCarried(labelsOf(retrieved)),
};

/** By label: the same blocks always have the same order. */
export const sorted: OrderingPolicy = {
  name: "sorted",
  order: ({ retrieved }) => withoutCarried(labelsOf(retrieved).sort((a, b) => a - b)),
};

/** Orders a prompt that extends an earlier one: its blocks keep their places. Orders from scratch if it may no longer carry them. */
export function extendedOrder<K extends ScopeKnowledge>(
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
    if (policy.orderAfter !== undefined) return policy.orderAfter(front, request, known);
    return policy.order({ ...request, retrieved: rest, carrying: null }, known).labels;
  };
  return { labels: [...front, ...following()], carried: new Set(carried), searchPath: before.searchPath };
}

function isAllowed(carried: readonly Label[], { carrying }: OrderingRequest): boolean {
  let left = carrying?.tokens ?? 0;
  for (const label of carried) left -= carrying?.tokensOf(label) ?? Number.POSITIVE_INFINITY;
  return left >= 0;
}

/** Aligns a context with a prefix (Alg. 2): shared blocks in the prefix's order, then the rest in the context's. */
export function alignTo(prefix: readonly Label[], context: readonly Label[]): Label[] {
  if (prefix.length === 0) return [...context];
  const wanted = new Set(context);
  const front = new Set(prefix.filter((label) => wanted.has(label)));
  return [...front, ...context.filter((label) => !front.has(label))];
}

export function intersectionOf(a: readonly Label[], b: readonly Label[]): Label[] {
  const others = new Set(b);
  return a.filter((label) => others.has(label));
}

/** Equal for contexts with the same blocks in any order. */
export function blocksKey(context: readonly number[]): string {
  return Uint32Array.from(context).sort().join();
}

/** Prefix-exact ordering (docs/internals/algorithms.md): the served sequence of retrieved blocks that saves most, then the rest for reuse. */
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
  orderAfter,
};

/** Weight of the relevance rank, in units of one recent request with the same blocks. */
const RANK_WEIGHT = 0.75;
/** Exponent of a block's tokens in its score: of two equally likely blocks, the longer one goes first. */
const TOKENS_POWER = 0.15;

/**
 * Orders blocks after a cached prefix for later requests: next is the block wanted by most of the recent requests that want every block before it;
 * relevance decides if few do. Measured: `docs/internals/ordering-trials.md`.
 *
 * @param front blocks placed before, of this request or carried
 * @param rest distinct blocks in relevance order
 * @param asked all blocks of the request
 * @param rankWeight see {@link RANK_WEIGHT}
 */
export function orderForReuse(
  front: readonly Label[],
  rest: readonly RetrievedBlock[],
  asked: readonly Label[],
  recent: RecentRetrievals,
  rankWeight = RANK_WEIGHT,
): Label[] {
  const like = new LikeRequests(front, asked, recent);
  const wantedBy = rest.map(({ label }) => recent.requestersOf(label));
  const shared = wantedBy.map((mask) => like.weightOf(mask));
  if (shared.every((weight) => weight === 0)) return labelsOf(rest);
  const rankOf = new Map(asked.map((label, rank) => [label, rank]));
  const rank = rest.map(({ label }) => rankWeight * (1 - (rankOf.get(label) ?? 0) / asked.length));
  const size = rest.map(({ tokens }) => tokens ** TOKENS_POWER);
  // Whole numbers, so that sums do not depend on the order of the remembered requests.
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

class LikeRequests {
  /** By bit: the number of blocks shared with this request, squared. */
  readonly #weights = new Float64Array(RECENT_REQUESTS);
  #low = ~0;
  #high = ~0;

  constructor(front: readonly Label[], asked: readonly Label[], recent: RecentRetrievals) {
    for (const label of front) {
      const { low, high } = recent.requestersOf(label);
      this.#low &= low;
      this.#high &= high;
    }
    if (this.#low === 0 && this.#high === 0) return;
    for (const label of asked) {
      const { low, high } = recent.requestersOf(label);
      for (let bits = low; bits !== 0; bits &= bits - 1) this.#count(lowestBit(bits));
      for (let bits = high; bits !== 0; bits &= bits - 1) this.#count(WORD + lowestBit(bits));
    }
    for (let bit = 0; bit < RECENT_REQUESTS; bit++) this.#weights[bit] = (this.#weights[bit] as number) ** 2;
  }

  weightOf({ low, high }: RequestMask): number {
    let sum = 0;
    for (let bits = low & this.#low; bits !== 0; bits &= bits - 1) sum += this.#weights[lowestBit(bits)] as number;
    for (let bits = high & this.#high; bits !== 0; bits &= bits - 1)
      sum += this.#weights[WORD + lowestBit(bits)] as number;
    return sum;
  }

  /** False if that changes nothing. */
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

/** Orders blocks after `front`: along its served continuations, the most relevant first; then for reuse, or by relevance if little is cached. */
export function orderAfter(
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

/** Places the blocks of a batch plan first. They are texts, because labels are assigned only when composing. */
export function plannedOrder(planned: readonly string[], textOf: (label: Label) => string | undefined): OrderingPolicy {
  return {
    name: "batch",
    order: (request, known) => {
      const labels = new Map(request.retrieved.map(({ label }) => [textOf(label), label]));
      const front = planned.flatMap((text) => labels.get(text) ?? []);
      if (front.length === 0) return prefixExact.order(request, known);
      return withoutCarried([...front, ...orderAfter(front, request, known)]);
    },
    orderAfter,
  };
}
