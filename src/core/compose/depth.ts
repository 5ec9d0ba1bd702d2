import type { Ordering } from "../ordering/ordering.js";

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
export type DepthOutcome =
  /** The engine was sure of its first token. */
  | "sure"
  /** No probe was sure, so all blocks are in the prompt. */
  | "unsure"
  /** There were no more blocks than the first probe would contain. */
  | "few"
  /** The request fixes the start of the answer (a schema, a required tool), so the first token says nothing. */
  | "fixed_start"
  /** The first token is one of the model's own markers (a thought starts), or there was none. */
  | "unclear"
  /** The engine returns no log probabilities. */
  | "unavailable"
  /** A probe failed or timed out. */
  | "failed";

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
