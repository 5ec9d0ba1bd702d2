import { CachedRuns } from "./cached-runs.js";
import type { BlockChain, ResidentBlocks } from "./resident-blocks.js";

/** Tokens of own prompts that an engine is yet to count, at most; more went to another one. */
const MOST_AHEAD = 1_000_000;
/** Prompts whose reports are awaited. */
const MOST_UNDER_WAY = 16_384;
/** A prompt that was not reported for so long will not be. */
const LONGEST_UNDER_WAY_MS = 2 * 60_000;
/** By how much memprefix's counter may count more than the engine's, as a share. */
const COUNTED_OTHERWISE = 0.25;
/** What is left of {@link CachingEngine.atOnce} at each further prompt. */
const STILL_AT_ONCE = 0.99;
/** Readings after which a counter that went back once is trusted as before. */
const DOUBT = 20;

/** What an engine says of its prefix cache, in its own tokens. Null: unknown. */
export interface CacheReading {
  readonly capacityTokens: number | null;
  /** Only whole blocks of so many tokens are cached. */
  readonly blockTokens: number | null;
  /** Prompt tokens that it computed since it started, for all of its clients. */
  readonly computedTokens: number | null;
}

/** A prompt that is not reported yet, in the engine's tokens, as far as they are known. */
export interface UnderWay {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly computed: number;
  readonly cached: number;
}

/** Where a capacity comes from: it was configured, the engine says it, or reports showed it, which may contradict both. */
export type CapacityOrigin = "setting" | "engine" | "reports";

/** Between two readings, in milliseconds since the epoch, an engine was started again. */
export interface EngineRestart {
  readonly after: number;
  readonly by: number;
}

/** One engine with its cache, for all tenants: how much it says that it holds, and what they used of it. */
export class CachingEngine {
  readonly runs = new CachedRuns();
  /** What events say, of each worker that publishes them. */
  readonly residents: ResidentBlocks[] = [];
  #reading: CacheReading = { capacityTokens: null, blockTokens: null, computedTokens: null };
  /** Tokens that the engine counted beyond those of memprefix's prompts; below 0: those that it is yet to count. */
  #unexplained = 0;
  readonly #underWay = new Set<UnderWay>();
  #atOnce = 0;
  #sent = 0;
  #foreign = 0;
  /** How often its counter went back of late: a counter that several engines share at one address says nothing. */
  #doubt = 0;
  /** When its counter was read last. */
  #readAt = Number.NEGATIVE_INFINITY;
  #restart: EngineRestart | null = null;

  /** @param configured tokens that it holds, which readings do not change; null: not known */
  constructor(private readonly configured: number | null = null) {}

  /** Tokens that it is said to hold, in its own; null: not known. */
  get capacityTokens(): number | null {
    return this.configured ?? this.#reading.capacityTokens;
  }

  /** Who says so. */
  get capacityFrom(): CapacityOrigin | null {
    if (this.configured !== null) return "setting";
    return this.#reading.capacityTokens === null ? null : "engine";
  }

  /** Tokens of its blocks; null: not known. */
  get blockTokens(): number | null {
    return this.residents.find(({ blockTokens }) => blockTokens !== null)?.blockTokens ?? this.#reading.blockTokens;
  }

  /** The names of a prompt's whole blocks; null until an event has said how long they are. */
  chainsOf(tokens: readonly number[], apart: string | null): readonly BlockChain[] | null {
    return this.residents.find(({ blockTokens }) => blockTokens !== null)?.chainsOf(tokens, apart) ?? null;
  }

  /** How many leading tokens of a prompt some worker has cached; null where no events say it. See {@link ResidentBlocks.residentTokens}. */
  residentTokens(chains: readonly BlockChain[], sentAt?: readonly number[]): number | null {
    return this.residents.reduce<number | null>((most, blocks, at) => {
      const tokens = blocks.residentTokens(chains, sentAt?.[at]);
      return tokens === null ? most : Math.max(most ?? 0, tokens);
    }, null);
  }

  /** Most prompts of memprefix's that it worked on together of late. */
  get atOnce(): number {
    return this.#atOnce;
  }

  /** Prompts of memprefix's so far. */
  get prompts(): number {
    return this.#sent;
  }

  /** Tokens that it computed for clients that do not come through memprefix, as far as its readings show. */
  get foreignTokens(): number {
    return this.#foreign;
  }

  /** Its newest restart; null: none was seen. */
  get restart(): EngineRestart | null {
    return this.#restart;
  }

  /** Takes a prompt of memprefix's in, of which so many of the engine's tokens are expected to be computed and to be cached. */
  sends(prompt: UnderWay): void {
    this.#unexplained -= prompt.computed;
    this.#underWay.add(prompt);
    const [oldest] = this.#underWay;
    if (oldest !== undefined && this.#underWay.size > MOST_UNDER_WAY) this.#underWay.delete(oldest);
    this.#sent++;
  }

  /** Takes a prompt back that it never got. */
  withdrawn(prompt: UnderWay): void {
    this.#underWay.delete(prompt);
    this.#unexplained += prompt.computed;
  }

  /** Takes in how many tokens it computed of a prompt. */
  computed(tokens: number, prompt: UnderWay): void {
    if (this.#underWay.has(prompt)) this.#atOnce = Math.max(this.#underWay.size, STILL_AT_ONCE * this.#atOnce);
    this.#underWay.delete(prompt);
    this.#unexplained -= tokens - prompt.computed;
  }

  /**
   * Takes a reading. What the engine computed beyond memprefix's own prompts displaces these as they displace each other. A counter that went
   * back is that of an engine that was started again since the reading before: cached is what it has computed since, which was used last.
   *
   * @param at milliseconds since the epoch
   */
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
    if (isBack && isTrusted) this.#reset(readAt, at, now * (1 + COUNTED_OTHERWISE));
    if (isBack || !isTrusted) this.#unexplained = 0;
    else this.#unexplained = Math.max(-MOST_AHEAD, this.#unexplained + now - before);
    const foreign = this.#unexplained - this.#maybeComputed(at);
    if (foreign <= 0) return;
    this.runs.addForeign(at, foreign);
    this.#unexplained -= foreign;
    this.#foreign += foreign;
  }

  /** It was started again between two times: of what was used since the first, it has so many tokens at most. */
  #reset(after: number, by: number, computed: number): void {
    this.runs.clear(Math.max(after, this.runs.within(computed).since ?? after));
    this.#restart = { after, by };
  }

  /** Tokens of prompts under way that were expected to be cached, and may not have been. */
  #maybeComputed(at: number): number {
    let tokens = 0;
    for (const prompt of this.#underWay) {
      if (at - prompt.at > LONGEST_UNDER_WAY_MS) this.#underWay.delete(prompt);
      else tokens += prompt.cached;
    }
    return tokens;
  }
}
