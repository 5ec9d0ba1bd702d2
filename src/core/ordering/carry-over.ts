import type { ContextIndex } from "../cache/context-index.js";
import type { ServedNode } from "../cache/index-node.js";
import { keptIn } from "../text/collections.js";
import type { Digest, Label } from "../text/ids.js";
import {
  type CarryAllowance,
  labelsOf,
  type OrderingPolicy,
  orderAfter,
  orderForReuse,
  prefixExact,
  type RetrievedBlock,
  retrieval,
} from "./ordering.js";
import { pathTo, type ServedPath } from "./prefix-search.js";

/** Price of carrying the full allowance, as a share of the retrieved tokens. Keeps prefixes dense, so that later requests reuse them. */
const PRICE_OF_FULL_ALLOWANCE = 0.25;
/** Price of spending the whole memory bank, likewise: the fuller the bank, the cheaper a carried token. */
const PRICE_OF_ALL_BANKED = 0.8;
/** Price of a path that all requests took, likewise: crowded paths are cached already. Figures: `docs/internals/ordering-trials.md`. */
const PRICE_OF_CROWDED_PATH = 0.2;
const RANK_WEIGHT = 0.1;
/** No price while all known blocks fit; the full price once the prompt is short by this share of the retrieved tokens. */
const SCARCE_BY = 0.1;
/** Maximum nodes visited per search, most recently used first. Figures: `docs/ordering.md`. */
const MAX_VISITED = 512;
/** The cost of a block that must not be carried. */
const NEVER = Number.POSITIVE_INFINITY;

/**
 * Carries cached blocks that were not retrieved, within the request's budget, so that retrieved blocks after them hit
 * (docs/internals/algorithms.md, "Carry-over under a budget"). Chooses the path that spares most, less a price for its effect on later requests;
 * none if every path costs more than it saves. Without an allowance it equals `prefix-exact`.
 */
export const carryOver: OrderingPolicy = {
  name: "carry-over",
  order(request, known) {
    const { anchor, retrieved, carrying, leastHit = 0 } = request;
    if (carrying === null) return prefixExact.order(request, known);
    const match = cheapestPath(known.index, anchor, retrieved, carrying);
    if (match.labels.length === 0 && leastHit > 0) return retrieval.order(request, known);
    const matched = new Set(match.labels);
    const rest = retrieved.filter(({ label }) => !matched.has(label));
    const asked = labelsOf(retrieved);
    const wanted = new Set(asked);
    return {
      labels: [...match.labels, ...orderForReuse([], rest, asked, known.recent, RANK_WEIGHT)],
      carried: new Set(match.labels.filter((label) => !wanted.has(label))),
      searchPath: match.searchPath,
    };
  },
  orderAfter,
};

function pricesFor(retrievedTokens: number, allowance: CarryAllowance) {
  const { tokens, ownTokens, bankedTokens, knownTokens, spared } = allowance;
  const missing = knownTokens - (retrievedTokens + tokens);
  const scarcity = Math.min(1, Math.max(0, missing / (SCARCE_BY * retrievedTokens)));
  const ofOwn = ownTokens === null ? 0 : PRICE_OF_FULL_ALLOWANCE / ownTokens;
  const ofBanked = bankedTokens === null ? 0 : PRICE_OF_ALL_BANKED / bankedTokens;
  const price = scarcity * retrievedTokens * Math.max(ofOwn, ofBanked);
  const crowded = scarcity * PRICE_OF_CROWDED_PATH * retrievedTokens;
  return {
    /** Rises with `saved`, falls with `carried`, in tokens. */
    value: (saved: number, carried: number) => spared(saved, carried) - price * carried,
    crowding: (share: number) => crowded * Math.sqrt(share),
  };
}

/** One pass over the most recently used nodes. Each node extends its parent's result. */
function cheapestPath(
  index: ContextIndex,
  anchor: Digest,
  retrieved: readonly RetrievedBlock[],
  carrying: CarryAllowance,
): ServedPath {
  const nothing = { labels: [], searchPath: [] };
  const root = index.root(anchor);
  if (root === undefined) return nothing;
  const wanted = new Map(retrieved.map(({ label, tokens }) => [label, tokens]));
  const retrievedTokens = retrieved.reduce((sum, { tokens }) => sum + tokens, 0);
  const costs = new Map<Label, number>();
  const costOf = (label: Label) => keptIn(costs, label, () => carrying.tokensOf(label) ?? NEVER);
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
    // Prune: no path through here saves more than all retrieved tokens.
    if (carried < NEVER && value(retrievedTokens, carried) <= best.value) carried = NEVER;
    if (carried < NEVER) {
      const { run, uses } = node.row;
      const crowded = crowding(uses / root.row.uses);
      for (let at = 0; at < run.length; at++) {
        const label = run[at] as Label;
        const tokens = wanted.get(label);
        if (tokens === undefined) {
          carried += costOf(label);
          if (carried <= carrying.tokens) continue;
          carried = NEVER;
          break;
        }
        saved += tokens;
        const worth = value(saved, carried) - crowded;
        if (worth > best.value) best = { node, taken: at + 1, value: worth };
      }
    }
    savedTo[visited] = saved;
    carriedTo[visited] = carried;
  }
  return best.value === 0 ? nothing : pathTo(best.node, best.taken);
}

export const MAX_MEMORY_BUDGET_RATIO = 100;
/** Maximum of one prompt, as a multiple of its own share. Figures: `docs/internals/ordering-trials.md`. */
const MAX_PER_PROMPT = 1.5;
/** Maximum of the bank, as a multiple of the paying prompt's own share. */
const MAX_BANKED = 20;

/**
 * What a prompt may carry, in whole tokens. A scope's prompts share one memory bank: together they never send more memory tokens than the sum of
 * ratio × retrieved. Unused tokens are banked; one prompt carries at most {@link MAX_PER_PROMPT} times its own share. A turn counts the tokens that
 * it adds; blocks that it holds back count as sent. `banked`: the bank's balance plus this prompt's own share, which later prompts share.
 */
export function bankAllowance(bankedTokens: number, ratio: number, retrievedTokens: number) {
  const banked = ownShare(ratio, retrievedTokens) + bankedTokens;
  const most = ownShare(MAX_PER_PROMPT * ratio, retrievedTokens);
  return { tokens: Math.min(banked, most), banked };
}

/** The bank's balance after a composed prompt. */
export function bankAfter(bankedTokens: number, ratio: number, retrievedTokens: number, carriedTokens: number): number {
  const own = ownShare(ratio, retrievedTokens);
  const left = bankedTokens + own - carriedTokens;
  // The bound of a small prompt must not reduce what larger ones deposited.
  return left <= bankedTokens ? left : Math.max(bankedTokens, Math.min(left, MAX_BANKED * own));
}

function ownShare(ratio: number, retrievedTokens: number): number {
  return Math.floor(ratio * retrievedTokens) - retrievedTokens;
}
