import { groupBy, keptIn } from "../text/collections.js";

/** A node of the tree in which prompts share prefixes: a request, or the common blocks of two nodes. Blocks are numbers from 0. */
export interface PrefixNode {
  /** Ascending; may be empty. Of a joining node: the blocks that all requests below have in common. */
  blocks: readonly number[];
  tokens: number;
  /** Of several requests with the same blocks, the earliest; null for a joining node. */
  readonly request: number | null;
  parent: PrefixNode | null;
  children: readonly [PrefixNode, PrefixNode] | null;
}

export function requestNode(request: number, blocks: readonly number[], tokensOf: Float64Array): PrefixNode {
  const ascending = [...blocks].sort((a, b) => a - b);
  return { blocks: ascending, tokens: tokensIn(ascending, tokensOf), request, parent: null, children: null };
}

export function joined(one: PrefixNode, other: PrefixNode, tokensOf: Float64Array): PrefixNode {
  const blocks = inBoth(one.blocks, other.blocks);
  const tokens = tokensIn(blocks, tokensOf);
  const node: PrefixNode = { blocks, tokens, request: null, parent: null, children: [one, other] };
  one.parent = node;
  other.parent = node;
  return node;
}

function inBoth(a: readonly number[], b: readonly number[]): number[] {
  const common: number[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [left, right] = [a[i] as number, b[j] as number];
    if (left === right) common.push(left);
    if (left <= right) i++;
    if (right <= left) j++;
  }
  return common;
}

function tokensIn(blocks: readonly number[], tokensOf: Float64Array): number {
  let tokens = 0;
  for (const block of blocks) tokens += tokensOf[block] as number;
  return tokens;
}

export function* nodesOf(root: PrefixNode): Generator<PrefixNode, void, undefined> {
  const pending = [root];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    yield node;
    if (node.children !== null) pending.push(node.children[1], node.children[0]);
  }
}

/**
 * Joins nodes into one tree from the bottom up, always the two with the most common tokens; ties go to the earliest node. A join shares no more
 * with a third node than its parts did, so nodes that are each other's best can be joined at once (a nearest-neighbour chain, as in
 * `published/clustering.ts`). An index from blocks to nodes replaces the table of pairs: O(N · K) memory.
 */
export function joinAll(nodes: readonly PrefixNode[], tokensOf: Float64Array): PrefixNode {
  const roots = [...new JoiningChain(nodes, tokensOf).join()];
  for (let at = 0; at + 1 < roots.length; at += 2) {
    roots.push(joined(roots[at] as PrefixNode, roots[at + 1] as PrefixNode, tokensOf));
  }
  return roots.at(-1) as PrefixNode;
}

class JoiningChain {
  /** By id, in order of creation; null once joined into another. */
  readonly #nodes: (PrefixNode | null)[];
  /** By id: the index of its earliest leaf. */
  readonly #names: number[];
  /** By id: the node with the most common tokens; -1 if unknown, `NONE` if none shares any. */
  readonly #best: number[];
  readonly #holders = new Map<number, number[]>();
  /** Scratch, by id: tokens in common with the searched node. */
  readonly #common: Float64Array;

  constructor(
    nodes: readonly PrefixNode[],
    readonly tokensOf: Float64Array,
  ) {
    this.#nodes = [...nodes];
    this.#names = nodes.map((_, at) => at);
    this.#best = nodes.map(() => UNKNOWN);
    this.#common = new Float64Array(2 * nodes.length);
    for (const id of nodes.keys()) this.#hold(id);
  }

