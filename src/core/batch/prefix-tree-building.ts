import { joined, type PrefixNode } from "./prefix-tree.js";

/**
 * Joins nodes into one tree from the bottom up, always the two with the most common tokens: a join saves the tokens that the two share.
 * Ties go to the pair with the earliest node. Nodes without common tokens are joined last, balanced, by nodes without blocks.
 *
 * A join shares no more with a third node than each of its parts did. So two nodes that are each other's best are joined eventually,
 * whatever else is joined, and may be joined at once: a nearest-neighbour chain, as in `average-linkage.ts`, but over an index from each
 * block to the nodes that contain it instead of a table of pairs. O(N · K) memory; the time of a search is the number of its blocks' nodes.
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
  /** By block: ids of the nodes that contain it, and of some that are joined already. */
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

  /** Joins until no two nodes have common tokens; returns those left. */
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
      const holders = this.#holders.get(block);
      if (holders === undefined) this.#holders.set(block, [id]);
      else holders.push(id);
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
