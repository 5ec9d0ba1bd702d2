import type { TimeLaw } from "./engine-model.js";

export interface FirstTokenTime {
  readonly uncachedTokens: number;
  readonly cachedTokens: number;
  /** From sending the request to its first token, in milliseconds, above 0. */
  readonly ms: number;
}

/** An answer after its first token. */
export interface AnswerTime {
  readonly promptTokens: number;
  readonly tokens: number;
  /** Milliseconds. */
  readonly ms: number;
}

/** Maximum samples, FIFO, so that the law follows changes of its engine. */
export const KEPT_SAMPLES = 256;
/** Fewer samples fit anything. */
const LEAST_SAMPLES = 16;
/** Significant likelihood ratio, as twice its logarithm: χ² of two degrees of freedom, once in 1,800 tries. */
const SIGNIFICANT = 15;
/** A law must take at least a third off the squared errors. */
const LEAST_RATIO = 1.5;
const LEAST_ANSWER_TOKENS = 4;
/** Rounds of least absolute errors, then of Tukey's biweight. */
const [ABSOLUTE_ROUNDS, ROUNDS] = [12, 8];
/** Smaller relative errors count as this. */
const MIN_ERROR = 0.01;
/** Samples beyond so many median deviations have no weight. */
const CUT = 4.685;
/** Shorter times were not measured, and squares of their inverse may overflow. */
const SHORTEST_MS = 1e-6;

/**
 * Fits a {@link TimeLaw} (docs/internals/algorithms.md, "What a prompt costs") to first-token times: least squares of relative errors, no negative
 * coefficient, no weight for outliers. Null if the prompts' lengths alone explain the times as well: then they say nothing about what the engine
 * computes.
 */
export function fitTimeLaw(samples: readonly FirstTokenTime[]): TimeLaw | null {
  const recent = samples.slice(-KEPT_SAMPLES).filter(({ ms }) => ms >= SHORTEST_MS);
  // In thousands of tokens, so that parts are of like size.
  const rows = recent.map(({ uncachedTokens, cachedTokens, ms }) => {
    const [u, c] = [uncachedTokens / 1_000, cachedTokens / 1_000];
    return [1, u, u * (c + u / 2), c + u].map((part) => part / ms);
  });
  if (recent.length < LEAST_SAMPLES) return null;
  const law = robustFit(rows, [0, 1, 2]);
  if (![[0], [0, 3]].every((columns) => isBetter(rows, law, robustFit(rows, columns)))) return null;
  const [fixedMs = 0, perToken = 0, perPair = 0] = law;
  return { kind: "time", fixedMs, perTokenMs: perToken / 1e3, perPairMs: perPair / 1e6 };
}

/**
 * Milliseconds that each token of a prompt adds to each token of its answer: the fitted value, if significant, else the geometric mean of its bounds.
 * At least `perPair`, since an answer's token attends over the prompt like one more of its tokens. At most the share of attention in a prompt token's
 * time, since the model's weights are read for one token, not for many.
 */
export function answerPace(samples: readonly AnswerTime[], { perTokenMs, perPairMs }: TimeLaw): number {
  const recent = samples
    .slice(-KEPT_SAMPLES)
    .filter(({ tokens, ms }) => tokens >= LEAST_ANSWER_TOKENS && ms >= SHORTEST_MS && ms < Number.POSITIVE_INFINITY);
  const mean = recent.reduce((sum, { promptTokens }) => sum + promptTokens, 0) / recent.length;
  const most = (perPairMs * median(recent.map(({ tokens, ms }) => ms / tokens))) / (perTokenMs + perPairMs * mean);
  if (!(most > perPairMs)) return perPairMs;
  const rows = recent.map(({ promptTokens, tokens, ms }) => [tokens / ms, (promptTokens * tokens) / ms]);
  const law = robustFit(rows, [0, 1]);
  if (!isBetter(rows, law, robustFit(rows, [0]))) return Math.sqrt(perPairMs * most);
  return Math.min(most, Math.max(perPairMs, law[1] ?? 0));
}

/** Parts of a time as shares of the measured one, whose sum by a perfect law is 1. */
type Row = readonly number[];

