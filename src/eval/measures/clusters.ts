/** What a bootstrap draws: whole conversations with all their questions, or questions one by one. */
export type ResampledUnit = "conversations" | "questions";

/** What intervals resample, and how many of it there are. */
export interface Resampled {
  readonly unit: ResampledUnit;
  /** Conversations that were measured. */
  readonly conversations: number;
}

/**
 * Fewest conversations that are resampled. Questions of one conversation are not independent, so conversations are what should be drawn; of
 * fewer than six, intervals of 95 % cover about 92 % or less (`test/eval/measures/bootstrap.test.ts`).
 */
export const LEAST_CONVERSATIONS = 6;

/** Which conversation each value is of, numbered from 0. */
export interface Clusters {
  readonly of: Uint32Array;
  readonly count: number;
}

/** The conversations of values, to be drawn as a whole; null where they are too few, so that questions are drawn. */
export function clustersOf(conversations: readonly string[]): Clusters | null {
  const numbers = new Map<string, number>();
  for (const name of conversations) if (!numbers.has(name)) numbers.set(name, numbers.size);
  if (numbers.size < LEAST_CONVERSATIONS) return null;
  return { of: Uint32Array.from(conversations, (name) => numbers.get(name) ?? 0), count: numbers.size };
}

/**
 * Share of estimates to leave out on either side for an interval of 95 % over so many clusters: the expanded percentile interval of Hesterberg,
 * "What Teachers Should Know about the Bootstrap", The American Statistician 69 (2015), which makes up for the percentile interval's being
 * too narrow in small samples: Φ(−√(n ÷ (n − 1)) · t), t the quantile of Student's distribution with n − 1 degrees of freedom.
 */
export function tailOf(clusters: number): number {
  return normalBelow(-Math.sqrt(clusters / (clusters - 1)) * studentQuantile(clusters - 1));
}

/** Normal quantile of 0.975. */
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

/**
 * How probable a value of Student's distribution is that lies as far from 0 as this one, on either side; by Wallace's transformation to the
 * normal one (Biometrika 46, 1959), within 0.001 from five degrees of freedom on.
 */
export function studentTails(t: number, degrees: number): number {
  const factor = (8 * degrees + 1) / (8 * degrees + 3);
  return 2 * normalBelow(-factor * Math.sqrt(degrees * Math.log1p(t ** 2 / degrees)));
}

/** The normal distribution below a negative value; Abramowitz and Stegun 26.2.17, within 1e-7. */
function normalBelow(value: number): number {
  const t = 1 / (1 + 0.2316419 * -value);
  const density = Math.exp(-(value ** 2) / 2) / Math.sqrt(2 * Math.PI);
  const series = [0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429];
  return density * series.reduce((sum, factor, at) => sum + factor * t ** (at + 1), 0);
}
