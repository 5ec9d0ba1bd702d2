import type { NodeId } from "../text/ids.js";
import { KEEPS_ALL, type ResidencyModel } from "./residency.js";

/* An engine's prefix cache, predicted or observed (docs/internals/algorithms.md, "A shared cache"). */

/** A prompt that an engine is about to compute, in estimated tokens. */
export interface CachePrompt {
  readonly handle: CacheHandle;
  /** A conversation, or a user's single prompts. */
  readonly stream: string;
  readonly user: string;
  readonly at: number;
  readonly total: number;
  /** Expected to be cached. */
  readonly cached: number;
  /** Cached if nothing were ever evicted. */
  readonly known: number;
  readonly head: { readonly digest: string; readonly tokens: number };
  /** Tokens that the engine counts before the prompt, such as tools. Default 0. */
  readonly beside?: number;
  /** Its end in the context index of a stored scope; absent: in none. */
  readonly end?: { readonly scopeId: number; readonly leaf: NodeId };
}

export type CacheHandle = string & { readonly __brand: "CacheHandle" };

export interface CacheLookup {
  /** Leading tokens of the stream's newest prompt that are still held; infinite if nothing is known to be evicted. */
  readonly residentTokens: number;
  /** Tokens that its prompts may have to be still cached at its next turn; infinite for unknown capacity. */
  readonly shareTokens: number;
  readonly blockTokens: number | null;
  readonly residency: ResidencyModel;
  /** Cached tokens of these instructions; 0 unless two users sent them, so that nothing leaks between users. */
  heldHead(digest: string, tokens: number): number;
  wholeBlocks(tokens: number): number;
}

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
