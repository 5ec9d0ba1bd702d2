import { CachedRuns } from "./cached-runs.js";

/** Maximum tokens of memprefix's prompts that the engine has not counted yet. Beyond that, another engine got them. */
const MOST_AHEAD = 1_000_000;
const MOST_UNDER_WAY = 16_384;
/** A prompt not reported for so long will not be. */
const LONGEST_UNDER_WAY_MS = 2 * 60_000;
/** By how much memprefix's counter may exceed the engine's, as a share. */
const COUNTED_OTHERWISE = 0.25;
/** Decay of {@link CachingEngine.atOnce} per prompt. */
const STILL_AT_ONCE = 0.99;
/** Readings after which a counter that went back once is trusted again. */
const DOUBT = 20;

/** A block's name: a digest of the prompt's tokens up to its end, and of its salt or LoRA adapter. */
export type BlockChain = string;

/** A worker's cache, block by block, as its KV events show it. */
export interface ObservedBlocks {
  /** Null until an event states it. */
  readonly blockTokens: number | null;
  /** Number of the newest batch of events. */
  readonly newest: number;
  chainsOf(tokens: readonly number[], apart: string | null): readonly BlockChain[];
  /** Leading tokens cached, not counting blocks computed after batch `sentAt`. Null: the first may have been stored before events were followed. */
  residentTokens(chains: readonly BlockChain[], sentAt?: number): number | null;
}

export interface CacheReading {
  readonly capacityTokens: number | null;
  /** Only whole blocks of so many tokens are cached. */
  readonly blockTokens: number | null;
  /** Since the engine started, for all of its clients. */
  readonly computedTokens: number | null;
}

export interface UnderWay {
  readonly at: number;
  readonly computed: number;
  readonly cached: number;
}

export type CapacityOrigin = "setting" | "engine" | "reports";

export class CachingEngine {
  readonly runs = new CachedRuns();
  readonly residents: ObservedBlocks[] = [];
  #reading: CacheReading = { capacityTokens: null, blockTokens: null, computedTokens: null };
  /** Tokens counted beyond memprefix's prompts; negative: tokens not counted yet. */
  #unexplained = 0;
  readonly #underWay = new Set<UnderWay>();
  atOnce = 0;
  prompts = 0;
  /** Tokens computed for clients that bypass memprefix. */
  foreignTokens = 0;
  /** How often the counter went back recently. Engines that share an address have useless counters. */
  #doubt = 0;
  #readAt = Number.NEGATIVE_INFINITY;
  /** The newest one, between two readings, in milliseconds since the epoch. */
  restart: { readonly after: number; readonly by: number } | null = null;

  /** @param configured in the engine's tokens; readings do not change it */
  constructor(private readonly configured: number | null = null) {}

  /** In the engine's tokens; null: unknown. */
  get capacityTokens(): number | null {
    return this.configured ?? this.#reading.capacityTokens;
  }

  get capacityFrom(): CapacityOrigin | null {
    if (this.configured !== null) return "setting";
    return this.#reading.capacityTokens === null ? null : "engine";
  }

  get blockTokens(): number | null {
    return this.residents.find(({ blockTokens }) => blockTokens !== null)?.blockTokens ?? this.#reading.blockTokens;
  }

  /** The names of a prompt's whole blocks; null until an event states their size. */
  chainsOf(tokens: readonly number[], apart: string | null): readonly BlockChain[] | null {
    return this.residents.find(({ blockTokens }) => blockTokens !== null)?.chainsOf(tokens, apart) ?? null;
  }

  /** Leading tokens that some worker has cached; null without events. See {@link ObservedBlocks.residentTokens}. */
  residentTokens(chains: readonly BlockChain[], sentAt?: readonly number[]): number | null {
    return this.residents.reduce<number | null>((most, blocks, at) => {
      const tokens = blocks.residentTokens(chains, sentAt?.[at]);
      return tokens === null ? most : Math.max(most ?? 0, tokens);
    }, null);
  }

  /** Records a prompt with the tokens expected to be computed and cached. */
  sends(prompt: UnderWay): void {
    this.#unexplained -= prompt.computed;
    this.#underWay.add(prompt);
    const [oldest] = this.#underWay;
    if (oldest !== undefined && this.#underWay.size > MOST_UNDER_WAY) this.#underWay.delete(oldest);
    this.prompts++;
  }

  /** Undoes {@link sends} for a prompt that the engine never received. */
  withdrawn(prompt: UnderWay): void {
    this.#underWay.delete(prompt);
    this.#unexplained += prompt.computed;
  }

  computed(tokens: number, prompt: UnderWay): void {
    if (this.#underWay.has(prompt)) this.atOnce = Math.max(this.#underWay.size, STILL_AT_ONCE * this.atOnce);
    this.#underWay.delete(prompt);
    this.#unexplained -= tokens - prompt.computed;
  }

  /** Other clients' tokens displace memprefix's prompts. A counter that went back means a restart: only newly computed tokens are cached. */
  read(reading: CacheReading, at: number): void {
    const before = this.#reading.computedTokens;
    const now = reading.computedTokens;
    this.#reading = { ...reading, computedTokens: now ?? before };
    const readAt = this.#readAt;
    if (now !== null) this.#readAt = at;
    if (now === null || before === null) return;
    const isBack = now < before;
    this.#doubt = isBack ? this.#doubt + DOUBT : Math.max(0, this.#doubt - 1);
    const isTrusted = this.#doubt <= 2 * DOUBT;
    if (isBack && isTrusted) {
      // At most the tokens computed since are left of what was used before.
      const { since } = this.runs.within(now * (1 + COUNTED_OTHERWISE));
      this.runs.clear(Math.max(readAt, since ?? readAt));
      this.restart = { after: readAt, by: at };
    }
    if (isBack || !isTrusted) this.#unexplained = 0;
    else this.#unexplained = Math.max(-MOST_AHEAD, this.#unexplained + now - before);
    const foreign = this.#unexplained - this.#maybeComputed(at);
    if (foreign <= 0) return;
    this.runs.addForeign(at, foreign);
    this.#unexplained -= foreign;
    this.foreignTokens += foreign;
  }

  /** Tokens of pending prompts that were expected to be cached and may not have been. */
  #maybeComputed(at: number): number {
    let tokens = 0;
    for (const prompt of this.#underWay) {
      if (at - prompt.at > LONGEST_UNDER_WAY_MS) this.#underWay.delete(prompt);
      else tokens += prompt.cached;
    }
    return tokens;
  }
}
