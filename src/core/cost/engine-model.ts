/*
 * cost: the cost of a prompt for its engine, as time (a law fitted to reported first-token times) or as money (prices per token).
 * Enters: measured times, configured prices, token counts. Leaves: the cost of a prompt, and what a cached prefix saves.
 */

/**
 * Prefill time: `fixed + perToken·u + perPair·u·(c + u/2)` ms for u uncached tokens after c cached ones (docs/internals/algorithms.md,
 * "What a prompt costs").
 */
export interface TimeLaw {
  readonly kind: "time";
  /** Milliseconds before the first token is processed. */
  readonly fixedMs: number;
  /** Milliseconds per computed token. */
  readonly perTokenMs: number;
  /** Milliseconds per pair of a computed token and a token that it attends to: the price of carried and kept blocks. */
  readonly perPairMs: number;
  /** What each token of the prompt adds to {@link perPairMs}, where pairs of long prompts take longer. Default: 0. */
  readonly perPairTokenMs?: number;
}

/** The price of a prompt in money per token, in any unit. */
export interface Prices {
  readonly kind: "money";
  /** A token that is computed and not cached. */
  readonly uncached: number;
  /** A token that is computed and written to the cache. */
  readonly written: number;
  /** A token read from the cache. */
  readonly cached: number;
}

/** The planner's model of an engine: the cost of a prompt, and how much of it can be cached. */
export interface EngineModel {
  readonly cost: TimeLaw | Prices;
  /** The cache stores whole blocks of so many tokens; 1: exact. */
  readonly blockTokens: number;
  /** Shorter shared prefixes are not cached. */
  readonly minimumPrefixTokens: number;
  /**
   * Milliseconds that each token of a prompt, cached or not, adds to its answer, whose every token attends over the prompt. With a cost in time
   * only. Default: 0.
   */
  readonly perHeldTokenMs?: number;
}

export const ENGINE_MODEL_NAMES = ["gpu", "cpu", "hosted", "hosted-writes"] as const;
export type EngineModelName = (typeof ENGINE_MODEL_NAMES)[number];

const FAST_GPU: TimeLaw = { kind: "time", fixedMs: 15, perTokenMs: 8e-3, perPairMs: 1e-8 };
const CPU: TimeLaw = { kind: "time", fixedMs: 0, perTokenMs: 0.788, perPairMs: 8.4e-4 };
/**
 * Models of engines of which nothing more is known (docs/internals/algorithms.md, "What a prompt costs"): a server on a GPU (vLLM, SGLang;
 * 16-token blocks), until it is measured; llama.cpp on a CPU (fitted on a 135M model with two threads); a provider with cache reads at a tenth
 * of the price; and one that also bills cache writes. Those of known providers are in `prices.ts`.
 */
export const ENGINE_MODELS: Readonly<Record<EngineModelName, EngineModel>> = {
  gpu: {
    cost: FAST_GPU,
    blockTokens: 16,
    minimumPrefixTokens: 16,
  },
  cpu: {
    cost: CPU,
    blockTokens: 1,
    minimumPrefixTokens: 1,
  },
  hosted: {
    cost: { kind: "money", uncached: 1, written: 1, cached: 0.1 },
    blockTokens: 128,
    minimumPrefixTokens: 1_024,
  },
  "hosted-writes": {
    cost: { kind: "money", uncached: 1, written: 1.25, cached: 0.1 },
    blockTokens: 1,
    minimumPrefixTokens: 1_024,
  },
};

export const DEFAULT_ENGINE_MODEL: EngineModelName = "gpu";

/**
 * Cost of a prompt of `total` tokens whose first `shared` ones were sent before: milliseconds to the first token and what the prompt's length
 * adds to the answer's, or money. Block size and minimum limit how much of the shared prefix is cached.
 */
export function promptCost(model: EngineModel, total: number, shared: number): number {
  const cached = cacheable(model, Math.min(shared, total));
  const uncached = total - cached;
  const { cost, perHeldTokenMs = 0 } = model;
  if (cost.kind === "time") {
    const { fixedMs, perTokenMs, perPairMs, perPairTokenMs = 0 } = cost;
    const pairs = uncached * (cached + uncached / 2);
    return fixedMs + perTokenMs * uncached + (perPairMs + perPairTokenMs * total) * pairs + perHeldTokenMs * total;
  }
  return cost.cached * cached + (total < model.minimumPrefixTokens ? cost.uncached : cost.written) * uncached;
}

/** How many of the first `shared` tokens the engine can serve from its cache. */
export function cacheable({ blockTokens, minimumPrefixTokens }: EngineModel, shared: number): number {
  return shared < minimumPrefixTokens ? 0 : shared - (shared % blockTokens);
}

/** The model for a prompt that comes after so many tokens besides: they count for the minimum. */
export function modelAfter(model: EngineModel, besideTokens: number): EngineModel {
  return { ...model, minimumPrefixTokens: Math.max(0, model.minimumPrefixTokens - besideTokens) };
}

/** A prompt around its blocks, in tokens. */
export interface AroundBlocks {
  /** Before the blocks: cached whenever some of them are. */
  readonly before: number;
  readonly retrieved: number;
  /** After the blocks: annotations and question. */
  readonly after: number;
}

/** What a path saves the engine, in computed tokens, if `saved` retrieved tokens are cached after `carried` others. */
export type Spared = (saved: number, carried: number) => number;

/**
 * The model with block size 1. The position of a prefix's end within a cache block is random; averaged over requests, every additional
 * shared token is one more cached token. Choices between prompts use this model, because rounding would decide them at random.
 */
export function smooth(model: EngineModel): EngineModel {
  return { ...model, blockTokens: 1 };
}

/**
 * The value of a path, net of the price of carrying: every computed token attends over the carried ones, or the provider bills them. Saved
 * tokens are worth themselves if nothing is carried and all are saved, and nothing below the engine's minimum prefix.
 */
export function sparedBy(model: EngineModel, { before, retrieved, after }: AroundBlocks): Spared {
  const law = smooth(model);
  const costOf = (length: number, shared: number) => promptCost(law, length, shared);
  const total = before + retrieved + after;
  const cold = costOf(total, before);
  const worth = (cold - costOf(total, before + retrieved)) / retrieved;
  if (worth <= 0) return () => 0;
  return (saved, carried) => (cold - costOf(total + carried, before + saved + carried)) / worth;
}
