/*
 * cost: what a prompt costs its engine, as time (a law fitted to reported first-token times) or as money (prices per token).
 * Enters: measured times, configured prices, token counts. Leaves: the cost of a prompt, and what a cached prefix spares.
 */

/**
 * What prefill costs in time: `fixed + perToken·u + perPair·u·(c + u/2)` ms for u uncached tokens behind c cached ones
 * (docs/internals/algorithms.md, "What a prompt costs").
 */
export interface TimeLaw {
  readonly kind: "time";
  /** Milliseconds before the first token is looked at. */
  readonly fixedMs: number;
  /** Milliseconds for each token that is computed. */
  readonly perTokenMs: number;
  /** Milliseconds for each pair of a computed token and one that it attends to. What is carried or kept is not free: this is its price. */
  readonly perPairMs: number;
}

/** What a prompt costs in money. Prices per token, in any one unit. */
export interface Prices {
  readonly kind: "money";
  /** A token that is computed and stays out of the cache. */
  readonly uncached: number;
  /** A token that is computed and goes into the cache. */
  readonly written: number;
  /** A token that the cache held. */
  readonly cached: number;
}

/** An engine as the planner sees it: what a prompt costs, and what its cache can hold of one. */
export interface EngineModel {
  readonly cost: TimeLaw | Prices;
  /** The cache holds whole blocks of so many tokens; 1: it is exact. */
  readonly blockTokens: number;
  /** A shared prefix of fewer tokens is not cached. */
  readonly minimumPrefixTokens: number;
}

/** The engine families that a caller can name. */
export const ENGINE_MODEL_NAMES = ["gpu", "cpu", "hosted", "hosted-writes"] as const;
export type EngineModelName = (typeof ENGINE_MODEL_NAMES)[number];

/**
 * Defaults until something was measured (docs/internals/algorithms.md, "What a prompt costs"): a server on a GPU (vLLM, SGLang; 16-token
 * blocks), llama.cpp on a CPU (its law fitted on a 135M model with two threads), a provider that reads its cache at a tenth of the price
 * (OpenAI before GPT-5.6: from 1,024 tokens in steps of 128), and one that bills writes too (Anthropic, OpenAI since GPT-5.6).
 */
export const ENGINE_MODELS: Readonly<Record<EngineModelName, EngineModel>> = {
  gpu: {
    cost: { kind: "time", fixedMs: 15, perTokenMs: 8e-3, perPairMs: 1e-8 },
    blockTokens: 16,
    minimumPrefixTokens: 16,
  },
  cpu: {
    cost: { kind: "time", fixedMs: 0, perTokenMs: 0.788, perPairMs: 8.4e-4 },
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

/** Where nothing is said of the engine. */
export const DEFAULT_ENGINE_MODEL: EngineModelName = "gpu";

/**
 * What a prompt of `total` tokens costs whose first `shared` ones were sent before: milliseconds to its first token, or money. Block size
 * and minimum decide how much of what is shared the cache can give.
 */
export function promptCost(model: EngineModel, total: number, shared: number): number {
  const cached = cacheable(model, Math.min(shared, total));
  const uncached = total - cached;
  const { cost } = model;
  if (cost.kind === "time") {
    return cost.fixedMs + cost.perTokenMs * uncached + cost.perPairMs * uncached * (cached + uncached / 2);
  }
  return cost.cached * cached + (total < model.minimumPrefixTokens ? cost.uncached : cost.written) * uncached;
}

/** How many of the first `shared` tokens the engine's cache can give. */
export function cacheable({ blockTokens, minimumPrefixTokens }: EngineModel, shared: number): number {
  return shared < minimumPrefixTokens ? 0 : shared - (shared % blockTokens);
}

/** What stands around the blocks of a prompt, in tokens. */
export interface AroundBlocks {
  /** Before the blocks: cached wherever some of them are. */
  readonly before: number;
  /** The blocks that were retrieved. */
  readonly retrieved: number;
  /** Behind them: annotations and question. */
  readonly after: number;
}

/** What an engine is spared, in tokens that it computes, where `saved` of the retrieved tokens are cached behind `carried` others. */
export type Spared = (saved: number, carried: number) => number;

/**
 * The model without the size of its cache blocks. Where in a block a shared prefix ends is chance: over requests every token more of it
 * gives a token more from the cache. Choices between prompts go by this; rounding would decide them by that chance.
 */
export function smooth(model: EngineModel): EngineModel {
  return { ...model, blockTokens: 1 };
}

/**
 * The price of carrying: every token that is computed attends over what is carried, or a provider bills it. Saved tokens are worth
 * themselves where nothing is carried and all are saved; nothing is worth anything below the engine's minimum prefix.
 */
export function sparedBy(model: EngineModel, { before, retrieved, after }: AroundBlocks): Spared {
  const costOf = smoothCost(model);
  const total = before + retrieved + after;
  const cold = costOf(total, before);
  const worth = (cold - costOf(total, before + retrieved)) / retrieved;
  if (worth <= 0) return () => 0;
  return (saved, carried) => (cold - costOf(total + carried, before + saved + carried)) / worth;
}

/** {@link promptCost} of a {@link smooth} model, made for being asked many thousand times. */
function smoothCost({ cost, minimumPrefixTokens }: EngineModel): (total: number, shared: number) => number {
  if (cost.kind === "money") {
    return (total, shared) => {
      const cached = shared < minimumPrefixTokens ? 0 : shared;
      return cost.cached * cached + (total < minimumPrefixTokens ? cost.uncached : cost.written) * (total - cached);
    };
  }
  const { fixedMs, perTokenMs, perPairMs } = cost;
  return (total, shared) => {
    const cached = shared < minimumPrefixTokens ? 0 : shared;
    const uncached = total - cached;
    return fixedMs + uncached * (perTokenMs + perPairMs * (cached + uncached / 2));
  };
}
