import { groupBy } from "../../core/text/collections.js";
import type { AnsweredQuestion, EvalArm, QuestionRecord, RunRecord } from "../base/run-record.js";
import { judgedRight, logLikelihood, type Measure } from "./measured.js";
import { baselineOf, type PairedDifference, pairedDifference, pairsOf } from "./paired-difference.js";

/**
 * What an interval says of a difference: it lies above 0, below 0, or holds 0. `same`: no question scored differently, so that the interval
 * is a point and says less than it seems to; see {@link mostChanged}.
 */
export type Verdict = "higher" | "lower" | "not shown" | "same";

export function verdictOf({ difference, differing }: Pick<PairedDifference, "difference" | "differing">): Verdict {
  if (differing === 0) return "same";
  if (difference.low > 0) return "higher";
  return difference.high < 0 ? "lower" : "not shown";
}

/** Share of questions that may score differently although none of n did, with 95 % confidence: the rule of three. */
export function mostChanged(n: number): number {
  return Math.min(1, 3 / n);
}

/** How an arm's answers differ from those of the arm that it is compared with; null where no question was scored in both. */
export interface ArmChange {
  readonly arm: EvalArm;
  readonly baseline: EvalArm;
  readonly found: PairedDifference | null;
}

/** What a run says of answers. */
export interface QualityChange {
  /** `judge`; `log-likelihood`, of which a point is 0.01 nats a token; or `F1`. */
  readonly score: string;
  readonly arms: readonly ArmChange[];
}

const SCORES: readonly { readonly score: string; readonly measure: Measure<AnsweredQuestion> }[] = [
  { score: "judge", measure: judgedRight },
  { score: "log-likelihood", measure: logLikelihood },
  { score: "F1", measure: ({ f1 }) => f1 },
];

/**
 * Compares answers by the first of a run's scores that was measured: the judge's verdicts, the right answer's likelihood, F1. Null where
 * answers were not scored, or there is nothing to compare.
 */
export function qualityChange(
  { arms, seed }: Pick<RunRecord, "arms" | "seed">,
  records: readonly QuestionRecord[],
): QualityChange | null {
  const byArm = groupBy(records, ({ arm }) => arm);
  for (const { score, measure } of SCORES) {
    const changes = arms.flatMap((arm): ArmChange[] => {
      const baseline = baselineOf(arm, arms);
      if (baseline === null) return [];
      const pairs = pairsOf(byArm.get(baseline.id) ?? [], byArm.get(arm.id) ?? [], measure);
      return [{ arm, baseline, found: pairedDifference(pairs, { seed }) }];
    });
    if (changes.some(({ found }) => found !== null)) return { score, arms: changes };
  }
  return null;
}
