import {
  type AnsweredQuestion,
  countedIn,
  type EvalArm,
  type QuestionRecord,
  questionKey,
} from "../base/run-record.js";
import { isSameGroup } from "./arm-summary.js";
import { type BootstrapOptions, bootstrapMean, clustersOf, type Interval, type Resampled } from "./bootstrap.js";
import type { Measure } from "./measured.js";

export interface Pair {
  readonly conversation: string;
  readonly baseline: number;
  readonly other: number;
}

/** The difference between two arms over the `n` questions measured in both. */
export interface PairedDifference {
  readonly n: number;
  readonly resampled: Resampled;
  /** Mean of other − baseline. */
  readonly difference: Interval;
  readonly differing: number;
}

/** The difference with its 95 % bootstrap interval. Null of no pairs. */
export function pairedDifference(pairs: readonly Pair[], options: BootstrapOptions = {}): PairedDifference | null {
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

/** The questions measured in both sets of records, in the order of the first. Warm-ups and failures are left out. */
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

/** The arm to compare with: Mem0's README with the same layout, k and window, else the run's first. Null for that arm itself. */
export function baselineOf(arm: EvalArm, arms: readonly EvalArm[]): EvalArm | null {
  const readme = arms.find((other) => other.policy === "readme" && isSameGroup(other, arm));
  const baseline = readme ?? arms[0];
  return baseline === undefined || baseline.id === arm.id ? null : baseline;
}
