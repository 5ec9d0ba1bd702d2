import type { Ordering } from "../ordering/ordering.js";

/** Settings of adaptive depth: probes measure how sure the engine is of its first token (docs/internals/algorithms.md). */
export interface DepthSettings {
  readonly firstBlocks: number;
  /** Factor from one probe's blocks to the next's, above 1. */
  readonly growth: number;
  readonly entropyNats: number;
  readonly maxProbes: number;
  /** For all probes together. */
  readonly timeLimitMs: number;
}

/** Not tuned on answer quality: the right entropy depends on the model. */
export const DEFAULT_DEPTH: DepthSettings = {
  firstBlocks: 5,
  growth: 2,
  entropyNats: 1,
  maxProbes: 4,
  timeLimitMs: 2_000,
};

/** The depths to probe, ascending, each less than the total; may be empty. */
export function probeDepths(blocks: number, settings: DepthSettings): readonly number[] {
  const depths: number[] = [];
  let next = settings.firstBlocks;
  while (next < blocks && depths.length < settings.maxProbes) {
    depths.push(next);
    next = Math.max(next + 1, Math.round(next * settings.growth));
  }
  return depths;
}

export interface DepthProbe {
  readonly blocks: number;
  /** Upper bound of the first token's entropy, in nats; null without usable probabilities. */
  readonly entropy: number | null;
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
}

export const DEPTH_OUTCOMES = [
  /** The engine was sure of its first token. */
  "sure",
  /** No probe was sure, so all blocks are in the prompt. */
  "unsure",
  /** The first probe would contain all blocks. */
  "few",
  /** The request fixes the start of the answer (a schema, a required tool). */
  "fixed_start",
  /** The first token was the model's own marker (a thought starts), or missing. */
  "unclear",
  /** The engine returns no log probabilities. */
  "unavailable",
  "failed",
] as const;
export type DepthOutcome = (typeof DEPTH_OUTCOMES)[number];

export interface DepthChoice {
  readonly outcome: DepthOutcome;
  readonly probes: readonly DepthProbe[];
}

export interface Depth {
  /** The most relevant blocks that are not in the prompt yet. */
  readonly blocks: number;
  /** The order of the previous probe, which this prompt extends. */
  readonly after: Ordering | null;
  readonly choice: DepthChoice;
}

/** How many of the retrieved blocks are in a prompt, and why. */
export interface PlanDepth extends DepthChoice {
  /** Distinct retrieved blocks that no earlier turn injected, … */
  readonly retrieved: number;
  /** … and how many of them are in this prompt. */
  readonly given: number;
}

/** Upper bound of real vocabularies, over which unlisted probability is spread. */
const VOCABULARY_TOKENS = 262_144;

const ROUNDING = 0.01;

/**
 * Most entropy of a token, in nats, where only its likeliest candidates are listed: as if the rest were spread evenly over the vocabulary. Null for
 * impossible probabilities.
 *
 * @param logProbabilities natural logarithms, in any order; −9999 and the like count as probability 0
 */
export function mostEntropy(logProbabilities: readonly number[], vocabularyTokens = VOCABULARY_TOKENS): number | null {
  const listed = logProbabilities.map(Math.exp);
  const sum = listed.reduce((all, p) => all + p, 0);
  // Negated, so that NaN is rejected.
  if (listed.length === 0 || !(sum > 0 && sum <= 1 + ROUNDING)) return null;
  const scale = Math.max(1, sum);
  const rest = Math.max(0, 1 - sum);
  const known = listed.reduce((nats, p) => nats + nat(p / scale), 0);
  // The mass of the rest, spread evenly over the other tokens.
  const others = Math.max(1, vocabularyTokens - listed.length);
  return Math.max(0, known + others * nat(rest / others));
}

/** Contribution of an outcome to the entropy. */
function nat(probability: number): number {
  return probability === 0 ? 0 : -probability * Math.log(probability);
}
