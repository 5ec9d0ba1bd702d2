/* cost: a prompt's cost in time or money. Enters: measured times, prices, token counts. Leaves: costs, and what a cached prefix saves. */

/** Prefill time in ms: `fixed + perToken·u + perPair·u·(c + u/2)` for u uncached tokens after c cached ones. */
export interface TimeLaw {
  readonly kind: "time";
  readonly fixedMs: number;
  readonly perTokenMs: number;
  /** Per pair of a computed token and one that it attends to: the price of carried and kept blocks. */
  readonly perPairMs: number;
}

/** Per token, in any unit. `written`: computed and written to the cache. */
export interface Prices {
  readonly kind: "money";
  readonly uncached: number;
  readonly written: number;
  readonly cached: number;
}

export interface EngineModel {
  readonly cost: TimeLaw | Prices;
  /** Only whole blocks are cached; 1: exact. */
  readonly blockTokens: number;
  /** Shorter shared prefixes are not cached. */
  readonly minimumPrefixTokens: number;
  /** How much each token of a prompt, cached or not, lengthens its answer. Default: 0. */
  readonly perHeldTokenMs?: number;
}

export const ENGINE_MODEL_NAMES = ["gpu", "cpu", "hosted", "hosted-writes"] as const;
export type EngineModelName = (typeof ENGINE_MODEL_NAMES)[number];

const FAST_GPU: TimeLaw = { kind: "time", fixedMs: 15, perTokenMs: 8e-3, perPairMs: 1e-8 };
const CPU: TimeLaw = { kind: "time", fixedMs: 0, perTokenMs: 0.788, perPairMs: 8.4e-4 };
/** Presets for unknown engines: a GPU server; llama.cpp on a CPU (a 135M model, two threads); providers with and without paid cache writes. */
export const ENGINE_MODELS: Readonly<Record<EngineModelName, EngineModel>> = {
  gpu: { cost: FAST_GPU, blockTokens: 16, minimumPrefixTokens: 16 },
  cpu: { cost: CPU, blockTokens: 1, minimumPrefixTokens: 1 },
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

/** Cost of a prompt of `total` tokens whose first `shared` were sent before, as milliseconds or money. */
export function promptCost(model: EngineModel, total: number, shared: number): number {
  const cached = cacheable(model, Math.min(shared, total));
  const uncached = total - cached;
  const { cost, perHeldTokenMs = 0 } = model;
  if (cost.kind === "time") {
    const { fixedMs, perTokenMs, perPairMs } = cost;
    const pairs = uncached * (cached + uncached / 2);
    return fixedMs + perTokenMs * uncached + perPairMs * pairs + perHeldTokenMs * total;
  }
  return cost.cached * cached + (total < model.minimumPrefixTokens ? cost.uncached : cost.written) * uncached;
}

/** How many of the first `shared` tokens can be served from the cache. */
export function cacheable({ blockTokens, minimumPrefixTokens }: EngineModel, shared: number): number {
  return shared < minimumPrefixTokens ? 0 : shared - (shared % blockTokens);
}

/** The model for a prompt after so many other tokens, which count for the minimum. */
export function modelAfter(model: EngineModel, besideTokens: number): EngineModel {
  return { ...model, minimumPrefixTokens: Math.max(0, model.minimumPrefixTokens - besideTokens) };
}

export interface AroundBlocks {
  readonly before: number;
  readonly retrieved: number;
  readonly after: number;
}

/** Computed tokens that a path saves, if `saved` retrieved tokens are cached after `carried` others. */
export type Spared = (saved: number, carried: number) => number;

/** The model with block size 1, for choices between prompts: rounding to blocks would decide them at random. */
export function smooth(model: EngineModel): EngineModel {
  return { ...model, blockTokens: 1 };
}

/** The value of a path, less the price of carrying: computed tokens attend over carried ones, or the provider bills them. */
export function sparedBy(model: EngineModel, { before, retrieved, after }: AroundBlocks): Spared {
  const law = smooth(model);
  const costOf = (length: number, shared: number) => promptCost(law, length, shared);
  const total = before + retrieved + after;
  const cold = costOf(total, before);
  const worth = (cold - costOf(total, before + retrieved)) / retrieved;
  if (worth <= 0) return () => 0;
  return (saved, carried) => (cold - costOf(total + carried, before + saved + carried)) / worth;
}
