import type { ContextIndex } from "../context-index/context-index.js";
import type { PrefixMatch, ServedNode } from "../context-index/index-node.js";
import type { Digest, Label } from "../text/ids.js";
import { orderBehind, orderForReuse } from "./order-for-reuse.js";
import type { CarryAllowance, OrderingPolicy, RetrievedBlock } from "./ordering.js";
import { prefixExact } from "./prefix-exact.js";

/** A full allowance costs as much as this share of the retrieved tokens: a prefix is kept dense, so that later requests find it useful. */
const PRICE_OF_FULL_ALLOWANCE = 0.25;
/** All that is in the memory bank costs as much as this share: the fuller it is, the cheaper is a carried token. */
const PRICE_OF_ALL_BANKED = 0.8;
/**
 * A path that all requests went through costs as much as this share of the retrieved tokens; others by the root of their share. What
 * much-used paths go on with is there already: another sequence serves later requests better. Figures: `docs/internals/ordering-trials.md`.
 */
const PRICE_OF_CROWDED_PATH = 0.2;
/** How much the relevance rank counts in the order of the rest: less than behind an exact prefix, as every like request counts here. */
const RANK_WEIGHT = 0.1;
/** A prompt with room for all known blocks pays nothing for either; short of it by this share of the retrieved tokens, all of it. */
const SCARCE_BY = 0.1;
/** Most nodes of the index that one search looks at, those used last, so that its time is bounded. Figures: `docs/ordering.md`. */
const MAX_VISITED = 512;
/** What cannot be carried costs more than any allowance. */
const NEVER = Number.POSITIVE_INFINITY;

/**
 * Ours (docs/internals/algorithms.md, "Carry-over under a budget"): a strict prefix breaks at the first cached block that this request did
 * not retrieve. Where the request's budget allows, such blocks stay, so that the retrieved ones behind them still hit. Chosen is the path
 * that spares the engine most (every token that is computed attends over the carried ones, or they are billed), less a price for what it
 * makes of later requests: for the carried tokens, and for a path that many went through. It ends with a retrieved block. Where every path
 * costs more than it saves the request starts afresh. Without an allowance it is `prefix-exact`.
 */
export const carryOver: OrderingPolicy = {
  name: "carry-over",
  order(request, known) {
    const { anchor, retrieved, carrying } = request;
    if (carrying === null) return prefixExact.order(request, known);
    const match = cheapestPath(known.index, anchor, retrieved, carrying);
    const matched = new Set(match.labels);
    const rest = retrieved.filter(({ label }) => !matched.has(label));
    const asked = retrieved.map(({ label }) => label);
    const wanted = new Set(asked);
    return {
      // With carrying a later request need not want all that stands before: every like request counts.
      labels: [...match.labels, ...orderForReuse([], rest, asked, known.recent, RANK_WEIGHT)],
      carried: new Set(match.labels.filter((label) => !wanted.has(label))),
      searchPath: match.searchPath,
    };
  },
  orderBehind,
};

/** What a path is worth that saves and carries so many tokens: the more, the more it saves and the less it carries. */
type Value = (saved: number, carried: number) => number;

interface PathPrices {
  readonly value: Value;
  /** What a path costs beside, by the share of the requests behind its anchor that went through it. */
  readonly crowding: (share: number) => number;
}

function pricesFor(retrievedTokens: number, allowance: CarryAllowance): PathPrices {
  const { tokens, ownTokens, bankedTokens, knownTokens, spared } = allowance;
  const missing = knownTokens - (retrievedTokens + tokens);
  const scarcity = Math.min(1, Math.max(0, missing / (SCARCE_BY * retrievedTokens)));
  const ofOwn = ownTokens === null ? 0 : PRICE_OF_FULL_ALLOWANCE / ownTokens;
  const ofBanked = bankedTokens === null ? 0 : PRICE_OF_ALL_BANKED / bankedTokens;
  const price = scarcity * retrievedTokens * Math.max(ofOwn, ofBanked);
  const crowded = scarcity * PRICE_OF_CROWDED_PATH * retrievedTokens;
  return {
    value: (saved, carried) => spared(saved, carried) - price * carried,
    crowding: (share) => crowded * Math.sqrt(share),
  };
}

/** One pass over the nodes used last. A parent comes before its children, so each goes on from what its parent ended with. */
function cheapestPath(
  index: ContextIndex,
  anchor: Digest,
  retrieved: readonly RetrievedBlock[],
  carrying: CarryAllowance,
): Omit<PrefixMatch, "tokens"> {
  const nothing = { labels: [], searchPath: [] };
  const root = index.root(anchor);
  if (root === undefined) return nothing;
  const weights = new BlockWeights(index.labelBound, retrieved, carrying);
  const { retrievedTokens } = weights;
  const { value, crowding } = pricesFor(retrievedTokens, carrying);
  const savedTo = new Float64Array(MAX_VISITED);
  const carriedTo = new Float64Array(MAX_VISITED);
  let best: { node: ServedNode; taken: number; value: number } = { node: root, taken: 0, value: 0 };
  root.mark = 0;
  let node = root.staler;
  for (let visited = 1; node !== null && visited < MAX_VISITED; visited++, node = node.staler) {
    node.mark = visited;
    const from = node.parent?.mark ?? 0;
    let saved = savedTo[from] as number;
    let carried = carriedTo[from] as number;
    // No path through here can save more than all that was retrieved, nor be less crowded than one that nobody took.
    if (carried < NEVER && value(retrievedTokens, carried) <= best.value) carried = NEVER;
    if (carried < NEVER) {
      const { run, uses } = node.row;
      const crowded = crowding(uses / root.row.uses);
      for (let at = 0; at < run.length; at++) {
        const weight = weights.of(run[at] as Label);
        if (weight < 0) {
          carried -= weight;
          if (carried <= carrying.tokens) continue;
          carried = NEVER;
          break;
        }
        saved += weight;
        const worth = value(saved, carried) - crowded;
        if (worth > best.value) best = { node, taken: at + 1, value: worth };
      }
    }
    savedTo[visited] = saved;
    carriedTo[visited] = carried;
  }
  return best.value === 0 ? nothing : index.pathTo(best.node.row.id, best.taken);
}

/** Tokens by label: of what was retrieved above 0, of all else below. A block without tokens has next to none, to tell them apart. */
class BlockWeights {
  readonly retrievedTokens: number;
  readonly #weights: Float64Array;

  constructor(
    bound: number,
    retrieved: readonly RetrievedBlock[],
    private readonly carrying: CarryAllowance,
  ) {
    this.#weights = new Float64Array(bound);
    let sum = 0;
    for (const { label, tokens } of retrieved) {
      sum += tokens;
      if (label < bound) this.#weights[label] = tokens || Number.MIN_VALUE;
    }
    this.retrievedTokens = sum;
  }

  of(label: Label): number {
    return (this.#weights[label] as number) || this.#lookUp(label);
  }

  #lookUp(label: Label): number {
    const weight = -((this.carrying.tokensOf(label) ?? NEVER) || Number.MIN_VALUE);
    this.#weights[label] = weight;
    return weight;
  }
}
