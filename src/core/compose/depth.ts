import type { Ordering } from "../ordering/ordering.js";

/**
 * How many memories a prompt gets where the engine says how sure it is of its answer's first token (docs/internals/algorithms.md, "Adaptive
 * depth").
 */
export interface DepthSettings {
  /** Blocks that are tried first. */
  readonly firstBlocks: number;
  /** How many times as many the next try has, above 1. */
  readonly growth: number;
  /** Nats that the first token's entropy may come to for the answer to count as sure. */
  readonly entropyNats: number;
  /** Tries, at most; the prompt with all blocks is none. */
  readonly maxProbes: number;
  /** Milliseconds that all tries together may take. */
  readonly timeLimitMs: number;
}

/** Where nothing else is said. Nobody has measured them on answers: what is sure enough depends on the model. */
export const DEFAULT_DEPTH: DepthSettings = {
  firstBlocks: 5,
  growth: 2,
  entropyNats: 1,
  maxProbes: 4,
  timeLimitMs: 2_000,
};

/**
 * The depths to try, in blocks: each greater than the one before and less than all of them, because a prompt with all of them needs no
 * try. None where the first one would have all.
 *
 * @param blocks how many there are
 * @param due how many of them every prompt has to have
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

/** One try: a prompt that was sent for its answer's first token. */
export interface DepthProbe {
  /** Blocks that it held. */
  readonly blocks: number;
  /** The most that its first token's entropy can be, in nats; null where the engine did not say, or what it said says nothing. */
  readonly entropy: number | null;
  /** As the engine counted them; null where it did not say. */
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
}

/** Why a prompt has the depth that it has. */
export type DepthOutcome =
  /** The engine was sure. */
  | "sure"
  /** It never was, so all blocks are given. */
  | "unsure"
  /** There were no more than the first try would have had. */
  | "few"
  /** The request fixes how its answer begins (a schema, a tool that must be called), so the first token says nothing. */
  | "fixed_start"
  /** The first token is one of the model's own marks (a thought begins), or none came. */
  | "unclear"
  /** The engine gives no log probabilities. */
  | "unavailable"
  /** A try failed, or took too long. */
  | "failed";

/** How the depth was found. */
export interface DepthChoice {
  readonly outcome: DepthOutcome;
  readonly probes: readonly DepthProbe[];
}

/** How much of what was retrieved a turn gives. */
export interface Depth {
  /** Blocks that it gives of those that the prompt does not hold yet, the most relevant ones. */
  readonly blocks: number;
  /** The order of the prompt that was sent before it and that this one extends; null for none. */
  readonly after: Ordering | null;
  readonly choice: DepthChoice;
}

/** How much of what was retrieved a prompt holds, and why. */
export interface PlanDepth extends DepthChoice {
  /** Distinct blocks that were retrieved and that no earlier turn of this prompt gave … */
  readonly retrieved: number;
  /** … and how many of them are in it. */
  readonly given: number;
}
