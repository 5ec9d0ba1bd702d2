import type { Digest, Label } from "../text/ids.js";
import { append } from "../text/lists.js";
import {
  NOTHING_CARRIED,
  type OrderingPolicy,
  type OrderingRequest,
  RECENT_REQUESTS,
  type RecentRetrievals,
  type RequestMask,
  type RetrievedBlock,
  retrieval,
  type ScopeKnowledge,
} from "./ordering.js";

/**
 * Prefix-exact ordering, memstem's own (docs/internals/algorithms.md, "Prefix-exact ordering"): first the served sequence of retrieved
 * blocks that saves the most prefill tokens, then the rest in the order that later requests can reuse most of.
 */
export const prefixExact: OrderingPolicy = {
  name: "prefix-exact",
  order(request, known) {
    const { anchor, retrieved, leastHit = 0 } = request;
    const { index, recent } = known;
    const match = index.search(anchor, new Map(retrieved.map(({ label, tokens }) => [label, tokens])));
    if (match.tokens < leastHit) return retrieval.order(request, known);
    const matched = new Set(match.labels);
    const rest = retrieved.filter(({ label }) => !matched.has(label));
    const asked = retrieved.map(({ label }) => label);
    return {
      labels: [...match.labels, ...orderForReuse(match.labels, rest, asked, recent)],
      carried: NOTHING_CARRIED,
      searchPath: match.searchPath,
    };
  },
  orderBehind,
};

/** Weight of the relevance rank relative to recent requests, in units of one request with the same blocks. */
const RANK_WEIGHT = 0.75;
/** Exponent of a block's tokens in its score: of two blocks equally likely to be wanted again, the longer one goes first. */
const TOKENS_POWER = 0.15;
/** Bits in one half of a mask. */
const WORD = 32;

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
  if (shared.every((weight) => weight === 0)) return rest.map(({ label }) => label);
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
  const isServed = (label: Label) => index.heldBlocks(anchor, [...sequence, label]) > sequence.length;
  for (let next = left.findIndex(({ label }) => isServed(label)); next >= 0; ) {
    append(
      sequence,
      left.splice(next, 1).map(({ label }) => label),
    );
    next = left.findIndex(({ label }) => isServed(label));
  }
  const asked = retrieved.map(({ label }) => label);
  const isWorthMoving = () => {
    const held = new Set(sequence.slice(0, index.heldBlocks(anchor, sequence)));
    return retrieved.reduce((sum, { label, tokens }) => sum + (held.has(label) ? tokens : 0), 0) >= leastHit;
  };
  const isMoved = leastHit === 0 || isWorthMoving();
  const rest = isMoved ? orderForReuse(sequence, left, asked, recent) : left.map(({ label }) => label);
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
      return {
        labels: [...front, ...orderBehind(front, request, known)],
        carried: NOTHING_CARRIED,
        searchPath: [],
      };
    },
    orderBehind,
  };
}
