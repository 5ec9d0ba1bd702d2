import { groupBy } from "../../core/text/lists.js";
import type { AnsweredQuestion, EvalArm, QuestionRecord } from "../base/run-record.js";
import { annotationsLabel, budgetLabel } from "../run/arms.js";
import { isAnswered, type Measure, questionKey } from "./measured.js";
import { type Pair, type PairedDifference, pairedDifference } from "./paired-difference.js";

const OPTIONS = ["order", "place", "annotations", "form"] as const;

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
interface ArmOptions {
  readonly arm: EvalArm;
  readonly alike: string;
  readonly order: string;
  readonly place: string;
  readonly annotations: string;
  readonly form: string;
}

/** How memories are written: Mem0's dashes, or memstem's lines, in whatever form. */
const [LIST, LINES] = ["Mem0’s list", "memstem’s lines"];

/**
 * What each option of memstem's arms does to a measure, one at a time: every value against the first that the run has, over all pairs of arms
 * that differ in nothing else. Prompts without memstem are compared with memstem's of the same order and place, without annotations: what is
 * left is how memories are written. A question counts once, however many pairs of arms it is in.
 */
export function optionChanges(
  arms: readonly EvalArm[],
  records: readonly QuestionRecord[],
  measure: Measure<AnsweredQuestion>,
  seed: number,
): OptionChange[] {
  const known = arms.map(optionsOf);
  const scores = scoresOf(records, measure);
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
        return before === undefined || after === undefined ? [] : [{ before, after }];
      });
      if (pairs.length === 0) return [];
      const differences = meanDifferences(pairs, scores);
      return [
        {
          option,
          from,
          to,
          pairsOfArms: pairs.length,
          found: pairedDifference(differences, { seed, hasRatio: false }),
        },
      ];
    });
  });
}

function valuesOf(option: (typeof OPTIONS)[number], arms: readonly ArmOptions[]): string[] {
  const values = arms.map((arm) => arm[option]);
  return option === "form" ? values.toSorted() : values;
}

function optionsOf(arm: EvalArm): ArmOptions {
  const { layout, k, policy, retention, window, place, annotations, form, ...budget } = arm;
  // A window of which memstem makes nothing is sent as it is.
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
    };
  }
  const isPlain = policy === "retrieval" && (retention === null || retention === "ephemeral");
  return {
    arm,
    alike,
    order: [policy, ...budgetLabel(budget)].join(" "),
    place: place === "system" ? "system prompt" : placeOf(retention),
    // The search's own order has no annotation where nothing stands earlier.
    annotations: isPlain ? "none" : annotationsLabel(annotations).join(" ").replace("annotations=", "") || "default",
    form: form === null ? LINES : `${LINES} as ${form}`,
  };
}

function placeOf(retention: EvalArm["retention"]): string {
  if (retention === null) return "turn";
  return retention === "ephemeral" ? "newest question" : `turn, ${retention}`;
}

/** A question's score. */
interface Scored {
  readonly conversation: string;
  readonly value: number;
}

/** Scores by arm, then question. */
type Scores = ReadonlyMap<string, ReadonlyMap<string, Scored>>;

function scoresOf(records: readonly QuestionRecord[], measure: Measure<AnsweredQuestion>): Scores {
  const scores = new Map<string, Map<string, Scored>>();
  for (const record of records) {
    if (!isAnswered(record) || record.isWarmUp) continue;
    const value = measure(record);
    if (value === null) continue;
    const own = scores.get(record.arm) ?? new Map<string, Scored>();
    scores.set(record.arm, own.set(questionKey(record), { conversation: record.conversation, value }));
  }
  return scores;
}

/** Each question's mean difference over the pairs of arms, as a pair with 0. */
function meanDifferences(
  pairs: readonly { readonly before: EvalArm; readonly after: EvalArm }[],
  scores: Scores,
): Pair[] {
  const sums = new Map<string, { conversation: string; sum: number; n: number }>();
  for (const { before, after } of pairs) {
    const others = scores.get(after.id);
    for (const [question, { conversation, value }] of scores.get(before.id) ?? []) {
      const other = others?.get(question);
      if (other === undefined) continue;
      const { sum, n } = sums.get(question) ?? { sum: 0, n: 0 };
      sums.set(question, { conversation, sum: sum + other.value - value, n: n + 1 });
    }
  }
  return [...sums.values()].map(({ conversation, sum, n }) => ({ conversation, baseline: 0, other: sum / n }));
}
