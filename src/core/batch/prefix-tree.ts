/**
 * A node of the tree in which a batch's prompts share prefixes: a request, or the common blocks of two nodes. Blocks are dense numbers from
 * 0; their tokens are in a separate table.
 */
export interface PrefixNode {
  /** Ascending: all blocks of a request, or the blocks that all requests below have in common; may be empty. */
  blocks: readonly number[];
  /** Tokens of `blocks`. */
  tokens: number;
  /** Index of the request, the earliest of several with the same blocks; null for a joining node. */
  readonly request: number | null;
  parent: PrefixNode | null;
  /** Null for a request. */
  children: readonly [PrefixNode, PrefixNode] | null;
}

export function requestNode(request: number, blocks: readonly number[], tokensOf: Float64Array): PrefixNode {
  const ascending = [...blocks].sort((a, b) => a - b);
  return { blocks: ascending, tokens: tokensIn(ascending, tokensOf), request, parent: null, children: null };
}

/** A new node that joins two nodes without parents. */
export function joined(one: PrefixNode, other: PrefixNode, tokensOf: Float64Array): PrefixNode {
  const blocks = inBoth(one.blocks, other.blocks);
  const tokens = tokensIn(blocks, tokensOf);
  const node: PrefixNode = { blocks, tokens, request: null, parent: null, children: [one, other] };
  one.parent = node;
  other.parent = node;
  return node;
}

/** Intersection of two ascending lists. */
export function inBoth(a: readonly number[], b: readonly number[]): number[] {
  const common: number[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [left, right] = [a[i] as number, b[j] as number];
    if (left === right) common.push(left);
    if (left <= right) i++;
    if (right <= left) j++;
  }
  return common;
}

export function tokensIn(blocks: readonly number[], tokensOf: Float64Array): number {
  let tokens = 0;
  for (const block of blocks) tokens += tokensOf[block] as number;
  return tokens;
}

/** Nodes of a tree in preorder. */
export function* nodesOf(root: PrefixNode): Generator<PrefixNode, void, undefined> {
  const pending = [root];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    yield node;
    if (node.children !== null) pending.push(node.children[1], node.children[0]);
  }
}

/**
 * Tokens that need no prefill when the tree's requests are served in preorder: at every joining node its blocks are computed once instead
 * of twice.
 */
export function savedTokens(root: PrefixNode): number {
  let saved = 0;
  for (const { children, tokens } of nodesOf(root)) if (children !== null) saved += tokens;
  return saved;
}
