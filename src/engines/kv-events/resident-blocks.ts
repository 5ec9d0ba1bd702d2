import type { BlockChain, ObservedBlocks } from "../../core/index.js";
import { digestOf } from "../../core/text/ids.js";

/* An engine's prefix cache, block by block, from its KV events (docs/internals/algorithms.md, "Events"). */

/** Maximum mirrored blocks, of some 200 bytes each. Beyond it, the least recently stored count as evicted. */
const MOST_BLOCKS = 500_000;

/** Maximum runs of blocks, of the newest prompts. */
const MOST_RUNS = 4_096;

/** A change of an engine's cache. Hashes are the engine's own, as text. */
export type KvEvent =
  | {
      readonly kind: "stored";
      readonly hashes: readonly string[];
      readonly parent: string | null;
      readonly tokens: readonly number[];
      readonly blockTokens: number;
      /** What separates each block's hash from that of the same tokens, as JSON (salt, LoRA). */
      readonly apart: readonly (string | null)[];
      readonly medium: string;
    }
  | { readonly kind: "removed"; readonly hashes: readonly string[]; readonly medium: string | null }
  | { readonly kind: "cleared" };

interface Block {
  /** Null: its predecessor is unknown. */
  readonly chain: BlockChain | null;
  readonly media: Set<string>;
}

export class ResidentBlocks implements ObservedBlocks {
  /** By the engine's hash, least recently stored first. */
  readonly #blocks = new Map<string, Block>();
  readonly #byChain = new Map<BlockChain, Block>();
  /** What an engine computed of one prompt in one step, `at` a batch of events. By the last block, evicted or not; oldest first. */
  readonly #runs = new Map<BlockChain, { readonly at: number; readonly first: BlockChain }>();
  blockTokens: number | null = null;
  /** Whether events were followed since the cache was empty. */
  isWhole = false;
  newest = 0;

  get size(): number {
    return this.#blocks.size;
  }

  /** @param isWhole whether the engine's cache is empty too */
  forget(isWhole: boolean): void {
    this.#blocks.clear();
    this.#byChain.clear();
    this.#runs.clear();
    this.isWhole = isWhole;
  }

  take(events: readonly KvEvent[]): void {
    this.newest++;
    for (const event of events) {
      if (event.kind === "stored") this.#store(event);
      else if (event.kind === "cleared") this.forget(true);
      else for (const hash of event.hashes) this.#remove(hash, event.medium);
    }
  }

  chainsOf(tokens: readonly number[], apart: string | null): readonly BlockChain[] {
    const size = this.blockTokens;
    if (size === null) return [];
    const chains: BlockChain[] = [];
    for (let end = size; end <= tokens.length; end += size)
      chains.push(chainOf(chains.at(-1) ?? null, tokens.slice(end - size, end), end === size ? apart : null));
    return chains;
  }

  residentTokens(chains: readonly BlockChain[], sentAt = Number.POSITIVE_INFINITY): number | null {
    if (this.blockTokens === null) return this.isWhole ? 0 : null;
    const computed = this.#computedFrom(chains, sentAt);
    if (computed !== null) return computed * this.blockTokens;
    const missing = chains.findIndex((chain) => !this.#byChain.has(chain));
    if (missing === 0 && !this.isWhole) return null;
    return (missing === -1 ? chains.length : missing) * this.blockTokens;
  }

  /** Index of the first block computed since the prompt was sent; null for none. Single blocks are a quoting answer's or another prompt's. */
  #computedFrom(chains: readonly BlockChain[], sentAt: number): number | null {
    let computed: number | null = null;
    for (let end = chains.length; end > 0; ) {
      const run = this.#runs.get(chains[end - 1] as BlockChain);
      if (run === undefined || run.at <= sentAt) break;
      const first = chains.indexOf(run.first);
      if (computed !== null && end - first === 1) break;
      computed = end = first;
    }
    return computed;
  }

  #store({ hashes, parent, tokens, blockTokens, apart, medium }: KvEvent & { kind: "stored" }): void {
    if (this.blockTokens !== null && this.blockTokens !== blockTokens) this.forget(this.isWhole && this.size === 0);
    this.blockTokens = blockTokens;
    let first: BlockChain | null = null;
    let before: Block | null = parent === null ? null : (this.#blocks.get(parent) ?? UNKNOWN);
    for (const [at, hash] of hashes.entries()) {
      const own = tokens.slice(at * blockTokens, (at + 1) * blockTokens);
      const isKnown = before === null || before.chain !== null;
      const chain =
        isKnown && own.length === blockTokens ? chainOf(before?.chain ?? null, own, apart[at] ?? null) : null;
      const known = this.#blocks.get(hash);
      const isNew = known === undefined || (known.chain === null && chain !== null);
      const block = isNew ? { chain, media: new Set(known?.media) } : known;
      // A known block is copied to another medium.
      if (isNew) first ??= block.chain;
      block.media.add(medium);
      this.#blocks.delete(hash);
      this.#blocks.set(hash, block);
      if (block.chain !== null) this.#byChain.set(block.chain, block);
      before = block;
    }
    this.#remember(first, before?.chain ?? null);
    for (const [oldest, block] of this.#blocks) {
      if (this.#blocks.size <= MOST_BLOCKS) break;
      this.#drop(oldest, block);
      this.isWhole = false;
    }
  }

  #remember(first: BlockChain | null, last: BlockChain | null): void {
    if (first === null || last === null) return;
    this.#runs.delete(last);
    this.#runs.set(last, { at: this.newest, first });
    const [oldest] = this.#runs.keys();
    if (oldest !== undefined && this.#runs.size > MOST_RUNS) this.#runs.delete(oldest);
  }

  #remove(hash: string, medium: string | null): void {
    const block = this.#blocks.get(hash);
    // Removed before it was stored: its batch was not followed.
    if (block === undefined) return;
    if (medium === null) block.media.clear();
    else block.media.delete(medium);
    if (block.media.size === 0) this.#drop(hash, block);
  }

  #drop(hash: string, block: Block): void {
    this.#blocks.delete(hash);
    if (block.chain !== null && this.#byChain.get(block.chain) === block) this.#byChain.delete(block.chain);
  }
}

const UNKNOWN: Block = { chain: null, media: new Set() };

function chainOf(before: BlockChain | null, tokens: readonly number[], apart: string | null): BlockChain {
  return digestOf(`${before ?? ""} ${apart ?? ""} ${tokens.join(",")}`).slice(0, 22);
}
