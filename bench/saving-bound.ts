import { type BatchRequest, groupBy, type Label } from "../src/core/index.js";
import { largest } from "../src/core/text/collections.js";
import { sharedTokens } from "../test/core/cache/slot-cache.js";
import type { RecordedBatch } from "./recorded-batch.js";

/** A request of a batch, for {@link mostSavable}. */
export type WeighedContext = ReadonlyMap<Label, number>;

/**
 * An upper bound of the block tokens that a prefix cache can save over a batch, whatever the order of the requests and of the blocks in
 * each, as long as every prompt holds exactly its own blocks. No plan can save more; there may be none that saves as much.
 *
 * Prompts that share prefixes form a tree; make it binary. A node over m prompts saves at most what all m contexts have in common, and the
 * tree saves the sum of its nodes. Let a prompt below a node bear 1/a − 1/m of it, a being how many prompts are below the node's child
 * towards it: all below a node bear it once. What m contexts that include a given one have in common is at most s(m), the most that any m
 * such contexts have, which falls with m. So a prompt bears at most Σ s(m) · (1/(m−1) − 1/m) over m = 2, 3, …, and all prompts together
 * what is returned. s is exact up to `depth` contexts; beyond, s(depth) stands for it.
 *
 * @param contexts tokens of each request's blocks; a label has the same tokens everywhere
 * @param depth a whole number above 1: the search takes longer with each
 * @returns tokens
 */
export function mostSavable(contexts: readonly WeighedContext[], depth: number): number {
  if (!Number.isInteger(depth) || depth < 2) throw new RangeError(`depth is ${depth}, not a whole number above 1`);
  const all = contexts.length;
  let saved = 0;
  for (const [one, context] of contexts.entries()) {
    const others = contexts.filter((_, other) => other !== one);
    // What more contexts have in common, fewer have too: the search for fewer starts there.
    let shared = 0;
    for (let m = Math.min(depth, all); m >= 2; m--) {
      shared = mostInCommon(context, others, m - 1, shared);
      saved += shared * (1 / (m - 1) - 1 / (m === depth ? all : m));
    }
  }
  return saved;
}

/** The most tokens that `context` and `more` of `others` have in common, or `least` where that is more. Branch and bound. */
function mostInCommon(context: WeighedContext, others: readonly WeighedContext[], more: number, least: number): number {
  let most = least;
  const join = (common: WeighedContext, candidates: readonly WeighedContext[], left: number) => {
    const joined = candidates.map((candidate) => ({ candidate, ...commonOf(common, candidate) }));
    const hopeful = joined.filter(({ tokens }) => tokens > most).sort((a, b) => b.tokens - a.tokens);
    if (left === 1) {
      most = hopeful[0]?.tokens ?? most;
      return;
    }
    for (const [n, { blocks, tokens }] of hopeful.entries()) {
      if (tokens <= most || hopeful.length - n < left) return;
      const rest = hopeful.slice(n + 1).map(({ candidate }) => candidate);
      join(blocks, rest, left - 1);
    }
  };
  join(context, others, more);
  return most;
}

function commonOf(a: WeighedContext, b: WeighedContext): { blocks: WeighedContext; tokens: number } {
  const blocks = new Map<Label, number>();
  let sum = 0;
  for (const [label, tokens] of a) {
    if (!b.has(label)) continue;
    blocks.set(label, tokens);
    sum += tokens;
  }
  return { blocks, tokens: sum };
}

/**
 * A hit ratio that no plan can exceed, whatever the cache, as long as every prompt holds exactly its own blocks.
 *
 * @param depth see {@link mostSavable}
 */
export function hitRatioBound(
  { requests, lines, questions, before, promptTokens }: RecordedBatch,
  depth: number,
): number {
  const savable = [...groupBy(requests, ({ key }) => key).values()].map((ofUser) =>
    mostSavable(
      ofUser.map(({ blocks }) => new Map(blocks.map(({ label, tokens }) => [label, tokens]))),
      depth,
    ),
  );
  // Behind the last common block two prompts may share some more tokens: the common prefix of two lines, or of a line and the closing tag.
  const parting = largest(lines.map((ofUser) => longestAlike([...ofUser, questions[0] ?? []])));
  const withTwin = [...groupBy(requests.keys(), (request) => contextOf(requests[request] as BatchRequest)).values()]
    .filter(({ length }) => length > 1)
    .flat();
  const shared = sum(withTwin.map((request) => questions[request]?.length ?? 0));
  const instructions = requests.length * (before.length + parting);
  return (sum(savable) + instructions + shared) / promptTokens;
}

function contextOf({ key, blocks }: BatchRequest): string {
  return `${key}: ${blocks.map(({ label }) => label).sort((a, b) => a - b)}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** The longest common prefix of any two texts, in tokens. */
function longestAlike(texts: readonly (readonly number[])[]): number {
  const sorted = [...texts].sort((a, b) => {
    const at = sharedTokens(a, b);
    return (a[at] ?? -1) - (b[at] ?? -1);
  });
  return largest(sorted.slice(1).map((text, at) => sharedTokens(sorted[at] ?? [], text)));
}
