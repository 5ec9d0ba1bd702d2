import {
  type AnsweredQuestion,
  countedIn,
  type EvalArm,
  type QuestionRecord,
  questionKey,
} from "../base/run-record.js";
import { isSameGroup } from "./arm-summary.js";
import { type BootstrapOptions, bootstrapMean, clustersOf, type Interval, type Resampled } from "./bootstrap.js";
import { type Format, type Measure, milliseconds, tokens, uncachedTokens } from "./measured.js";

/** One question's figure in two arms. */
export interface Pair {
  /** The conversation that the question is of. */
  readonly conversation: string;
  readonly baseline: number;
  readonly other: number;
}

/** How far two arms lie apart, question by question. */
export interface PairedDifference {
  /** Questions measured in both. */
  readonly n: number;
  /** What the intervals resample. */
  readonly resampled: Resampled;
  /** Mean of other − baseline. */
  readonly difference: Interval;
  /** Questions whose figures are not the same. */
  readonly differing: number;
}

/** The difference with its 95 % bootstrap interval; the same seed gives the same one. Null of no pairs. */
export function pairedDifference(pairs: readonly Pair[], options: BootstrapOptions): PairedDifference | null {
  const differences = pairs.map(({ baseline, other }) => other - baseline);
  const conversations = pairs.map(({ conversation }) => conversation);
  const clusters = clustersOf(conversations);
  const difference = bootstrapMean(differences, options, clusters);
  if (difference === null) return null;
  return {
    n: pairs.length,
    resampled: {
      unit: clusters === null ? "questions" : "conversations",
      conversations: new Set(conversations).size,
    },
    difference,
    differing: differences.filter((one) => one !== 0).length,
  };
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
  const others = new Map(countedIn(other).map((record) => [questionKey(record), measure(record)]));
  return countedIn(baseline).flatMap((record) => {
    const [first, second] = [measure(record), others.get(questionKey(record)) ?? null];
    if (first === null || second === null) return [];
    return [{ conversation: record.conversation, baseline: first, other: second }];
  });
}

/** The arm that another is compared with: Mem0's README with the same layout, k and window, else the run's first. Null for that arm itself. */
export function baselineOf(arm: EvalArm, arms: readonly EvalArm[]): EvalArm | null {
  const readme = arms.find((other) => other.policy === "readme" && isSameGroup(other, arm));
  const baseline = readme ?? arms[0];
  return baseline === undefined || baseline.id === arm.id ? null : baseline;
}

/** What arms are compared in beside answers, question by question. */
export interface ComparedMeasure {
  readonly name: string;
  readonly measure: Measure<AnsweredQuestion>;
  readonly format: Format;
}

export const COMPARED_MEASURES: readonly ComparedMeasure[] = [
  { name: "Uncached tokens", measure: uncachedTokens, format: tokens },
  { name: "TTFT ms", measure: ({ ttftMs }) => ttftMs, format: milliseconds },
  { name: "Total ms", measure: ({ totalMs }) => totalMs, format: milliseconds },
];
