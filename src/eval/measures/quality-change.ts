import { groupBy } from "../../core/text/lists.js";
import type { AnsweredQuestion, EvalArm, QuestionRecord, RunRecord } from "../base/run-record.js";
import { holm } from "./holm.js";
import { judgesOfRun } from "./judge-agreement.js";
import { logLikelihood, type Measure } from "./measured.js";
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
  /** Of no difference, adjusted for all comparisons that stand beside it ({@link holm}); null where it cannot be said. */
  readonly adjustedP: number | null;
}

/** What one score says of answers. */
export interface ScoreChange {
  /** `judge`, followed by its model where there are several; `log-likelihood`, of which a point is 0.01 nats a token; `F1`, `BLEU-1`. */
  readonly score: string;
  readonly arms: readonly ArmChange[];
}

/** What a run says of answers. */
export interface QualityChange extends ScoreChange {
  readonly options: readonly OptionChange[];
  /** By category number, ascending; adjusted for all of them together. */
  readonly categories: readonly { readonly category: number; readonly arms: readonly ArmChange[] }[];
  /** By the run's other scores. */
  readonly others: readonly ScoreChange[];
}

/**
 * Compares answers by the first of a run's scores that was measured: its judges in their order, the right answer's likelihood, F1, BLEU-1. Null where answers were
 * not scored, or there is nothing to compare.
 */
export function qualityChange(
  run: Pick<RunRecord, "arms" | "seed" | "judge" | "otherJudges">,
  records: readonly QuestionRecord[],
): QualityChange | null {
  const { arms, seed } = run;
  const changesOf = (of: readonly QuestionRecord[], measure: Measure<AnsweredQuestion>) => {
    const byArm = groupBy(of, ({ arm }) => arm);
    return arms.flatMap((arm) => {
      const baseline = baselineOf(arm, arms);
      if (baseline === null) return [];
      const pairs = pairsOf(byArm.get(baseline.id) ?? [], byArm.get(arm.id) ?? [], measure);
      return [{ arm, baseline, found: pairedDifference(pairs, { seed, hasRatio: false }) }];
    });
  };
  const changed = scoresOfRun(run).flatMap(({ score, measure }) => {
    const changes = adjusted(changesOf(records, measure));
    return changes.every(({ found }) => found === null) ? [] : [{ score, measure, arms: changes }];
  });
  const [first, ...others] = changed;
  if (first === undefined) return null;
  const { score, measure, arms: changes } = first;
  const each = [...groupBy(records, ({ category }) => category)].flatMap(([category, of]) =>
    changesOf(of, measure).map((change) => ({ ...change, category })),
  );
  const categories = [...groupBy(adjusted(each), ({ category }) => category)]
    .sort(([a], [b]) => a - b)
    .map(([category, own]) => ({ category, arms: own }));
  return { score, arms: changes, options: optionChanges(arms, records, measure, seed), categories, others };
}

function adjusted<C extends Pick<ArmChange, "found">>(changes: readonly C[]): (C & { adjustedP: number | null })[] {
  const values = holm(changes.map(({ found }) => found?.p ?? null));
  return changes.map((change, at) => ({ ...change, adjustedP: values[at] ?? null }));
}

function scoresOfRun(
  run: Pick<RunRecord, "judge" | "otherJudges">,
): readonly { readonly score: string; readonly measure: Measure<AnsweredQuestion> }[] {
  const judges = judgesOfRun(run);
  return [
    ...judges.map(({ name, measure }) => ({ score: judges.length === 1 ? "judge" : `judge ${name}`, measure })),
    { score: "log-likelihood", measure: logLikelihood },
    { score: "F1", measure: ({ f1 }: AnsweredQuestion) => f1 },
    { score: "BLEU-1", measure: ({ bleu1 }: AnsweredQuestion) => bleu1 },
  ];
}
