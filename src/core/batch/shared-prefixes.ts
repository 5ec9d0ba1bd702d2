import { blocksKey } from "../ordering/alignment.js";
import { groupBy } from "../text/lists.js";
import type { BatchOrder, KeyGroup, NumberedBatch } from "./batch-request.js";
import { CachedPrefixes } from "./cached-prefixes.js";
import { cachedStarts, type StartedTree, savedIn } from "./cached-starts.js";
import { contextComponents } from "./context-components.js";
import { contextParts } from "./context-parts.js";
import { MarkedBlocks } from "./marked-blocks.js";
import { oneByOne } from "./one-by-one.js";
import { branchesOf, executed, type PlannedBranch, singleBranches } from "./planned-branches.js";
import { requestNode, tokensIn } from "./prefix-tree.js";
import { joinAll } from "./prefix-tree-building.js";
import { refined } from "./prefix-tree-refining.js";

/** Maximum connected requests that are planned in one piece; larger sets are split into parts, which are joined afterwards. */
const PART_REQUESTS = 2_000;
/** Maximum requests of one key for which the plan is compared with composing them one by one: that takes time in proportion to them. */
const COMPARED_REQUESTS = 2_000;

/**
 * Plans the blocks' orders and the requests' order together, so that serving them prefills as few tokens as possible; memstem's own. Builds
 * trees in which every prompt is a path: the blocks common to all prompts below a node come before all others. Greedily joins the two
 * nodes that share most, then moves requests and branches to where they save more. What should be cached already is used where that saves
 * more than sharing ({@link cachedStarts}). Execution is depth first: a prefix is computed once, reused by all its requests back to back,
 * and may be evicted after the last of them, so a cache with room for a few prompts does as well as an unlimited one. What was cached
 * before is used first. Finding the optimal trees is hard (as for the order of columns and rows, Liu et al. 2024); the distance to them is
 * unknown.
 *
 * In a cache that evicts nothing, the requests of a key hit no less than they would one by one by `prefix-exact`, where a key has at most
 * {@link COMPARED_REQUESTS}: those orders are taken where they hit more.
 *
 * Deterministic. A few seconds for 10,000 requests of 100 blocks; memory is linear in the blocks of all requests and of what is cached.
 */
export function sharedPrefixes(batch: NumberedBatch): BatchOrder {
  const scratch = new Uint8Array(batch.tokensOf.length);
  const marked = new MarkedBlocks(batch.tokensOf);
  return executed(
    batch,
    batch.groups.flatMap((group, at) => planOfKey(batch, group, at, { scratch, marked })),
  );
}

/** Shared by the plans of all keys, because each holds all blocks. */
interface Scratch {
  /** See {@link refined}. */
  readonly scratch: Uint8Array;
  readonly marked: MarkedBlocks;
}

/** The branches of one key's requests. */
function planOfKey(
  { sets, tokensOf }: NumberedBatch,
  group: KeyGroup,
  key: number,
  { scratch, marked }: Scratch,
): PlannedBranch[] {
  // Requests with the same blocks are one node, represented by the earliest.
  const alike = groupBy(group.requests, (request) => blocksKey(sets[request] ?? []));
  const requestsAs = new Map([...alike.values()].map((requests) => [requests[0] ?? 0, requests]));
  const earliestAlike = [...requestsAs.keys()];
  const distinct = earliestAlike.map((request) => sets[request] ?? []);
  const cached = new CachedPrefixes(group, marked);
  const trees: StartedTree[] = contextComponents(distinct).flatMap((component) => {
    const parts = component.length > PART_REQUESTS ? contextParts(distinct, component, PART_REQUESTS) : [component];
    const roots = parts.map((part) => {
      const requests = part.map((at) => requestNode(earliestAlike[at] ?? 0, distinct[at] ?? [], tokensOf));
      return refined(joinAll(requests, tokensOf), tokensOf, scratch);
    });
    return cachedStarts(joinAll(roots, tokensOf), cached, tokensOf);
  });
  if (group.requests.length > 1 && group.requests.length <= COMPARED_REQUESTS) {
    let saved = savedIn(trees);
    for (const [request, { length }] of requestsAs) saved += (length - 1) * tokensIn(sets[request] ?? [], tokensOf);
    const alone = oneByOne(group, sets, marked, saved);
    if (alone !== null) return singleBranches(alone, key);
  }
  return trees.flatMap((tree) => branchesOf(tree, { sets, requestsAs, cached, key }));
}
