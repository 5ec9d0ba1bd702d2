/*
 * Figures from records: means, quantiles, ratios, paired differences with bootstrap intervals.
 *
 * Enters: the records of one run, or of two.
 * Leaves: figures, each with its number of questions; null: not measured. Warm-ups and failures count in none. The same records and seed give
 * the same figures.
 */

import { DEFAULT_POLICY, DEFAULT_RETENTION } from "../../core/index.js";
import { groupBy } from "../../core/text/collections.js";
import {
  type AnsweredQuestion,
  type EvalArm,
  isAnswered,
  type QuestionRecord,
  type RunRecord,
} from "../base/run-record.js";
import { depthLabel } from "../run/arms.js";
import { judgedRight, logLikelihood, type Measure, meanOf, quantileOf, ratioOf, uncachedTokens } from "./measured.js";

/** Groups arms that differ only in how prompts were built. Conversations come first, and memprefix's defaults in each group. */
export function groupArms<A>(
  arms: readonly A[],
  armOf: (arm: A) => EvalArm,
): { readonly title: string; readonly arms: readonly A[] }[] {
  const groups = groupBy(arms, (arm) => {
    const { layout, k, window } = armOf(arm);
    return `${layout} ${k} ${window}`;
  });
  const titled = [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const [own, others] = [group.filter((arm) => isDefault(armOf(arm))), group.filter((arm) => !isDefault(armOf(arm)))];
    return [{ title: groupTitle(armOf(first)), isSingle: armOf(first).layout === "single", arms: [...own, ...others] }];
  });
  return [...titled.filter(({ isSingle }) => !isSingle), ...titled.filter(({ isSingle }) => isSingle)];
}

function groupTitle({ layout, k, window }: EvalArm): string {
  const of = layout === "single" ? "Single prompts" : "Conversations";
  const cut = window === null ? "" : `, last ${window} messages`;
  return `${of}, k = ${k}${cut}`;
}

export function isSameGroup(a: EvalArm, b: EvalArm): boolean {
  return a.layout === b.layout && a.k === b.k && a.window === b.window;
}

/** Whether an arm is memprefix with its defaults. */
function isDefault({ policy, retention, annotations, depth }: EvalArm): boolean {
  const isPlain = annotations === null && depth === null;
  return isPlain && policy === DEFAULT_POLICY && (retention === null || retention === DEFAULT_RETENTION);
}

export function armLabel(arm: EvalArm): string {
  const { policy, retention, annotations, depth } = arm;
  if (policy === "readme") return "Mem0’s README";
  if (policy === "last-message") return "by hand, in the last message";
  if (isDefault(arm)) return "memprefix, defaults";
  return [
    `memprefix, ${policy}`,
    ...(retention === null ? [] : [`retention ${retention}`]),
    ...(annotations === null ? [] : [annotations === "none" ? "no annotations" : `annotations ${annotations}`]),
    ...depthLabel(depth),
  ].join(", ");
}

export function armTitle(arm: EvalArm): string {
  return `${groupTitle(arm)}: ${armLabel(arm)}`;
}

export interface ArmSummary {
  readonly arm: EvalArm;
  /** Warm-up questions, which count in no figure. */
  readonly warmUps: number;
  readonly overall: QuestionsSummary;
  /** Ascending category numbers. */
  readonly categories: readonly { readonly category: number; readonly summary: QuestionsSummary }[];
}

/** Every arm of a run, in its order, also those without records. Ignores records of other arms. */
export function summariseArms(run: RunRecord, records: readonly QuestionRecord[]): ArmSummary[] {
  const byArm = groupBy(records, ({ arm }) => arm);
  return run.arms.map((arm) => {
    const own = byArm.get(arm.id) ?? [];
    const measured = own.filter(({ isWarmUp }) => !isWarmUp);
    const byCategory = [...groupBy(measured, ({ category }) => category)].sort(([a], [b]) => a - b);
    return {
      arm,
      warmUps: own.length - measured.length,
      overall: summariseQuestions(measured),
      categories: byCategory.map(([category, asked]) => ({ category, summary: summariseQuestions(asked) })),
    };
  });
}

/** Figures of a set of questions in one arm, without warm-ups. Null: measured of none. */
export type QuestionsSummary = ReturnType<typeof summariseQuestions>;

function summariseQuestions(records: readonly QuestionRecord[]) {
  const answered = records.filter(isAnswered);
  const mean = (measure: Measure<AnsweredQuestion>) => meanOf(answered, measure);
  const median = (measure: Measure<AnsweredQuestion>) => quantileOf(answered, 0.5, measure);
  const ratio = (part: Measure<AnsweredQuestion>, whole: Measure<AnsweredQuestion>) => ratioOf(answered, part, whole);
  return {
    answered: answered.length,
    failed: records.length - answered.length,
    /** Milliseconds from the request to the first token; below, to the answer's end. */
    ttftP50: median((one) => one.ttftMs),
    ttftP95: quantileOf(answered, 0.95, (one) => one.ttftMs),
    totalP50: median((one) => one.totalMs),
    /** Prompts cut to the engine's limit; and prompts without what the last one held. */
    cut: answered.filter(({ memoriesCut, messagesCut }) => memoriesCut + messagesCut > 0).length,
    freshStarts: answered.filter(({ isFreshStart }) => isFreshStart).length,
    /** Mean tokens per question. */
    promptTokens: mean((one) => one.promptTokens),
    cachedTokens: mean((one) => one.cachedTokens),
    uncachedTokens: mean(uncachedTokens),
    /** Over all prompts together. */
    hitRatio: ratio(
      (one) => one.cachedTokens,
      (one) => one.promptTokens,
    ),
    /** Adaptive depth, means: memories per prompt, tries, and the share that was sure. */
    memoriesGiven: mean(({ depth }) => depth?.given ?? null),
    tries: mean(({ depth }) => depth?.probes.length ?? null),
    sure: mean(({ depth }) => depth && Number(depth.outcome === "sure")),
    searchMs: median((one) => one.searchMs),
    composeMs: median((one) => one.composeMs),
    /** Gold evidence in the prompt ÷ gold evidence; `n`: questions with any. */
    evidenceRecall: ratio(
      (one) => one.evidenceInPrompt,
      (one) => one.evidence,
    ),
    /** Means from 0 to 1; likelihoods in nats per token. */
    f1: mean((one) => one.f1),
    logLikelihood: mean(logLikelihood),
    /** Right answers ÷ answers with a readable verdict; and answers without one. */
    judge: mean(judgedRight),
    judgeUnread: answered.filter(({ judge }) => judge !== null && judge.isCorrect === null).length,
  };
}
