import { digestOf } from "../text/ids.js";

/*
 * What an engine's KV events say of its prefix cache, block by block (docs/internals/algorithms.md, "Events"). A block is named by the
 * tokens of the prompt up to its end and by what keeps caches apart (a salt, a LoRA adapter), as engines hash it.
 */

/** Blocks that are mirrored, at most: some 200 bytes each. Of more, the least recently stored are taken for evicted. */
const MOST_BLOCKS = 500_000;

/** Runs of blocks that are remembered: those of the newest prompts. */
const MOST_RUNS = 4_096;

/** A block's name: a digest of all that it continues. */
export type BlockChain = string;

/** A change of an engine's cache. Hashes are the engine's own, as text. */
export type KvEvent =
  | {
      readonly kind: "stored";
      readonly hashes: readonly string[];
      /** The block before the first of them; null: they begin a prompt. */
      readonly parent: string | null;
      /** Of all blocks, one after the other. */
      readonly tokens: readonly number[];
      readonly blockTokens: number;
      /** What keeps each block's hash apart from that of the same tokens, as JSON; null: nothing. */
      readonly apart: readonly (string | null)[];
      /** Where they are stored. */
      readonly medium: string;
    }
  | { readonly kind: "removed"; readonly hashes: readonly string[]; readonly medium: string | null }
  | { readonly kind: "cleared" };

/** Blocks that one event stored: what an engine computed of one prompt in one step. */
interface ComputedRun {
  /** Number of the batch. */
  readonly at: number;
  readonly first: BlockChain;
}

interface Block {
  /** Null: what it continues is not known. */
  readonly chain: BlockChain | null;
  readonly media: Set<string>;
}

/** One engine's cached blocks, as its events say. */
export class ResidentBlocks {
  /** By the engine's hash; least recently stored first. */
  readonly #blocks = new Map<string, Block>();
  readonly #byChain = new Map<BlockChain, Block>();
  /** By the last block, whether it is still there or not; oldest first. */
  readonly #runs = new Map<BlockChain, ComputedRun>();
  #blockTokens: number | null = null;
  #isWhole = false;
  #batches = 0;

  /** Tokens of a block; null until one was stored. */
  get blockTokens(): number | null {
    return this.#blockTokens;
  }

  /** Whether all that is cached is known: events were followed since the cache was empty. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Number of the newest batch of events, for {@link residentTokens}. */
  get newest(): number {
    return this.#batches;
  }

  get size(): number {
    return this.#blocks.size;
  }

  /**
   * Forgets all.
   *
   * @param isWhole whether the engine's cache is empty, too; else what is cached there is not known
   */
  forget(isWhole: boolean): void {
    this.#blocks.clear();
    this.#byChain.clear();
    this.#runs.clear();
    this.#isWhole = isWhole;
  }

  /** Applies a batch of events. */
  take(events: readonly KvEvent[]): void {
    this.#batches++;
    for (const event of events) {
      if (event.kind === "stored") this.#store(event);
      else if (event.kind === "cleared") this.forget(true);
      else for (const hash of event.hashes) this.#remove(hash, event.medium);
    }
  }

  /** The names of a prompt's whole blocks. */
  chainsOf(tokens: readonly number[], apart: string | null): readonly BlockChain[] {
    const size = this.#blockTokens;
    if (size === null) return [];
    const chains: BlockChain[] = [];
    for (let end = size; end <= tokens.length; end += size)
      chains.push(chainOf(chains.at(-1) ?? null, tokens.slice(end - size, end), end === size ? apart : null));
    return chains;
  }

  /**
   * How many leading tokens of a prompt are cached; null where that is not known, because the blocks that it begins with may have been stored
   * before events were followed.
   *
   * @param sentAt the newest batch when the prompt was sent: what was computed of it since begins where what was cached ended
   */
  residentTokens(chains: readonly BlockChain[], sentAt = Number.POSITIVE_INFINITY): number | null {
    if (this.#blockTokens === null) return this.#isWhole ? 0 : null;
    const computed = this.#computedFrom(chains, sentAt);
    if (computed !== null) return computed * this.#blockTokens;
    const missing = chains.findIndex((chain) => !this.#byChain.has(chain));
    if (missing === 0 && !this.#isWhole) return null;
    return (missing === -1 ? chains.length : missing) * this.#blockTokens;
  }

  /**
   * Index of the first block that was computed of a prompt since it was sent; null where none was: its own run ends with its last block, and is
   * continued backwards by those of the steps before. A run of one block in that place is of an answer that it quotes, or of another prompt
   * that begins alike: what this one found cached.
   */
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
    // Another engine's; nothing of it was missed where it began with an empty cache.
    if (this.#blockTokens !== null && this.#blockTokens !== blockTokens) this.forget(this.#isWhole && this.size === 0);
    this.#blockTokens = blockTokens;
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
      // One that was known is copied to another medium.
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
      this.#isWhole = false;
    }
  }

  #remember(first: BlockChain | null, last: BlockChain | null): void {
    if (first === null || last === null) return;
    this.#runs.delete(last);
    this.#runs.set(last, { at: this.#batches, first });
    const [oldest] = this.#runs.keys();
    if (oldest !== undefined && this.#runs.size > MOST_RUNS) this.#runs.delete(oldest);
  }

  #remove(hash: string, medium: string | null): void {
    const block = this.#blocks.get(hash);
    // Removed before it was stored: of a batch that was not followed.
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

/** What stands before blocks that were stored before events were followed. */
const UNKNOWN: Block = { chain: null, media: new Set() };

function chainOf(before: BlockChain | null, tokens: readonly number[], apart: string | null): BlockChain {
  return digestOf(`${before ?? ""} ${apart ?? ""} ${tokens.join(",")}`).slice(0, 22);
}
