import {
  type AnsweredQuestion,
  countedIn,
  type EvalArm,
  type QuestionRecord,
  questionKey,
} from "../base/run-record.js";
import { isSameGroup } from "./arm-summary.js";
import {
  type BootstrapOptions,
  bootstrapMean,
  bootstrapMedian,
  type Clusters,
  clustersOf,
  type Interval,
  type Resampled,
  studentTails,
} from "./bootstrap.js";
import {
  type Format,
  judgedRight,
  logLikelihood,
  type Measure,
  milliseconds,
  score,
  tokens,
  uncachedTokens,
} from "./measured.js";

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
  /** Sample variance of the differences; null of a single question. */
  readonly variance: number | null;
  /**
   * The variance that one question would need for questions of their own to be as precise as these: `variance` where questions are resampled, else
   * n · (variance of the mean between conversations). Null of a single question or conversation.
   */
  readonly effectiveVariance: number | null;
  /** Of no difference, by Student's test of the mean with that variance; null where it is null or 0. */
  readonly p: number | null;
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
  const conversations = pairs.map(({ conversation }) => conversation);
  const clusters = clustersOf(conversations);
  const difference = bootstrapMean(differences, options, clusters);
  if (difference === null) return null;
  const variance = sampleVariance(differences, difference.value);
  const effectiveVariance = clusters === null ? variance : clusteredVariance(differences, difference.value, clusters);
  const resampled: Resampled = {
    unit: clusters === null ? "questions" : "conversations",
    conversations: new Set(conversations).size,
  };
  const degrees = (clusters?.count ?? pairs.length) - 1;
  const p =
    effectiveVariance === null || effectiveVariance === 0
      ? null
      : studentTails(difference.value / Math.sqrt(effectiveVariance / pairs.length), degrees);
  const found = { n: pairs.length, resampled, difference, variance, effectiveVariance, p };
  if (!options.hasRatio) return { ...found, ratio: null };
  const above = pairs.filter(({ baseline }) => baseline > 0);
  const ratios = above.map(({ baseline, other }) => other / baseline);
  const ofRatios = clustersOf(above.map(({ conversation }) => conversation));
  return { ...found, ratio: bootstrapMedian(ratios, options, ofRatios) };
}

function sampleVariance(values: readonly number[], mean: number): number | null {
  if (values.length < 2) return null;
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
}

/** n · the variance of the mean, from how far conversations as a whole lie from it. */
function clusteredVariance(values: readonly number[], mean: number, { of, count }: Clusters): number | null {
  if (count < 2) return null;
  const residuals = new Float64Array(count);
  for (const [at, value] of values.entries()) {
    const cluster = of[at] ?? 0;
    residuals[cluster] = (residuals[cluster] ?? 0) + value - mean;
  }
  const squares = residuals.reduce((sum, residual) => sum + residual ** 2, 0);
  return ((count / (count - 1)) * squares) / values.length;
}

/**
 * What both sets of records measured of the same question, in the order of the first. Questions asked to warm up in either, failed in either
 * or not measured in either are left out.
 */
export function pairsOf(
  baseline: readonly QuestionRecord[],
  other: readonly QuestionRecord[],
  measure: Measure<AnsweredQuestion>,
): (Pair & { readonly question: string })[] {
  const others = new Map(countedIn(other).map((record) => [questionKey(record), measure(record)]));
  return countedIn(baseline).flatMap((record) => {
    const question = questionKey(record);
    const [first, second] = [measure(record), others.get(question) ?? null];
    if (first === null || second === null) return [];
    return [{ question, conversation: record.conversation, baseline: first, other: second }];
  });
}

/** The arm that another is compared with: Mem0's README with the same layout, k and window, else the run's first. Null for that arm itself. */
export function baselineOf(arm: EvalArm, arms: readonly EvalArm[]): EvalArm | null {
  const readme = arms.find((other) => other.policy === "readme" && isSameGroup(other, arm));
  const baseline = readme ?? arms[0];
  return baseline === undefined || baseline.id === arm.id ? null : baseline;
}

/**
 * P-values adjusted for how many there are (Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
 * Statistics 6, 1979): below 0.05 where a family of comparisons is wrong of any with 5 % at most. Nulls are not counted and stay.
 */
export function holm(values: readonly (number | null)[]): (number | null)[] {
  const order = [...values.entries()].flatMap(([at, p]) => (p === null ? [] : [{ at, p }])).sort((a, b) => a.p - b.p);
  const adjusted = values.map((): number | null => null);
  let least = 0;
  for (const [rank, { at, p }] of order.entries()) {
    least = Math.min(1, Math.max(least, (order.length - rank) * p));
    adjusted[at] = least;
  }
  return adjusted;
}

/** What arms and runs are compared in, question by question. */
export interface ComparedMeasure {
  readonly name: string;
  readonly measure: Measure<AnsweredQuestion>;
  readonly format: Format;
  /** Whether a ratio means something too: of amounts, not of scores. */
  readonly hasRatio: boolean;
}

export const COMPARED_MEASURES: readonly ComparedMeasure[] = [
  { name: "Uncached tokens", measure: uncachedTokens, format: tokens, hasRatio: true },
  { name: "TTFT ms", measure: ({ ttftMs }) => ttftMs, format: milliseconds, hasRatio: true },
  { name: "Total ms", measure: ({ totalMs }) => totalMs, format: milliseconds, hasRatio: true },
  { name: "F1", measure: ({ f1 }) => f1, format: score, hasRatio: false },
  { name: "BLEU-1", measure: ({ bleu1 }) => bleu1, format: score, hasRatio: false },
  { name: "Log-likelihood", measure: logLikelihood, format: score, hasRatio: false },
  { name: "Judge", measure: judgedRight, format: score, hasRatio: false },
];

/** One measure of two sets of records, compared; null where nothing was measured in both. */
export interface MeasuredDifference {
  readonly measure: ComparedMeasure;
  readonly found: PairedDifference | null;
}

/** Compares two sets of records of the same questions in all {@link COMPARED_MEASURES}. */
export function compareRecords(
  baseline: readonly QuestionRecord[],
  other: readonly QuestionRecord[],
  seed: number,
): MeasuredDifference[] {
  return COMPARED_MEASURES.map((measure) => {
    const pairs = pairsOf(baseline, other, measure.measure);
    return { measure, found: pairedDifference(pairs, { seed, hasRatio: measure.hasRatio }) };
  });
}
