import { largest, smallest } from "../text/collections.js";
import { promptCost, type TimeLaw } from "./engine-model.js";

/** One served request. */
export interface FirstTokenTime {
  readonly uncachedTokens: number;
  readonly cachedTokens: number;
  /** From sending the request to its first token, in milliseconds, above 0. */
  readonly ms: number;
}

/** Maximum samples, FIFO, so that the law follows changes of its engine. */
export const KEPT_SAMPLES = 256;
export const LEAST_SAMPLES = 24;
/** Typical error of a known law's times, scaled to measured ones, as a logarithm; errors beyond four of it count as four. */
const LAW_ERROR = 0.15;
/** More times weigh no more than so many: prompts of one step, and a machine that changes its speed, have their errors in common. */
const MOST_EVIDENCE = 6;
/** Typical factor between an engine and the known law that it is like, as a logarithm: three. */
const LAW_SCALE = Math.log(3);
/** Minimum ratio of the most to the fewest computed tokens among the samples. */
const MIN_SPREAD = 2;
/** Rounds of least absolute errors, which outliers hardly affect, … */
const ABSOLUTE_ROUNDS = 30;
/** … then rounds in which outliers have no weight. */
const ROUNDS = 10;
/** Smaller relative errors count as this. */
const MIN_ERROR = 0.01;
/** Cut-off in median deviations: samples beyond it have no weight (Tukey's biweight). */
const CUT = 4.685;
/** Milliseconds. What is reported as less was not measured, and squares of its inverse may be no numbers. */
const SHORTEST_MS = 1e-6;

/**
 * Fits the time law `fixed + perToken·u + perPair·u·(c + u/2)` (docs/internals/algorithms.md, "What a prompt costs") to measured
 * first-token times: least squares of relative errors, no coefficient below 0, outliers (a queue, a pause, a cold start) without weight.
 * Null if the samples are too few or too similar.
 */
export function fitTimeLaw(samples: readonly FirstTokenTime[]): TimeLaw | null {
  const recent = samples.slice(-KEPT_SAMPLES).filter(({ ms }) => ms >= SHORTEST_MS);
  const computed = recent.map(({ uncachedTokens }) => uncachedTokens);
  if (recent.length < LEAST_SAMPLES || largest(computed) < MIN_SPREAD * Math.max(1, smallest(computed))) return null;
  const rows = recent.map(
    ({ uncachedTokens: u, cachedTokens: c, ms }): MeasuredTime => [1 / ms, u / ms, (u * (c + u / 2)) / ms],
  );
  const [fixedMs, perTokenMs, perPairMs] = robustFit(rows);
  return perTokenMs + perPairMs > 0 ? { kind: "time", fixedMs, perTokenMs, perPairMs } : null;
}

/**
 * What to plan by until there are samples for {@link fitTimeLaw}: the mean of known laws, each scaled to the measured times, and weighted by
 * how likely it makes them. So one time distinguishes a fast engine from a slow one, some show what its time depends on, and where they do not, a
 * choice that is bad by one of the laws is not made for the sake of another. A law that is known twice weighs twice. Null without samples.
 */
export function likelyTimeLaw(samples: readonly FirstTokenTime[], known: readonly TimeLaw[]): TimeLaw | null {
  const recent = samples
    .slice(-KEPT_SAMPLES)
    .filter(({ ms, uncachedTokens }) => ms >= SHORTEST_MS && uncachedTokens > 0);
  if (recent.length === 0) return null;
  const scaled = known.flatMap((cost) => {
    const model = { cost, blockTokens: 1, minimumPrefixTokens: 0 };
    const ratios = recent.map(({ uncachedTokens, cachedTokens, ms }) =>
      Math.log(ms / promptCost(model, uncachedTokens + cachedTokens, cachedTokens)),
    );
    const middle = median(ratios);
    if (!Number.isFinite(middle)) return [];
    const errors = ratios.map((ratio) => Math.min(Math.abs(ratio - middle) / LAW_ERROR, 4));
    const error = errors.reduce((sum, each) => sum + each, 0) / errors.length;
    const likelihood = -error * Math.min(errors.length, MOST_EVIDENCE) - (middle / LAW_SCALE) ** 2 / 2;
    return [{ cost, scale: Math.exp(middle), likelihood }];
  });
  const most = largest(scaled.map(({ likelihood }) => likelihood));
  const weighted = scaled.map(({ cost, scale, likelihood }) => ({ cost, scale, weight: Math.exp(likelihood - most) }));
  const all = weighted.reduce((sum, { weight }) => sum + weight, 0);
  if (!(all > 0)) return null;
  const mean = (of: (law: TimeLaw) => number) =>
    weighted.reduce((sum, { cost, scale, weight }) => sum + (weight / all) * scale * of(cost), 0);
  return {
    kind: "time",
    fixedMs: mean(({ fixedMs }) => fixedMs),
    perTokenMs: mean(({ perTokenMs }) => perTokenMs),
    perPairMs: mean(({ perPairMs }) => perPairMs),
  };
}

/** One answer after its first token. */
export interface AnswerTime {
  /** Tokens of its prompt. */
  readonly promptTokens: number;
  /** Tokens after the first one. */
  readonly tokens: number;
  /** From its first token to its last, in milliseconds. */
  readonly ms: number;
}

/** Shorter answers say little of the time per token. */
const LEAST_ANSWER_TOKENS = 4;
/** Relative errors of measured times per token are taken to be at least this: what an engine does for others is not all known. */
const LEAST_PACE_ERROR = 0.1;
/** Of how many values the pace is estimated. */
const PACES = 33;