/** Whether a law beats one with fewer coefficients, and each time's neighbours (a queue): a likelihood-ratio test of log errors up to the cut-off. */
function isBetter(rows: readonly Row[], law: Row, simpler: Row): boolean {
  const own = logErrors(rows.map((row) => dot(row, law)));
  const most = CUT * scaleOf(own);
  const loss = (errors: readonly number[]) =>
    errors.reduce((sum, error) => sum + Math.min(most, Math.abs(error)) ** 2 + MIN_ERROR ** 2, 0);
  const count = rows.length - law.filter((part) => part > 0).length;
  const ratio = loss(logErrors(rows.map((row) => dot(row, simpler)))) / loss(own);
  const times = rows.map(([inverse = 1]) => 1 / inverse);
  const byNeighbours = times.map((time, at) => Math.sqrt((times[at - 1] ?? time) * (times[at + 1] ?? time)) / time);
  return (
    ratio > LEAST_RATIO &&
    loss(logErrors(byNeighbours)) > LEAST_RATIO * loss(own) &&
    count * Math.log(ratio) > SIGNIFICANT
  );
}

function logErrors(shares: readonly number[]): readonly number[] {
  const logs = shares.map((share) => Math.log(Math.max(Number.MIN_VALUE, share)));
  const middle = median(logs);
  return logs.map((log) => log - middle);
}

function robustFit(rows: readonly Row[], columns: readonly number[]): Row {
  let weights = rows.map(() => 1);
  let law: Row = [];
  for (let round = 0; round < ABSOLUTE_ROUNDS + ROUNDS; round++) {
    law = leastSquares(rows, weights, columns);
    const errors = rows.map((row) => Math.abs(1 - dot(row, law)));
    const cut = CUT * scaleOf(errors);
    weights = errors.map((error) =>
      round < ABSOLUTE_ROUNDS - 1 ? 1 / Math.max(MIN_ERROR, error) : Math.max(0, 1 - (error / cut) ** 2) ** 2,
    );
  }
  return law;
}

function scaleOf(errors: readonly number[]): number {
  return Math.max(MIN_ERROR, 1.4826 * median(errors.map(Math.abs)));
}

/** Weighted least squares of `row · x = 1` with x ≥ 0: the best over all subsets of non-zero coefficients. */
function leastSquares(rows: readonly Row[], weights: readonly number[], columns: readonly number[]): Row {
  const sum = (of: (row: Row) => number) => rows.reduce((all, row, at) => all + (weights[at] ?? 0) * of(row), 0);
  const normal = columns.map((i) => [
    ...columns.map((j) => sum((row) => (row[i] ?? 0) * (row[j] ?? 0))),
    sum((row) => row[i] ?? 0),
  ]);
  let best: { readonly law: Row; readonly gain: number } = { law: [], gain: 0 };
  for (let kept = 1; kept < 1 << columns.length; kept++) {
    const chosen = columns.flatMap((_, at) => ((kept & (1 << at)) === 0 ? [] : [at]));
    const parts = solve(chosen.map((i) => [...chosen, columns.length].map((j) => normal[i]?.[j] ?? 0)));
    if (parts === null || parts.some((part) => part < 0)) continue;
    const gain = chosen.reduce((all, i, at) => all + (parts[at] ?? 0) * (normal[i]?.[columns.length] ?? 0), 0);
    const law: number[] = [];
    for (const [at, i] of chosen.entries()) law[columns[i] ?? 0] = parts[at] ?? 0;
    if (gain > best.gain) best = { law: Array.from(law, (part) => part ?? 0), gain };
  }
  return best.law;
}

/** Gaussian elimination; null for a singular system. */
function solve(system: readonly number[][]): readonly number[] | null {
  for (const [pivot, own] of system.entries()) {
    const first = own[pivot] ?? 0;
    if (Math.abs(first) < 1e-18) return null;
    for (const [other, line] of system.entries()) {
      const factor = other === pivot ? 0 : (line[pivot] ?? 0) / first;
      for (let at = pivot; at <= system.length; at++) line[at] = (line[at] ?? 0) - factor * (own[at] ?? 0);
    }
  }
  return system.map((own, at) => (own[system.length] ?? 0) / (own[at] ?? 1));
}

function dot(row: Row, law: Row): number {
  return law.reduce((sum, part, at) => sum + part * (row[at] ?? 0), 0);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}
