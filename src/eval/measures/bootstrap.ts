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
  const given = Float64Array.from(values);
  const draw = seeded(options.seed);
  const mean = given.reduce((sum, value) => sum + value, 0) / given.length;
  if (clusters !== null) {
    const { of, count } = clusters;
    const [sums, sizes] = [new Float64Array(count), new Uint32Array(count)];
    for (const [at, value] of given.entries()) {
      const cluster = of[at] ?? 0;
      sums[cluster] = (sums[cluster] ?? 0) + value;
      sizes[cluster] = (sizes[cluster] ?? 0) + 1;
    }
    return interval(mean, options, tailOf(count), () => {
      let [sum, size] = [0, 0];
      for (let i = 0; i < count; i++) {
        const cluster = Math.floor(draw() * count);
        sum += sums[cluster] ?? 0;
        size += sizes[cluster] ?? 0;
      }
      return sum / size;
    });
  }
  return interval(mean, options, TAIL, () => {
    let sum = 0;
    for (let i = 0; i < given.length; i++) sum += given[Math.floor(draw() * given.length)] ?? 0;
    return sum / given.length;
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
  const byRank = [...values.keys()].sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const sorted = Float64Array.from(byRank, (at) => values[at] ?? 0);
  const draw = seeded(options.seed);
  // A resample is counted by rank, so that it needs no sorting.
  const counts = new Uint32Array(sorted.length);
  const median = medianByRank(sorted, counts.fill(1));
  if (clusters !== null) {
    const { of, count } = clusters;
    const drawn = new Uint32Array(count);
    return interval(median, options, tailOf(count), () => {
      drawn.fill(0);
      for (let i = 0; i < count; i++) {
        const cluster = Math.floor(draw() * count);
        drawn[cluster] = (drawn[cluster] ?? 0) + 1;
      }
      for (const [rank, at] of byRank.entries()) counts[rank] = drawn[of[at] ?? 0] ?? 0;
      return medianByRank(sorted, counts);
    });
  }
  return interval(median, options, TAIL, () => {
    counts.fill(0);
    for (let i = 0; i < sorted.length; i++) {
      const rank = Math.floor(draw() * sorted.length);
      counts[rank] = (counts[rank] ?? 0) + 1;
    }
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
  { seed, resamples = RESAMPLES }: BootstrapOptions,
  unit: ResampledUnit = "questions",
): Interval | null {
  const value = statistic(groups);
  if (value === null) return null;
  const draw = seeded(seed);
  const estimates = Array.from({ length: resamples }, () =>
    statistic(groups.map((group) => groups[Math.floor(draw() * groups.length)] ?? group)),
  ).filter((estimate) => estimate !== null);
  return intervalOf(value, unit === "questions" ? TAIL : tailOf(groups.length), Float64Array.from(estimates).sort());
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

function interval(
  value: number,
  { resamples = RESAMPLES }: BootstrapOptions,
  tail: number,
  resample: () => number,
): Interval {
  return intervalOf(value, tail, Float64Array.from({ length: resamples }, resample).sort());
}

function intervalOf(value: number, tail: number, estimates: Float64Array): Interval {
  const at = (share: number) => estimates[Math.round(share * (estimates.length - 1))] ?? value;
  return { value, low: at(tail), high: at(1 - tail) };
}
