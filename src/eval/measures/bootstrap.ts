import { seeded } from "../base/seeded.js";
import { type Clusters, type ResampledUnit, tailOf } from "./clusters.js";

/** An estimate with the interval that 95 % of resamples lie in. */
export interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** How intervals are taken. */
export interface BootstrapOptions {
  readonly seed: number;
  /** Default: {@link RESAMPLES}. */
  readonly resamples?: number | undefined;
}

export const RESAMPLES = 1_000;
/** Share of estimates outside on either side, where values are drawn one by one. */
const TAIL = 0.025;

/**
 * The mean with its bootstrap interval: values are drawn with replacement, as many as there are; with clusters, whole clusters, and the interval is
 * an expanded one ({@link tailOf}). Null of none.
 */
export function bootstrapMean(
  values: readonly number[],
  options: BootstrapOptions,
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

/**
 * The median with its bootstrap interval, drawn as for {@link bootstrapMean}; of an even number of values, the mean of the two in the middle. Null of
 * none.
 */
export function bootstrapMedian(
  values: readonly number[],
  options: BootstrapOptions,
  clusters: Clusters | null = null,
): Interval | null {
  if (values.length === 0) return null;
  const { unitOf, count, tail } = unitsOf(values, clusters);
  const byRank = [...values.keys()].sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const sorted = Float64Array.from(byRank, (at) => values[at] ?? 0);
  const ranksOf = Array.from({ length: count }, (): number[] => []);
  for (const [rank, at] of byRank.entries()) ranksOf[unitOf(at)]?.push(rank);
  // A resample is counted by rank, so that it needs no sorting.
  const counts = new Uint32Array(sorted.length);
  return interval(medianByRank(sorted, counts.fill(1)), tail, options, (draw) => {
    counts.fill(0);
    for (let i = 0; i < count; i++)
      for (const rank of ranksOf[draw(count)] ?? []) counts[rank] = (counts[rank] ?? 0) + 1;
    return medianByRank(sorted, counts);
  });
}

/**
 * A statistic of groups with its bootstrap interval: groups are drawn with replacement, as many as there are. Null where the
 * statistic of all of them is; resamples of which it is null do not count.
 *
 * @param unit what a group is: intervals over conversations are expanded ({@link tailOf})
 */
export function bootstrapGroups<G>(
  groups: readonly G[],
  statistic: (drawn: readonly G[]) => number | null,
  options: BootstrapOptions,
  unit: ResampledUnit = "questions",
): Interval | null {
  const value = statistic(groups);
  if (value === null) return null;
  return interval(value, unit === "questions" ? TAIL : tailOf(groups.length), options, (draw) =>
    statistic(groups.map((group) => groups[draw(groups.length)] ?? group)),
  );
}

/** What is drawn as a whole: a cluster, or each value. */
function unitsOf(values: readonly number[], clusters: Clusters | null) {
  if (clusters === null) return { unitOf: (at: number) => at, count: values.length, tail: TAIL };
  const { of, count } = clusters;
  return { unitOf: (at: number) => of[at] ?? 0, count, tail: tailOf(count) };
}

/** The median of sorted values, each of which stands there so many times. */
function medianByRank(sorted: Float64Array, counts: Uint32Array): number {
  const all = counts.reduce((sum, count) => sum + count, 0);
  const [lower, upper] = [(all - 1) >> 1, all >> 1];
  let [seen, below] = [0, 0];
  for (let rank = 0; rank < counts.length; rank++) {
    const count = counts[rank] ?? 0;
    if (seen <= lower && lower < seen + count) below = sorted[rank] ?? 0;
    if (seen <= upper && upper < seen + count) return (below + (sorted[rank] ?? 0)) / 2;
    seen += count;
  }
  return below;
}

/** @param resample an estimate of one resample, for which `draw` gives whole numbers below a count */
function interval(
  value: number,
  tail: number,
  { seed, resamples = RESAMPLES }: BootstrapOptions,
  resample: (draw: (count: number) => number) => number | null,
): Interval {
  const random = seeded(seed);
  const draw = (count: number) => Math.floor(random() * count);
  const found = Array.from({ length: resamples }, () => resample(draw)).filter((estimate) => estimate !== null);
  const estimates = Float64Array.from(found).sort();
  const at = (share: number) => estimates[Math.round(share * (estimates.length - 1))] ?? value;
  return { value, low: at(tail), high: at(1 - tail) };
}
