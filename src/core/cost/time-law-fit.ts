import { largest, smallest } from "../text/lists.js";
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
/** Minimum samples for scaling a known law. */
const LEAST_FOR_SCALE = 8;
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

/**
 * Fits the time law `fixed + perToken·u + perPair·u·(c + u/2)` (docs/internals/algorithms.md, "What a prompt costs") to measured
 * first-token times: least squares of relative errors, no coefficient below 0, outliers (a queue, a pause, a cold start) without weight.
 * Null if the samples are too few or too similar.
 */
export function fitTimeLaw(samples: readonly FirstTokenTime[]): TimeLaw | null {
  const recent = samples.slice(-KEPT_SAMPLES).filter(({ ms }) => ms > 0);
  if (!isSpread(recent.map(({ uncachedTokens }) => uncachedTokens))) return null;
  const rows = recent.map(
    ({ uncachedTokens: u, cachedTokens: c, ms }): MeasuredTime => [1 / ms, u / ms, (u * (c + u / 2)) / ms],
  );
  const [fixedMs, perTokenMs, perPairMs] = robustFit(rows);
  return perTokenMs + perPairMs > 0 ? { kind: "time", fixedMs, perTokenMs, perPairMs } : null;
}

/**
 * The known law that measured first-token times are nearest to, scaled to them: what to plan by until there are samples for {@link fitTimeLaw}.
 * The first of those equally near. Null if the samples are too few.
 */
export function nearestTimeLaw(samples: readonly FirstTokenTime[], known: readonly TimeLaw[]): TimeLaw | null {
  const recent = samples.slice(-KEPT_SAMPLES).filter(({ ms, uncachedTokens }) => ms > 0 && uncachedTokens > 0);
  if (recent.length < LEAST_FOR_SCALE) return null;
  let best: { readonly law: TimeLaw; readonly error: number } | null = null;
  for (const cost of known) {
    const model = { cost, blockTokens: 1, minimumPrefixTokens: 0 };
    const ratios = recent.map(({ uncachedTokens, cachedTokens, ms }) =>
      Math.log(ms / promptCost(model, uncachedTokens + cachedTokens, cachedTokens)),
    );
    const middle = median(ratios);
    const error = median(ratios.map((ratio) => Math.abs(ratio - middle)));
    if (!(error < (best?.error ?? Number.POSITIVE_INFINITY))) continue;
    const scale = Math.exp(middle);
    const { fixedMs, perTokenMs, perPairMs } = cost;
    const law = { fixedMs: scale * fixedMs, perTokenMs: scale * perTokenMs, perPairMs: scale * perPairMs };
    best = { law: { kind: "time", ...law }, error };
  }
  return best?.law ?? null;
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

/**
 * Milliseconds that each token of a prompt adds to each token of its answer: the slope of the time per token over the prompt's length, fitted
 * as {@link fitTimeLaw} is. Null if the samples are too few or too similar.
 */
export function fitAnswerPace(samples: readonly AnswerTime[]): number | null {
  const recent = samples
    .slice(-KEPT_SAMPLES)
    .filter(({ tokens, ms }) => tokens >= LEAST_ANSWER_TOKENS && ms > 0 && ms < Number.POSITIVE_INFINITY);
  if (!isSpread(recent.map(({ promptTokens }) => promptTokens))) return null;
  const rows = recent.map(
    ({ promptTokens, tokens, ms }): MeasuredTime => [tokens / ms, (promptTokens * tokens) / ms, 0],
  );
  return robustFit(rows)[1];
}

/** Whether samples of so many tokens are enough, and differ enough. */
function isSpread(tokens: readonly number[]): boolean {
  return tokens.length >= LEAST_SAMPLES && largest(tokens) >= MIN_SPREAD * Math.max(1, smallest(tokens));
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
  let best: { readonly law: MeasuredTime; readonly error: number } = {
    law: [0, 0, 0],
    error: Number.POSITIVE_INFINITY,
  };
  for (let kept = 1; kept < 8; kept++) {
    const columns = [0, 1, 2].filter((column) => (kept & (1 << column)) !== 0);
    const law = solve(rows, weights, columns);
    if (law === null || law.some((part) => part < 0)) continue;
    const error = rows.reduce((sum, row, at) => sum + (weights[at] ?? 0) * (1 - dot(row, law)) ** 2, 0);
    if (error < best.error) best = { law, error };
  }
  return best.law;
}

/** Solves the normal equations over some columns by elimination; null if they are singular. */
function solve(
  rows: readonly MeasuredTime[],
  weights: readonly number[],
  columns: readonly number[],
): MeasuredTime | null {
  const size = columns.length;
  const system = columns.map((i) => [
    ...columns.map((j) => weightedSum(rows, weights, (row) => (row[i] ?? 0) * (row[j] ?? 0))),
    weightedSum(rows, weights, (row) => row[i] ?? 0),
  ]);
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
