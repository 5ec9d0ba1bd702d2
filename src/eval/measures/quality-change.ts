import type { EvalArm, QuestionRecord } from "../base/run-record.js";
import { COMPARED_MEASURES, type ComparedMeasure } from "./compared-measures.js";
import { type OptionChange, optionChanges } from "./option-changes.js";
import { baselineOf, type PairedDifference, pairedDifference, pairsOf } from "./paired-difference.js";

/**
 * What an interval says of a difference: it lies above 0, below 0, or holds 0. `same`: no question scored differently, so that the interval
 * is a point and says less than it seems to; see {@link mostChanged}.
 */
export type Verdict = "higher" | "lower" | "not shown" | "same";

export function verdictOf({ difference, variance }: Pick<PairedDifference, "difference" | "variance">): Verdict {
  if (variance === 0 && difference.value === 0) return "same";
  if (difference.low > 0) return "higher";
  return difference.high < 0 ? "lower" : "not shown";
}

/** Share of questions that may score differently although none of n did, with 95 % confidence: the rule of three. */
export function mostChanged(n: number): number {
  return Math.min(1, 3 / n);
}

/** A difference of one point is found with this probability by a two-sided test at this level. */
export const TO_SEE = { points: 1, level: 0.05, power: 0.8 } as const;
/** Normal quantiles of 1 − level ÷ 2 and of the power. */
const [BY_LEVEL, BY_POWER] = [1.959964, 0.841621];

/**
 * How many questions like these a paired comparison needs to see a difference of {@link TO_SEE}, as scores from 0 to 1, from the variance of
 * the paired differences. Null where nothing varied, or it is not known.
 */
export function questionsToSee(variance: number | null): number | null {
  if (variance === null || variance === 0) return null;
  return Math.ceil(((BY_LEVEL + BY_POWER) ** 2 * variance) / (TO_SEE.points / 100) ** 2);
}

/** How an arm's answers differ from those of the arm that it is compared with; null where no question was scored in both. */
export interface ArmChange {
  readonly arm: EvalArm;
  readonly baseline: EvalArm;
  readonly found: PairedDifference | null;
}

/** What a run says of answers. */
export interface QualityChange {
  /** The judge where there is one, else F1. */
  readonly measure: ComparedMeasure;
  readonly arms: readonly ArmChange[];
  readonly options: readonly OptionChange[];
}

/** Preferred first. */
const SCORES = ["Judge", "F1"];

/** Compares answers by the first score that the run measured; null where answers were not scored, or there is nothing to compare. */
export function qualityChange(
  arms: readonly EvalArm[],
  records: readonly QuestionRecord[],
  seed: number,
): QualityChange | null {
  for (const name of SCORES) {
    const measure = COMPARED_MEASURES.find((known) => known.name === name);
    if (measure === undefined) continue;
    const changes = arms.flatMap((arm): ArmChange[] => {
      const baseline = baselineOf(arm, arms);
      if (baseline === null) return [];
      const of = ({ id }: EvalArm) => records.filter((record) => record.arm === id);
      const pairs = pairsOf(of(baseline), of(arm), measure.measure);
      return [{ arm, baseline, found: pairedDifference(pairs, { seed, hasRatio: false }) }];
    });
    if (changes.every(({ found }) => found === null)) continue;
    return { measure, arms: changes, options: optionChanges(arms, records, measure.measure, seed) };
  }
  return null;
}
