/** vLLM's default block size, in tokens. */
export const BLOCK_TOKENS = 16;

/**
 * A prefix cache as vLLM keeps it, without end: full blocks of 16 tokens, each known by its own tokens and the block before it. A prompt
 * hits the longest run of blocks from its beginning that any earlier prompt had. Exact: it keeps the tokens where an engine keeps hashes.
 */
export class BlockHashCache {
  /** Blocks by the block before them and their tokens; block 0 is the beginning. */
  readonly #blocks = new Map<string, number>();

  /** Takes in a prompt; returns how many of its tokens, from the beginning, were there already. */
  serve(tokens: readonly number[]): number {
    let parent = 0;
    let hit = 0;
    let isHitting = true;
    for (let at = 0; at + BLOCK_TOKENS <= tokens.length; at += BLOCK_TOKENS) {
      const key = `${parent}:${tokens.slice(at, at + BLOCK_TOKENS).join(",")}`;
      const known = this.#blocks.get(key);
      if (known === undefined) {
        isHitting = false;
        parent = this.#blocks.size + 1;
        this.#blocks.set(key, parent);
      } else {
        parent = known;
        if (isHitting) hit += BLOCK_TOKENS;
      }
    }
    return hit;
  }
}