/**
 * Milliseconds that each token of a prompt adds to each token of its answer.
 *
 * The law of the first token bounds it. A token of an answer attends over the prompt as one more of the prompt's tokens would, which takes
 * `perPair` a token at least. And against all else that it takes it is at most as much as of a prompt's token: attention is the same, while the
 * model's weights are read for one token in place of many. Between these any order of magnitude is as likely as another, so without further
 * evidence it is their geometric mean. Answers show the slope of the time per token over the prompt's length, fitted as {@link fitTimeLaw} is, with
 * errors by Student's distribution: a few say little, and those to prompts that are alike nothing.
 */
export function answerPace(samples: readonly AnswerTime[], { perTokenMs, perPairMs }: TimeLaw): number {
  const recent = samples
    .slice(-KEPT_SAMPLES)
    .filter(({ tokens, ms }) => tokens >= LEAST_ANSWER_TOKENS && ms >= SHORTEST_MS && ms < Number.POSITIVE_INFINITY);
  const count = recent.length;
  if (count === 0 || perPairMs === 0) return perPairMs;
  const mean = recent.reduce((sum, { promptTokens }) => sum + promptTokens, 0) / count;
  const spread = Math.sqrt(recent.reduce((sum, { promptTokens }) => sum + (promptTokens - mean) ** 2, 0));
  const usual = median(recent.map(({ tokens, ms }) => ms / tokens));
  const ratio = usual / (perTokenMs + perPairMs * mean);
  if (!(ratio > 1)) return perPairMs;
  const freedom = count - 2;
  if (spread === 0 || freedom < 1) return perPairMs * Math.sqrt(ratio);
  const rows = recent.map(
    ({ promptTokens, tokens, ms }): MeasuredTime => [tokens / ms, (promptTokens * tokens) / ms, 0],
  );
  const law = robustFit(rows);
  const typical = 1.4826 * median(rows.map((row) => Math.abs(1 - dot(row, law)))) * Math.sqrt(count / freedom);
  const error = (Math.max(LEAST_PACE_ERROR, typical) * (law[0] + law[1] * mean)) / spread;
  let [sum, all] = [0, 0];
  for (let n = 0; n < PACES; n++) {
    const exponent = n / (PACES - 1);
    const likelihood = (1 + ((law[1] - perPairMs * ratio ** exponent) / error) ** 2 / freedom) ** (-count / 2);
    sum += exponent * likelihood;
    all += likelihood;
  }
  return perPairMs * ratio ** (all > 0 ? sum / all : 1 / 2);
}

/** Weighted least squares of relative errors, with x ≥ 0 and no weight for outliers. */
function robustFit(rows: readonly MeasuredTime[]): MeasuredTime {
  let weights = rows.map(() => 1);
  let law: MeasuredTime = [0, 0, 0];
  for (let round = 0; round < ABSOLUTE_ROUNDS + ROUNDS; round++) {
    law = leastSquares(rows, weights);
    const errors = rows.map((row) => Math.abs(1 - dot(row, law)));
    const scale = Math.max(MIN_ERROR, 1.4826 * median(errors));
    weights = errors.map((error) =>
      round < ABSOLUTE_ROUNDS - 1 ? 1 / Math.max(MIN_ERROR, error) : Math.max(0, 1 - (error / (CUT * scale)) ** 2) ** 2,
    );
  }
  return law;
}

type MeasuredTime = readonly [number, number, number];

/** Weighted least squares of `row · x = 1` with x ≥ 0: the best solution over all subsets of non-zero coefficients. */
function leastSquares(rows: readonly MeasuredTime[], weights: readonly number[]): MeasuredTime {
  const normal = [0, 1, 2].map((i) => [
    ...[0, 1, 2].map((j) => weightedSum(rows, weights, (row) => (row[i] ?? 0) * (row[j] ?? 0))),
    weightedSum(rows, weights, (row) => row[i] ?? 0),
  ]);
  let best: { readonly law: MeasuredTime; readonly error: number } = {
    law: [0, 0, 0],
    error: Number.POSITIVE_INFINITY,
  };
  for (let kept = 1; kept < 8; kept++) {
    const columns = [0, 1, 2].filter((column) => (kept & (1 << column)) !== 0);
    const law = solve(normal, columns);
    if (law === null || law.some((part) => part < 0)) continue;
    const error = weightedSum(rows, weights, (row) => (1 - dot(row, law)) ** 2);
    if (error < best.error) best = { law, error };
  }
  return best.law;
}

/** Solves the normal equations over some of their columns by elimination; null if they are singular. */
function solve(normal: readonly (readonly number[])[], columns: readonly number[]): MeasuredTime | null {
  const size = columns.length;
  const system = columns.map((i) => [...columns, 3].map((j) => normal[i]?.[j] ?? 0));
  for (let pivot = 0; pivot < size; pivot++) {
    const own = system[pivot] as number[];
    const first = own[pivot] ?? 0;
    if (Math.abs(first) < 1e-18) return null;
    for (let other = 0; other < size; other++) {
      if (other === pivot) continue;
      const line = system[other] as number[];
      const factor = (line[pivot] ?? 0) / first;
      for (let at = pivot; at <= size; at++) line[at] = (line[at] ?? 0) - factor * (own[at] ?? 0);
    }
  }
  const law = [0, 0, 0];
  for (const [at, column] of columns.entries()) law[column] = (system[at]?.[size] ?? 0) / (system[at]?.[at] ?? 1);
  return law as unknown as MeasuredTime;
}

function weightedSum(
  rows: readonly MeasuredTime[],
  weights: readonly number[],
  of: (row: MeasuredTime) => number,
): number {
  return rows.reduce((sum, row, at) => sum + (weights[at] ?? 0) * of(row), 0);
}

function dot(a: MeasuredTime, b: MeasuredTime): number {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}
