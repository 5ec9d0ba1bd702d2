import type { CacheReport } from "./cache-report.js";
import { KEEPS_ALL, type ResidencyModel } from "./residency.js";

/*
 * One engine's prefix cache as a tenant's prompts find it (docs/internals/algorithms.md, "A shared cache"): `predicted-cache.ts` says what it
 * should hold, `observed-cache.ts` what events say that it holds.
 */

/** The instructions that a prompt begins with, which others' prompts may share. */
export interface CacheHead {
  readonly digest: string;
  readonly tokens: number;
}

/** A prompt that an engine is about to compute. Tokens are estimates of one counter. */
export interface CachePrompt {
  /** Names it until it is reported. */
  readonly handle: CacheHandle;
  /** Whose prompts continue each other: a conversation, or a user's single prompts. */
  readonly stream: string;
  /** Whose stream. */
  readonly user: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly total: number;
  /** Those expected to be cached. */
  readonly cached: number;
  /** Those that would be if nothing were ever evicted. */
  readonly known: number;
  readonly head: CacheHead;
}

/** A prompt that was admitted. */
export type CacheHandle = string & { readonly __brand: "CacheHandle" };

/** What a cache has for the next prompt of a stream. */
export interface CacheLookup {
  /**
   * How many leading tokens of the stream's newest prompt are still held: engines evict a prompt from its end. Infinite where nothing is
   * known to be gone.
   */
  readonly residentTokens: number;
  /**
   * Tokens that the stream's prompts may have to be still held at its next turn: what the others leave of the cache between two of its
   * turns, at least a fair share. Infinite where the capacity is not known.
   */
  readonly shareTokens: number;
  /** Tokens of the engine's blocks, by memprefix's counter; null: not known. */
  readonly blockTokens: number | null;
  /** What it leaves of one user's index. */
  readonly residency: ResidencyModel;
  /** How many tokens of these instructions it holds, whoever sent them last; 0 of those that one user alone has sent. */
  heldHead(digest: string, tokens: number): number;
  /** How many of so many leading tokens it can hold: those of whole blocks, where the engine says how long these are. */
  wholeBlocks(tokens: number): number;
}

/** One engine's prefix cache. Both forms pass `test/core/cache/engine-cache.suite.ts`. */
export interface EngineCache {
  /** What it leaves of one user's index. */
  readonly residency: ResidencyModel;
  lookup(stream: string): CacheLookup;
  /** Counts a prompt as computed, before it is: others that are planned meanwhile have to leave it room. */
  admit(prompt: CachePrompt): void;
  /** Takes a prompt back that the engine never got, or refused: as if it had not been admitted. */
  release(handle: CacheHandle): void;
  /** Learns from a prompt's first report. Its tokens count as used now, when its answer has ended. Null: its client left before there was one. */
  report(handle: CacheHandle, report: CacheReport | null, at: number): void;
}

/** Of a user whose prompts are planned as if there were no others. */
export function endlessLookup(residency: ResidencyModel = KEEPS_ALL): CacheLookup {
  return {
    residentTokens: Number.POSITIVE_INFINITY,
    shareTokens: Number.POSITIVE_INFINITY,
    blockTokens: null,
    residency,
    heldHead: () => 0,
    wholeBlocks: (tokens) => tokens,
  };
}
