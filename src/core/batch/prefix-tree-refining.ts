import { inBoth, nodesOf, type PrefixNode, tokensIn } from "./prefix-tree.js";

/** A pass that gains less than this share of the saved tokens is the last. */
const WORTHWHILE = 0.001;
const MAX_PASSES = 6;
/** Maximum places examined per node, to bound the time. Branches that cannot be better are pruned. */
const MAX_PLACES = 300;

/**
 * Improves a tree by local search: removes every node in turn, a request or a whole branch, and reinserts it where the tree saves most,
 * until a pass gains next to nothing. Never saves less than before. Returns the root, which may be another node. O(nodes × places) per
 * pass. `scratch`: a zero per block, to be shared by calls for many trees; zeros again afterwards.
 */
export function refined(
  root: PrefixNode,
  tokensOf: Float64Array,
  scratch: Uint8Array = new Uint8Array(tokensOf.length),
): PrefixNode {
  const refining = new Refining(root, tokensOf, scratch);
  for (let pass = 0; pass < MAX_PASSES; pass++) if (!refining.pass()) break;
  return refining.root;
}

class Refining {
  constructor(
    public root: PrefixNode,
    readonly tokensOf: Float64Array,
    /** By block: whether the moving node contains it. */
    readonly held: Uint8Array,
  ) {}

  /** Runs one pass; whether another one is worth its time. */
  pass(): boolean {
    let gained = 0;
    let saved = 0;
    for (const node of [...nodesOf(this.root)]) {
      if (node.children !== null) saved += node.tokens;
      // The parent moves too, as the node above the new place.
      const { parent } = node;
      if (parent !== null) gained += this.#move(node, parent);
    }
    return gained > WORTHWHILE * saved;
  }

  /** Moves a node to where it saves most; returns the tokens gained. */
  #move(node: PrefixNode, parent: PrefixNode): number {
    const sibling = siblingOf(node, parent);
    const before = parent.tokens + tokensAbove(parent);
    this.#replace(parent, sibling);
    const given = before - tokensAbove(sibling);
    const { place, tokens } = this.#bestPlace(node, sibling, given);
    const { parent: above } = place;
    if (above === null) this.root = parent;
    else setChild(above, place, parent);
    parent.parent = above;
    place.parent = parent;
    parent.children = [place, node];
    this.#narrow(parent);
    return tokens - given;
  }

  /** Replaces a node by one of its children. */
  #replace(node: PrefixNode, child: PrefixNode): void {
    const { parent } = node;
    child.parent = parent;
    if (parent === null) {
      this.root = child;
      return;
    }
    setChild(parent, node, child);
    this.#narrow(parent);
  }

  /** Recomputes the blocks of a node and its ancestors from their children. */
  #narrow(from: PrefixNode): void {
    for (let node: PrefixNode | null = from; node?.children != null; node = node.parent) {
      const blocks = inBoth(node.children[0].blocks, node.children[1].blocks);
      // The blocks of ancestors only grow, or only shrink: an equal length means no change.
      if (node !== from && blocks.length === node.blocks.length) return;
      node.blocks = blocks;
      node.tokens = tokensIn(blocks, this.tokensOf);
    }
  }

  /**
   * The node above which another saves most: their common tokens, less what the ancestors lose. `place` if none saves more than `tokens`.
   */
  #bestPlace(node: PrefixNode, place: PrefixNode, tokens: number): { place: PrefixNode; tokens: number } {
    const [held, tokensOf] = [this.held, this.tokensOf];
    for (const block of node.blocks) held[block] = 1;
    let best = { place, tokens };
    const pending: { at: PrefixNode; lost: number }[] = [{ at: this.root, lost: 0 }];
    let places = 0;
    for (let step = pending.pop(); step !== undefined && places < MAX_PLACES; step = pending.pop()) {
      places++;
      const { at, lost } = step;
      let common = 0;
      for (const block of at.blocks) if (held[block] === 1) common += tokensOf[block] as number;
      if (common - lost > best.tokens) best = { place: at, tokens: common - lost };
      const lostBelow = lost + at.tokens - common;
      if (at.children === null || node.tokens - lostBelow <= best.tokens) continue;
      pending.push({ at: at.children[0], lost: lostBelow }, { at: at.children[1], lost: lostBelow });
    }
    for (const block of node.blocks) held[block] = 0;
    return best;
  }
}

function siblingOf(node: PrefixNode, { children }: PrefixNode): PrefixNode {
  if (children === null) throw new Error("a parent has no children");
  return children[0] === node ? children[1] : children[0];
}

function setChild(parent: PrefixNode, old: PrefixNode, child: PrefixNode): void {
  parent.children = [child, siblingOf(old, parent)];
}

function tokensAbove(node: PrefixNode): number {
  let tokens = 0;
  for (let at = node.parent; at !== null; at = at.parent) tokens += at.tokens;
  return tokens;
}
