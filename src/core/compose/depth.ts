import type { Ordering } from "../ordering/ordering.js";
import { smallest } from "../text/collections.js";

/**
 * How many memories a prompt contains when that is decided by the engine's uncertainty about the first token of its answer
 * (docs/internals/algorithms.md, "Adaptive depth").
 */
export interface DepthSettings {
  /** Blocks in the first probe. */
  readonly firstBlocks: number;
  /** Factor from one probe's blocks to the next's, above 1. */
  readonly growth: number;
  /** Maximum entropy of the first token, in nats, for the answer to count as sure. */
  readonly entropyNats: number;
  /** Maximum number of probes; the final prompt with all blocks is not one. */
  readonly maxProbes: number;
  /** Time-out of all probes together, in milliseconds. */
  readonly timeLimitMs: number;
}

/** Defaults. Not tuned on answer quality: the right entropy depends on the model. */
export const DEFAULT_DEPTH: DepthSettings = {
  firstBlocks: 5,
  growth: 2,
  entropyNats: 1,
  maxProbes: 4,
  timeLimitMs: 2_000,
};

/**
 * The depths to probe, in blocks: ascending, each less than the total, because a prompt with all blocks needs no probe. Empty if the first
 * probe would contain all blocks.
 *
 * @param blocks number of available blocks
 * @param due number of blocks that every prompt must contain
 */
export function probeDepths(blocks: number, due: number, settings: DepthSettings): readonly number[] {
  const depths: number[] = [];
  let next = Math.max(settings.firstBlocks, due);
  while (next < blocks && depths.length < settings.maxProbes) {
    depths.push(next);
    next = Math.max(next + 1, Math.round(next * settings.growth));
  }
  return depths;
}

/** One probe: a prompt sent only for the first token of its answer. */
export interface DepthProbe {
  /** Blocks in the prompt. */
  readonly blocks: number;
  /** Upper bound of the first token's entropy, in nats; null if the engine did not report usable probabilities. */
  readonly entropy: number | null;
  /** As the engine counted them; null if not reported. */
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
}

/** Why the prompt has its depth. */
export const DEPTH_OUTCOMES = [
  /** The engine was sure of its first token. */
  "sure",
  /** No probe was sure, so all blocks are in the prompt. */
  "unsure",
  /** There were no more blocks than the first probe would contain. */
  "few",
  /** The request fixes the start of the answer (a schema, a required tool), so the first token says nothing. */
  "fixed_start",
  /** The first token is one of the model's own markers (a thought starts), or there was none. */
  "unclear",
  /** The engine returns no log probabilities. */
  "unavailable",
  /** A probe failed or timed out. */
  "failed",
] as const;
export type DepthOutcome = (typeof DEPTH_OUTCOMES)[number];

/** How the depth was chosen. */
export interface DepthChoice {
  readonly outcome: DepthOutcome;
  readonly probes: readonly DepthProbe[];
}

/** How many of the retrieved blocks a turn injects. */
export interface Depth {
  /** Number of blocks to inject: the most relevant ones that are not in the prompt yet. */
  readonly blocks: number;
  /** The order of the previous probe, which this prompt extends; null for none. */
  readonly after: Ordering | null;
  readonly choice: DepthChoice;
}

/** How many of the retrieved blocks are in a prompt, and why. */
export interface PlanDepth extends DepthChoice {
  /** Distinct retrieved blocks that no earlier turn of this prompt injected … */
  readonly retrieved: number;
  /** … and how many of them are in it. */
  readonly given: number;
}

/** Upper bound of real vocabularies: unlisted probability mass is spread over at most this many tokens. */
export const VOCABULARY_TOKENS = 262_144;

/** Tolerance for rounded probabilities, above a sum of 1. */
const ROUNDING = 0.01;

/** Bounds of the entropy of a token's distribution, in nats. */
export interface EntropyBounds {
  readonly least: number;
  readonly most: number;
}

/**
 * Bounds of the entropy of a token's distribution of which only the likeliest tokens are known. The unlisted mass adds least if it lies on
 * tokens as likely as the last listed one, and most if it is spread evenly over the vocabulary. Null if these cannot be probabilities of
 * different tokens.
 *
 * @param logProbabilities natural logarithms, of different tokens, in any order; −9999 and the like count as probability 0
 */
export function entropyBounds(
  logProbabilities: readonly number[],
  vocabularyTokens = VOCABULARY_TOKENS,
): EntropyBounds | null {
  const listed = logProbabilities.map(Math.exp);
  const sum = listed.reduce((all, p) => all + p, 0);
  // Negated, so that NaN is rejected.
  if (listed.length === 0 || !(sum > 0 && sum <= 1 + ROUNDING)) return null;
  const scale = Math.max(1, sum);
  const rest = Math.max(0, 1 - sum);
  const last = smallest(listed);
  const known = listed.reduce((nats, p) => nats + nat(p / scale), 0);
  const others = Math.max(1, vocabularyTokens - listed.length);
  // No unlisted token is likelier than the last listed one, so at least this many share the rest.
  const least = last > 0 ? Math.min(others, Math.max(1, rest / last)) : others;
  return { least: Math.max(0, known + spread(rest, least)), most: Math.max(0, known + spread(rest, others)) };
}

/** Contribution of an outcome with this probability to the entropy. */
function nat(probability: number): number {
  return probability === 0 ? 0 : -probability * Math.log(probability);
}

/** Contribution of mass spread evenly over so many outcomes. */
function spread(mass: number, outcomes: number): number {
  return mass === 0 ? 0 : -mass * Math.log(mass / outcomes);
}