  join(): PrefixNode[] {
    const chain: number[] = [];
    for (let start = 0; start < this.#nodes.length; start++) {
      if (this.#nodes[start] === null) continue;
      chain.push(start);
      for (let last = chain.at(-1); last !== undefined; last = chain.at(-1)) {
        const best = this.#bestOf(last);
        if (best === NONE) {
          chain.length = 0;
        } else if (best === chain.at(-2)) {
          chain.length -= 2;
          this.#join(last, best);
        } else {
          chain.push(best);
        }
      }
    }
    return this.#nodes.filter((node) => node !== null);
  }

  #hold(id: number): void {
    for (const block of this.#nodes[id]?.blocks ?? []) {
      keptIn(this.#holders, block, () => []).push(id);
    }
  }

  /** A node's best stays its best until that one is joined: a join shares no more than its parts did, and is no earlier than both. */
  #bestOf(id: number): number {
    const known = this.#best[id] as number;
    if (known === NONE || (known !== UNKNOWN && this.#nodes[known] !== null)) return known;
    const [common, nodes] = [this.#common, this.#nodes];
    const met: number[] = [];
    for (const block of nodes[id]?.blocks ?? []) {
      const tokens = this.tokensOf[block] as number;
      const holders = this.#holders.get(block) ?? [];
      let kept = 0;
      for (let at = 0; at < holders.length; at++) {
        const other = holders[at] as number;
        if (nodes[other] === null) continue;
        holders[kept++] = other;
        if (common[other] === 0) met.push(other);
        (common[other] as number) += tokens;
      }
      holders.length = kept;
    }
    let best = NONE;
    let most = 0;
    for (const other of met) {
      const tokens = common[other] as number;
      common[other] = 0;
      if (other === id || tokens < most) continue;
      if (tokens === most && best !== NONE && (this.#names[other] as number) > (this.#names[best] as number)) continue;
      best = other;
      most = tokens;
    }
    this.#best[id] = best;
    return best;
  }

  #join(a: number, b: number): void {
    const [first, second] = (this.#names[a] as number) < (this.#names[b] as number) ? [a, b] : [b, a];
    this.#nodes.push(joined(this.#nodes[first] as PrefixNode, this.#nodes[second] as PrefixNode, this.tokensOf));
    this.#names.push(this.#names[first] as number);
    this.#best.push(UNKNOWN);
    this.#nodes[a] = null;
    this.#nodes[b] = null;
    this.#hold(this.#nodes.length - 1);
  }
}

const UNKNOWN = -1;
const NONE = -2;

/** Connected components of contexts, by index; both levels ascend. Near linear (union-find). */
export function contextComponents(contexts: readonly (readonly number[])[]): number[][] {
  /** Union-find parent: towards the oldest context of the component. */
  const older = Int32Array.from(contexts, (_, at) => at);
  const oldestOf = (context: number) => {
    let at = context;
    for (let next = older[at] as number; next !== at; next = older[at] as number) {
      older[at] = older[next] as number;
      at = next;
    }
    return at;
  };
  const holder = new Map<number, number>();
  for (const [at, context] of contexts.entries()) {
    for (const label of context) {
      const known = holder.get(label);
      if (known === undefined) {
        holder.set(label, at);
        continue;
      }
      const [one, other] = [oldestOf(known), oldestOf(at)];
      older[Math.max(one, other)] = Math.min(one, other);
    }
  }
  return [...groupBy(contexts.keys(), oldestOf).values()];
}

/** Splits contexts, by index, into parts of at most `most` similar ones: recursively by the most common block that not all contain. */
export function contextParts(
  contexts: readonly (readonly number[])[],
  members: readonly number[],
  most: number,
): number[][] {
  const parts: number[][] = [];
  const pending: (readonly number[])[] = [members];
  for (let group = pending.pop(); group !== undefined; group = pending.pop()) {
    const block = group.length <= most ? null : commonestSplitting(contexts, group);
    if (block === null) {
      // Contexts with the same blocks are split by index.
      for (let from = 0; from < group.length; from += most) parts.push(group.slice(from, from + most));
      continue;
    }
    const holds = (at: number) => contexts[at]?.includes(block) === true;
    pending.push(
      group.filter((at) => !holds(at)),
      group.filter(holds),
    );
  }
  return parts.sort(([a = 0], [b = 0]) => a - b);
}

/** The block that most contexts of a group contain, but not all; null for none. */
function commonestSplitting(contexts: readonly (readonly number[])[], group: readonly number[]): number | null {
  const holders = new Map<number, number>();
  for (const at of group) for (const label of contexts[at] ?? []) holders.set(label, (holders.get(label) ?? 0) + 1);
  let best: number | null = null;
  let count = 0;
  for (const [label, held] of holders) {
    if (held <= count || held === group.length) continue;
    best = label;
    count = held;
  }
  return best;
}
