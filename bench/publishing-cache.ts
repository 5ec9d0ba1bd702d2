import type { KvEvent } from "../src/engines/kv-events/resident-blocks.js";

type BlockEvent = Exclude<KvEvent, { kind: "cleared" }>;

/** An LRU cache of blocks, which publishes what it stores and removes. */
export class PublishingCache {
  /** Hashes by the tokens up to the block's end; next evicted first. */
  readonly #blocks = new Map<string, string>();
  #hashes = 0;

  /** @param isFromEnd whether a prompt's last block is evicted first, as in vLLM, or its first */
  constructor(
    private readonly capacityTokens: number,
    private readonly blockTokens: number,
    private readonly isFromEnd: boolean,
  ) {}

  /** In blocks. */
  get size(): number {
    return this.#blocks.size;
  }

  /** @returns the tokens that were cached, and what is published */
  compute(tokens: readonly number[]): { readonly cached: number; readonly events: readonly BlockEvent[] } {
    const { blockTokens } = this;
    const count = Math.floor(tokens.length / blockTokens);
    const prefixes = Array.from({ length: count }, (_, at) => tokens.slice(0, (at + 1) * blockTokens).join());
    const missing = prefixes.findIndex((prefix) => !this.#blocks.has(prefix));
    const held = missing < 0 ? count : missing;
    const hashes = prefixes.map((prefix) => this.#blocks.get(prefix) ?? String(++this.#hashes));
    const used = [...prefixes.entries()];
    for (const [at, prefix] of this.isFromEnd ? used.reverse() : used) {
      this.#blocks.delete(prefix);
      this.#blocks.set(prefix, hashes[at] as string);
    }
    const removed: string[] = [];
    for (const [prefix, hash] of this.#blocks) {
      if (this.#blocks.size * blockTokens <= this.capacityTokens) break;
      this.#blocks.delete(prefix);
      removed.push(hash);
    }
    const stored: BlockEvent = {
      kind: "stored",
      hashes: hashes.slice(held),
      parent: hashes[held - 1] ?? null,
      tokens: tokens.slice(held * blockTokens, count * blockTokens),
      blockTokens,
      apart: hashes.slice(held).map(() => null),
      medium: "GPU",
    };
    const cached = Math.min(held, Math.floor((tokens.length - 1) / blockTokens)) * blockTokens;
    return { cached, events: [...(held < count ? [stored] : []), { kind: "removed", hashes: removed, medium: null }] };
  }
}
