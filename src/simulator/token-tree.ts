/** A run of tokens after its parent's; all descendants share the prefix up to its end. */
export class TokenNode {
  /** By the first token of their run. */
  readonly children = new Map<number, TokenNode>();

  constructor(
    /** Null only for the root. */
    public parent: TokenNode | null,
    public run: Int32Array,
    /** Offset of the run's end in a prompt, in tokens. */
    readonly end: number,
  ) {}
}

/** Where a prompt diverges from the tree. */
export interface Descent {
  /** The node that ends where they diverge. */
  readonly node: TokenNode;
  /** The rest of a run that was split there; null for none. */
  readonly rest: TokenNode | null;
}

/** A radix tree of prompts: each shared prefix is held once. Copies inserted tokens. */
export class TokenTree {
  readonly #root = new TokenNode(null, new Int32Array(), 0);
  #heldTokens = 0;

  get heldTokens(): number {
    return this.#heldTokens;
  }

  /** Follows the prompt's first `end` tokens as far as they are held; splits a run where they diverge midway. */
  descend(tokens: readonly number[], end: number): Descent {
    let node = this.#root;
    for (;;) {
      const child = childOf(node, tokens, end);
      if (child === undefined) return { node, rest: null };
      const same = sameTokens(child, tokens, end);
      if (same < child.run.length) return { node: this.#split(child, same), rest: child };
      node = child;
    }
  }

  /** Adds the prompt's tokens up to `end` below the node where it diverged. */
  append(node: TokenNode, tokens: readonly number[], end: number): TokenNode {
    const leaf = new TokenNode(node, Int32Array.from(tokens.slice(node.end, end)), end);
    node.children.set(tokens[node.end] as number, leaf);
    this.#heldTokens += leaf.run.length;
    return leaf;
  }

  /** Removes a leaf. */
  remove(leaf: TokenNode): void {
    leaf.parent?.children.delete(leaf.run[0] as number);
    this.#heldTokens -= leaf.run.length;
  }

  #split(child: TokenNode, same: number): TokenNode {
    const { parent, run, end } = child;
    const head = new TokenNode(parent, run.subarray(0, same), end - run.length + same);
    parent?.children.set(run[0] as number, head);
    child.parent = head;
    child.run = run.subarray(same);
    head.children.set(child.run[0] as number, child);
    return head;
  }
}

function childOf(node: TokenNode, tokens: readonly number[], end: number): TokenNode | undefined {
  return node.end < end ? node.children.get(tokens[node.end] as number) : undefined;
}

/** How many tokens of the node's run the prompt contains, up to `end`. */
function sameTokens({ run, end: runEnd }: TokenNode, tokens: readonly number[], end: number): number {
  const from = runEnd - run.length;
  const longest = Math.min(run.length, end - from);
  let same = 0;
  while (same < longest && run[same] === tokens[from + same]) same++;
  return same;
}
