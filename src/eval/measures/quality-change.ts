import { groupBy } from "../../core/text/lists.js";
import type { AnsweredQuestion, EvalArm, QuestionRecord, RunRecord } from "../base/run-record.js";
import { judgesOfRun } from "./judge-agreement.js";
import type { Measure } from "./measured.js";
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
 * How many questions like these, as many of each conversation, a paired comparison needs to see a difference of {@link TO_SEE}, as scores from
 * 0 to 1, from the effective variance of the paired differences. Null where nothing varied, or it is not known.
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

/** What one score says of answers. */
export interface ScoreChange {
  /** `judge`, followed by its model where there are several; `F1`, `BLEU-1`. */
  readonly score: string;
  readonly arms: readonly ArmChange[];
}

/** What a run says of answers. */
export interface QualityChange extends ScoreChange {
  readonly options: readonly OptionChange[];
  /** By the run's other scores. */
  readonly others: readonly ScoreChange[];
}

/**
 * Compares answers by the first of a run's scores that was measured: its judges in their order, then F1, then BLEU-1. Null where answers were
 * not scored, or there is nothing to compare.
 */
export function qualityChange(
  run: Pick<RunRecord, "arms" | "seed" | "judge" | "otherJudges">,
  records: readonly QuestionRecord[],
): QualityChange | null {
  const { arms, seed } = run;
  const byArm = groupBy(records, ({ arm }) => arm);
  const changed = scoresOfRun(run).flatMap(({ score, measure }) => {
    const changes = arms.flatMap((arm): ArmChange[] => {
      const baseline = baselineOf(arm, arms);
      if (baseline === null) return [];
      const pairs = pairsOf(byArm.get(baseline.id) ?? [], byArm.get(arm.id) ?? [], measure);
      return [{ arm, baseline, found: pairedDifference(pairs, { seed, hasRatio: false }) }];
    });
    return changes.every(({ found }) => found === null) ? [] : [{ score, measure, arms: changes }];
  });
  const [first, ...others] = changed;
  if (first === undefined) return null;
  const { score, measure, arms: changes } = first;
  return { score, arms: changes, options: optionChanges(arms, records, measure, seed), others };
}

function scoresOfRun(
  run: Pick<RunRecord, "judge" | "otherJudges">,
): readonly { readonly score: string; readonly measure: Measure<AnsweredQuestion> }[] {
  const judges = judgesOfRun(run);
  return [
    ...judges.map(({ name, measure }) => ({ score: judges.length === 1 ? "judge" : `judge ${name}`, measure })),
    { score: "F1", measure: ({ f1 }: AnsweredQuestion) => f1 },
    { score: "BLEU-1", measure: ({ bleu1 }: AnsweredQuestion) => bleu1 },
  ];
}
