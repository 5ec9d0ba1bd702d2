/** An estimate with its 95 % bootstrap interval. */
export interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

export interface BootstrapOptions {
  /** Default: 1. */
  readonly seed?: number | undefined;
  /** Default: {@link RESAMPLES}. */
  readonly resamples?: number | undefined;
}

export const RESAMPLES = 1_000;
const SEED = 1;
/** Share of estimates left out on each side when single values are drawn. */
const TAIL = 0.025;

/** The mean with its bootstrap interval, over values or whole clusters; see {@link tailOf} for those. Null for no values. */
export function bootstrapMean(
  values: readonly number[],
  options: BootstrapOptions = {},
  clusters: Clusters | null = null,
): Interval | null {
  if (values.length === 0) return null;
  const { unitOf, count, tail } = unitsOf(values, clusters);
  const [sums, sizes] = [new Float64Array(count), new Uint32Array(count)];
  for (const [at, value] of values.entries()) {
    const unit = unitOf(at);
    sums[unit] = (sums[unit] ?? 0) + value;
    sizes[unit] = (sizes[unit] ?? 0) + 1;
  }
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return interval(mean, tail, options, (draw) => {
    let [sum, size] = [0, 0];
    for (let i = 0; i < count; i++) {
      const unit = draw(count);
      sum += sums[unit] ?? 0;
      size += sizes[unit] ?? 0;
    }
    return sum / size;
  });
}

function unitsOf(values: readonly number[], clusters: Clusters | null) {
  if (clusters === null) return { unitOf: (at: number) => at, count: values.length, tail: TAIL };
  const { of, count } = clusters;
  return { unitOf: (at: number) => of[at] ?? 0, count, tail: tailOf(count) };
}

/** @param resample one resample's estimate; its `draw` returns whole numbers below a count */
function interval(
  value: number,
  tail: number,
  { seed = SEED, resamples = RESAMPLES }: BootstrapOptions,
  resample: (draw: (count: number) => number) => number,
): Interval {
  const random = seeded(seed);
  const draw = (count: number) => Math.floor(random() * count);
  const estimates = Float64Array.from({ length: resamples }, () => resample(draw)).sort();
  const at = (share: number) => estimates[Math.round(share * (estimates.length - 1))] ?? value;
  return { value, low: at(tail), high: at(1 - tail) };
}

/** A small seeded random generator (mulberry32), from 0 to below 1. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export type ResampledUnit = "conversations" | "questions";

export interface Resampled {
  readonly unit: ResampledUnit;
  /** Conversations that were measured. */
  readonly conversations: number;
}

/**
 * Fewest conversations to draw whole. Questions of one conversation are not independent, so conversations should be drawn; but with fewer
 * than six, 95 % intervals cover about 92 % or less (`test/eval/measures/bootstrap.test.ts`).
 */
export const LEAST_CONVERSATIONS = 6;

/** The conversation of each value, numbered from 0. */
export interface Clusters {
  readonly of: Uint32Array;
  readonly count: number;
}

/** The conversations of values; null where they are too few, so that questions are drawn. */
export function clustersOf(conversations: readonly string[]): Clusters | null {
  const numbers = new Map<string, number>();
  for (const name of conversations) if (!numbers.has(name)) numbers.set(name, numbers.size);
  if (numbers.size < LEAST_CONVERSATIONS) return null;
  return { of: Uint32Array.from(conversations, (name) => numbers.get(name) ?? 0), count: numbers.size };
}

/**
 * Share of estimates to leave out on each side of a 95 % interval over clusters: the expanded percentile interval of Hesterberg, "What
 * Teachers Should Know about the Bootstrap", The American Statistician 69 (2015), which corrects for small samples:
 * Φ(−√(n ÷ (n − 1)) · t), t the quantile of Student's distribution with n − 1 degrees of freedom.
 */
export function tailOf(clusters: number): number {
  return normalBelow(-Math.sqrt(clusters / (clusters - 1)) * studentQuantile(clusters - 1));
}

/** Of 0.975. */
const NORMAL_QUANTILE = 1.959964;

/** Student's quantile of 0.975, by the Cornish–Fisher expansion: within 0.01 from four degrees of freedom on. */
function studentQuantile(degrees: number): number {
  const z = NORMAL_QUANTILE;
  return (
    z +
    (z ** 3 + z) / (4 * degrees) +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2) +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * degrees ** 3)
  );
}

/** The normal distribution below a negative value; Abramowitz and Stegun 26.2.17, within 1e-7. */
function normalBelow(value: number): number {
  const t = 1 / (1 + 0.2316419 * -value);
  const density = Math.exp(-(value ** 2) / 2) / Math.sqrt(2 * Math.PI);
  const series = [0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429];
  return density * series.reduce((sum, factor, at) => sum + factor * t ** (at + 1), 0);
}
