import { groupBy } from "../../core/text/collections.js";
import type { AnsweredQuestion, EvalArm, QuestionRecord, RunRecord } from "../base/run-record.js";
import { judgedRight, logLikelihood, type Measure } from "./measured.js";
import { baselineOf, type PairedDifference, pairedDifference, pairsOf } from "./paired-difference.js";

/**
 * A difference's interval is above 0, below 0, or contains 0. `same`: no question scored differently, so the interval is a point and says
 * less than it seems to; see {@link mostChanged}.
 */
export type Verdict = "higher" | "lower" | "not shown" | "same";

export function verdictOf({ difference, differing }: Pick<PairedDifference, "difference" | "differing">): Verdict {
  if (differing === 0) return "same";
  if (difference.low > 0) return "higher";
  return difference.high < 0 ? "lower" : "not shown";
}

/** Largest share of questions that may score differently although none of n did, with 95 % confidence: the rule of three. */
export function mostChanged(n: number): number {
  return Math.min(1, 3 / n);
}

/** The change of an arm's answers from its baseline's; null where no question was scored in both. */
export interface ArmChange {
  readonly arm: EvalArm;
  readonly baseline: EvalArm;
  readonly found: PairedDifference | null;
}

export interface QualityChange {
  /** `judge`; `log-likelihood`, whose point is 0.01 nats per token; or `F1`. */
  readonly score: string;
  readonly arms: readonly ArmChange[];
}

const SCORES: readonly { readonly score: string; readonly measure: Measure<AnsweredQuestion> }[] = [
  { score: "judge", measure: judgedRight },
  { score: "log-likelihood", measure: logLikelihood },
  { score: "F1", measure: ({ f1 }) => f1 },
];

/** Compares answers by the first score measured: judge, likelihood, F1. Null without scores, or with nothing to compare. */
export function qualityChange(
  { arms }: Pick<RunRecord, "arms">,
  records: readonly QuestionRecord[],
): QualityChange | null {
  const byArm = groupBy(records, ({ arm }) => arm);
  for (const { score, measure } of SCORES) {
    const changes = arms.flatMap((arm): ArmChange[] => {
      const baseline = baselineOf(arm, arms);
      if (baseline === null) return [];
      const pairs = pairsOf(byArm.get(baseline.id) ?? [], byArm.get(arm.id) ?? [], measure);
      return [{ arm, baseline, found: pairedDifference(pairs) }];
    });
    if (changes.some(({ found }) => found !== null)) return { score, arms: changes };
  }
  return null;
}
