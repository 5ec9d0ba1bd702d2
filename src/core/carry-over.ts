import type { ContextIndex } from "./context-index.js";
import type { Digest, Label } from "./ids.js";
import type { PrefixMatch, ServedNode } from "./index-node.js";
import { orderForReuse } from "./order-for-reuse.js";
import type { CarryAllowance, OrderingPolicy } from "./ordering.js";
import { prefixExact } from "./prefix-exact.js";

/** A full allowance costs as much as this share of the retrieved tokens: a prefix is kept dense, so that later requests find it useful. */
const PRICE_OF_FULL_ALLOWANCE = 0.25;
/** A prompt with room for all known blocks pays nothing for carrying; short of it by this share of the retrieved tokens, all of it. */
const SCARCE_BY = 0.1;
/** Most nodes of the index that one search looks at, so that its time is bounded; the most promising branches come first. */
const MAX_VISITED = 2_000;

/**
 * Ours (ALGORITHMS.md §4, "carry-over under a budget"): a strict prefix breaks at the first cached block that this request did not
 * retrieve. Where the request's budget allows, such blocks stay, so that the retrieved ones behind them still hit. Chosen is the path
 * with the most cached tokens of retrieved blocks, less a price for the carried ones; it ends with a retrieved block. Where every
 * path costs more than it saves the request starts afresh. Without an allowance it is `prefix-exact`.
 */
export const carryOver: OrderingPolicy = {
  name: "carry-over",
  order(request, known) {
    const { anchor, retrieved, carrying } = request;
    if (carrying === null) return prefixExact.order(request, known);
    const wanted = new Map(retrieved.map(({ label, tokens }) => [label, tokens]));
    const match = cheapestPath(known.index, anchor, wanted, carrying);
    const matched = new Set(match.labels);
    const rest = retrieved.filter(({ label }) => !matched.has(label));
    const asked = retrieved.map(({ label }) => label);
    // With carrying a later request need not want all that stands before: every like request counts.
    return {
      labels: [...match.labels, ...orderForReuse([], rest, asked, known.recent.sets())],
      carried: new Set(match.labels.filter((label) => !wanted.has(label))),
      searchPath: match.searchPath,
    };
  },
};

interface Step {
  readonly node: ServedNode;
  /** Tokens of retrieved blocks on the way to the node. */
  readonly saved: number;
  /** Tokens of carried blocks on the way to the node. */
  readonly carried: number;
}

function cheapestPath(
  index: ContextIndex,
  anchor: Digest,
  wanted: ReadonlyMap<Label, number>,
  carrying: CarryAllowance,
): Omit<PrefixMatch, "tokens"> {
  const root = index.root(anchor);
  const nothing = { labels: [], searchPath: [] };
  if (root === undefined) return nothing;
  let retrievedTokens = 0;
  for (const tokens of wanted.values()) retrievedTokens += tokens;
  const price = priceOf(retrievedTokens, carrying);
  let best: { node: ServedNode; taken: number; value: number } = { node: root, taken: 0, value: 0 };
  const pending: Step[] = [{ node: root, saved: 0, carried: 0 }];
  let visited = 0;
  for (let step = pending.pop(); step !== undefined && visited < MAX_VISITED; step = pending.pop()) {
    visited++;
    let { saved, carried } = step;
    const { node } = step;
    let isWithin = true;
    for (const [at, label] of node.row.run.entries()) {
      const tokens = wanted.get(label);
      if (tokens === undefined) {
        carried += carrying.tokensOf(label) ?? Number.POSITIVE_INFINITY;
        // No path through here can save more than all that was retrieved.
        isWithin = carried <= carrying.tokens && retrievedTokens - price * carried > best.value;
        if (!isWithin) break;
        continue;
      }
      saved += tokens;
      const value = saved - price * carried;
      if (value > best.value || (value === best.value && node.row.lastUsed > best.node.row.lastUsed)) {
        best = { node, taken: at + 1, value };
      }
    }
    if (!isWithin) continue;
    // Those that begin with a retrieved block, and of them the freshest, are looked at first: they raise the bar for the others.
    const children = [...node.children.values()].sort((a, b) => a.row.lastUsed - b.row.lastUsed);
    for (const child of children) if (!isWanted(child, wanted)) pending.push({ node: child, saved, carried });
    for (const child of children) if (isWanted(child, wanted)) pending.push({ node: child, saved, carried });
  }
  return best.value === 0 ? nothing : index.pathTo(best.node.row.id, best.taken);
}

function isWanted(node: ServedNode, wanted: ReadonlyMap<Label, number>): boolean {
  const [first] = node.row.run;
  return first !== undefined && wanted.has(first);
}

/** Price of one carried token, in tokens of prefill. */
function priceOf(retrievedTokens: number, { tokens, knownTokens }: CarryAllowance): number {
  const missing = knownTokens - (retrievedTokens + tokens);
  const scarcity = Math.min(1, Math.max(0, missing / (SCARCE_BY * retrievedTokens)));
  return (scarcity * PRICE_OF_FULL_ALLOWANCE * retrievedTokens) / tokens;
}
