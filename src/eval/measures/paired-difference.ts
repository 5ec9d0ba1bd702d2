import type { AnsweredQuestion, EvalArm, QuestionRecord } from "../base/run-record.js";
import { seeded } from "../base/seeded.js";
import { isSameGroup } from "./arm-summary.js";
import { isAnswered, type Measure, questionKey } from "./measured.js";

/** One question's figure in two arms. */
export interface Pair {
  readonly baseline: number;
  readonly other: number;
}

/** How far two arms lie apart, question by question. Intervals resample questions, so they say nothing of other conversations. */
export interface PairedDifference {
  /** Questions measured in both. */
  readonly n: number;
  /** Mean of other − baseline. */
  readonly difference: Interval;
  /** Sample variance of the differences; null of a single question. */
  readonly variance: number | null;
  /** Median of other ÷ baseline, over questions where the baseline is over 0; null where there is none, or where it was not asked for. */
  readonly ratio: Interval | null;
}

/** How pairs are compared. */
export interface PairedDifferenceOptions extends BootstrapOptions {
  /** Whether ratios mean something: of amounts, not of scores. */
  readonly hasRatio: boolean;
}

/** Differences with 95 % bootstrap intervals; the same seed gives the same ones. Null of no pairs. */
export function pairedDifference(pairs: readonly Pair[], options: PairedDifferenceOptions): PairedDifference | null {
  const differences = pairs.map(({ baseline, other }) => other - baseline);
  const difference = bootstrapMean(differences, options);
  if (difference === null) return null;
  const found = { n: pairs.length, difference, variance: sampleVariance(differences, difference.value) };
  if (!options.hasRatio) return { ...found, ratio: null };
  const ratios = pairs.filter(({ baseline }) => baseline > 0).map(({ baseline, other }) => other / baseline);
  return { ...found, ratio: bootstrapMedian(ratios, options) };
}

function sampleVariance(values: readonly number[], mean: number): number | null {
  if (values.length < 2) return null;
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
}

/**
 * What both sets of records measured of the same question, in the order of the first. Questions asked to warm up in either, failed in either
 * or not measured in either are left out.
 */
export function pairsOf(
  baseline: readonly QuestionRecord[],
  other: readonly QuestionRecord[],
  measure: Measure<AnsweredQuestion>,
): Pair[] {
  const measured = (records: readonly QuestionRecord[]) =>
    records
      .filter(isAnswered)
      .filter(({ isWarmUp }) => !isWarmUp)
      .map((record) => [questionKey(record), measure(record)] as const);
  const others = new Map(measured(other));
  return measured(baseline).flatMap(([key, value]) => {
    const second = others.get(key) ?? null;
    return value === null || second === null ? [] : [{ baseline: value, other: second }];
  });
}

/** The arm that another is compared with: Mem0's README with the same layout, k and window, else the run's first. Null for that arm itself. */
export function baselineOf(arm: EvalArm, arms: readonly EvalArm[]): EvalArm | null {
  const readme = arms.find((other) => other.policy === "readme" && isSameGroup(other, arm));
  const baseline = readme ?? arms[0];
  return baseline === undefined || baseline.id === arm.id ? null : baseline;
}

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
const [LOW, HIGH] = [0.025, 0.975];

/** The mean with its percentile bootstrap interval: values are drawn with replacement, as many as there are. Null of none. */
export function bootstrapMean(values: readonly number[], options: BootstrapOptions): Interval | null {
  if (values.length === 0) return null;
  const given = Float64Array.from(values);
  const draw = seeded(options.seed);
  return interval(given.reduce((sum, value) => sum + value, 0) / given.length, options, () => {
    let sum = 0;
    for (let i = 0; i < given.length; i++) sum += given[Math.floor(draw() * given.length)] ?? 0;
    return sum / given.length;
  });
}

/** The median with its percentile bootstrap interval; of an even number of values, the mean of the two in the middle. Null of none. */
export function bootstrapMedian(values: readonly number[], options: BootstrapOptions): Interval | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const draw = seeded(options.seed);
  // A resample is counted by rank, so that it needs no sorting.
  const counts = new Uint32Array(sorted.length);
  return interval(medianByRank(sorted, counts.fill(1)), options, () => {
    counts.fill(0);
    for (let i = 0; i < sorted.length; i++) {
      const rank = Math.floor(draw() * sorted.length);
      counts[rank] = (counts[rank] ?? 0) + 1;
    }
    return medianByRank(sorted, counts);
  });
}

/**
 * A statistic of groups with its percentile bootstrap interval: groups are drawn with replacement, as many as there are. Null where the
 * statistic of all of them is; resamples of which it is null do not count.
 */
export function bootstrapGroups<G>(
  groups: readonly G[],
  statistic: (drawn: readonly G[]) => number | null,
  { seed, resamples = RESAMPLES }: BootstrapOptions,
): Interval | null {
  const value = statistic(groups);
  if (value === null) return null;
  const draw = seeded(seed);
  const estimates = Array.from({ length: resamples }, () =>
    statistic(groups.map((group) => groups[Math.floor(draw() * groups.length)] ?? group)),
  ).filter((estimate) => estimate !== null);
  return intervalOf(value, Float64Array.from(estimates).sort());
}

/** The median of sorted values, each of which stands there so many times; they are as many as there are values. */
function medianByRank(sorted: Float64Array, counts: Uint32Array): number {
  const [lower, upper] = [(sorted.length - 1) >> 1, sorted.length >> 1];
  let [seen, below] = [0, 0];
  for (let rank = 0; rank < counts.length; rank++) {
    const count = counts[rank] ?? 0;
    if (seen <= lower && lower < seen + count) below = sorted[rank] ?? 0;
    if (seen <= upper && upper < seen + count) return (below + (sorted[rank] ?? 0)) / 2;
    seen += count;
  }
  return below;
}

function interval(value: number, { resamples = RESAMPLES }: BootstrapOptions, resample: () => number): Interval {
  return intervalOf(value, Float64Array.from({ length: resamples }, resample).sort());
}

function intervalOf(value: number, estimates: Float64Array): Interval {
  const at = (share: number) => estimates[Math.round(share * (estimates.length - 1))] ?? value;
  return { value, low: at(LOW), high: at(HIGH) };
}
