import { groupBy } from "../../core/text/collections.js";
import type { AnsweredQuestion, EvalArm, QuestionRecord, RunRecord } from "../base/run-record.js";
import { budgetLabel, depthLabel } from "../run/arms.js";
import { judgedRight, logLikelihood, type Measure } from "./measured.js";
import { baselineOf, holm, type Pair, type PairedDifference, pairedDifference, pairsOf } from "./paired-difference.js";

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
  /** `judge`; `log-likelihood`, of which a point is 0.01 nats a token; `F1`, `BLEU-1`. */
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
 * Compares answers by the first of a run's scores that was measured: its judge, the right answer's likelihood, F1, BLEU-1. Null where answers were
 * not scored, or there is nothing to compare.
 */
export function qualityChange(
  run: Pick<RunRecord, "arms" | "seed" | "judge">,
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

function scoresOfRun({
  judge,
}: Pick<RunRecord, "judge">): readonly { readonly score: string; readonly measure: Measure<AnsweredQuestion> }[] {
  return [
    ...(judge === null ? [] : [{ score: "judge", measure: judgedRight }]),
    { score: "log-likelihood", measure: logLikelihood },
    { score: "F1", measure: ({ f1 }: AnsweredQuestion) => f1 },
    { score: "BLEU-1", measure: ({ bleu1 }: AnsweredQuestion) => bleu1 },
  ];
}

const OPTIONS = ["order", "place", "annotations", "form", "depth"] as const;

/** One option of a run set to another value, all else alike. */
export interface OptionChange {
  readonly option: (typeof OPTIONS)[number];
  readonly from: string;
  readonly to: string;
  /** Pairs of arms that differ in this alone; a question's difference is the mean over them. */
  readonly pairsOfArms: number;
  readonly found: PairedDifference | null;
}

/** An arm by its options; what stands in `alike` is no option here, and is the same in arms that are compared. */
type ArmOptions = Readonly<Record<(typeof OPTIONS)[number] | "alike", string>> & { readonly arm: EvalArm };

/** How memories are written: Mem0's dashes, or memprefix's lines. */
const [LIST, LINES] = ["Mem0’s list", "memprefix’s lines"];
/** Prompts without adaptive depth. */
const ALL = "all memories";

/**
 * What each option of memprefix's arms does to a measure, one at a time: every value against the first that the run has, over all pairs of arms
 * that differ in nothing else. Prompts without memprefix are compared with memprefix's of the same order and place, without annotations: what is
 * left is how memories are written. A question counts once, however many pairs of arms it is in.
 */
function optionChanges(
  arms: readonly EvalArm[],
  records: readonly QuestionRecord[],
  measure: Measure<AnsweredQuestion>,
  seed: number,
): OptionChange[] {
  const known = arms.map(optionsOf);
  const byArm = groupBy(records, ({ arm }) => arm);
  return OPTIONS.flatMap((option) => {
    const compared = option === "form" ? known : known.filter(({ form }) => form !== LIST);
    const others = OPTIONS.filter((name) => name !== option);
    const groups = [
      ...groupBy(compared, (arm) => JSON.stringify([arm.alike, ...others.map((name) => arm[name])])).values(),
    ];
    const [from, ...values] = new Set(valuesOf(option, compared));
    if (from === undefined) return [];
    return values.flatMap((to): OptionChange[] => {
      const pairs = groups.flatMap((group) => {
        const [before, after] = [from, to].map((value) => group.find((arm) => arm[option] === value)?.arm);
        if (before === undefined || after === undefined) return [];
        return [pairsOf(byArm.get(before.id) ?? [], byArm.get(after.id) ?? [], measure)];
      });
      if (pairs.length === 0) return [];
      const found = pairedDifference(meanDifferences(pairs), { seed, hasRatio: false });
      return [{ option, from, to, pairsOfArms: pairs.length, found }];
    });
  });
}

function valuesOf(option: (typeof OPTIONS)[number], arms: readonly ArmOptions[]): string[] {
  const values = arms.map((arm) => arm[option]);
  return option === "form" ? values.toSorted() : values;
}

function optionsOf(arm: EvalArm): ArmOptions {
  const { layout, k, policy, retention, window, annotations, depth, ...budget } = arm;
  // A window of which memprefix makes nothing is sent as it is.
  const alike = JSON.stringify([layout, k, window && { ...window, history: window.history ?? "exact" }]);
  if (policy === "readme" || policy === "last-message") {
    const own = layout === "single" ? "turn" : "newest question";
    return {
      arm,
      alike,
      order: "retrieval",
      place: policy === "readme" ? "system prompt" : own,
      annotations: "none",
      form: LIST,
      depth: ALL,
    };
  }
  const isPlain = policy === "retrieval" && (retention === null || retention === "ephemeral");
  return {
    arm,
    alike,
    order: [policy, ...budgetLabel(budget)].join(" "),
    place: placeOf(retention),
    // The search's own order has no annotation where nothing stands earlier.
    annotations: isPlain && annotations === null ? "none" : (annotations ?? "default"),
    form: LINES,
    depth: depthLabel(depth).join(" ") || ALL,
  };
}

function placeOf(retention: EvalArm["retention"]): string {
  if (retention === null) return "turn";
  return retention === "ephemeral" ? "newest question" : `turn, ${retention}`;
}

/** Each question's mean difference over pairs of arms, as a pair with 0. */
function meanDifferences(pairsOfArms: readonly ReturnType<typeof pairsOf>[]): Pair[] {
  const sums = new Map<string, { conversation: string; sum: number; n: number }>();
  for (const { question, conversation, baseline, other } of pairsOfArms.flat()) {
    const { sum, n } = sums.get(question) ?? { sum: 0, n: 0 };
    sums.set(question, { conversation, sum: sum + other - baseline, n: n + 1 });
  }
  return [...sums.values()].map(({ conversation, sum, n }) => ({ conversation, baseline: 0, other: sum / n }));
}
