import type { AnsweredQuestion, EvalArm, QuestionRecord } from "../base/run-record.js";
import { type BootstrapOptions, bootstrapMean, bootstrapMedian, type Interval } from "./bootstrap.js";
import type { Measure } from "./measured.js";
import { isAnswered, questionKey } from "./question-measures.js";

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
  const difference = bootstrapMean(
    pairs.map(({ baseline, other }) => other - baseline),
    options,
  );
  if (difference === null) return null;
  if (!options.hasRatio) return { n: pairs.length, difference, ratio: null };
  const ratios = pairs.filter(({ baseline }) => baseline > 0).map(({ baseline, other }) => other / baseline);
  return { n: pairs.length, difference, ratio: bootstrapMedian(ratios, options) };
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

/** The arm that another is compared with: Mem0's README with the same layout and k, else the run's first. Null for that arm itself. */
export function baselineOf(arm: EvalArm, arms: readonly EvalArm[]): EvalArm | null {
  const readme = arms.find(({ policy, layout, k }) => policy === "readme" && layout === arm.layout && k === arm.k);
  const baseline = readme ?? arms[0];
  return baseline === undefined || baseline.id === arm.id ? null : baseline;
}
