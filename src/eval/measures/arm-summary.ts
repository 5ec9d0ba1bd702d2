/*
 * Figures from records: means, quantiles, ratios, paired differences with bootstrap intervals, costs at list prices.
 *
 * Enters: the records of one run, or of two.
 * Leaves: figures, each with the number of questions that it is of; null where nothing was measured.
 * Warm-ups and failures are in no figure. The same records and seed give the same figures.
 */

import { groupBy } from "../../core/text/lists.js";
import type { EvalArm, QuestionRecord, RunRecord } from "../base/run-record.js";
import { buildLabels } from "../run/arms.js";
import {
  isAnswered,
  isFailed,
  judgedRight,
  logLikelihood,
  type Measured,
  meanOf,
  quantileOf,
  ratioOf,
  uncachedTokens,
} from "./measured.js";
import { costAt, type Price, type RunCost } from "./prices.js";

/** Arms that differ in nothing but how prompts were built: those to compare with each other. */
export interface ArmGroup<A> {
  readonly title: string;
  readonly arms: readonly A[];
}

/** Groups whatever belongs to arms by layout, k and window, in their order. */
export function groupArms<A>(arms: readonly A[], armOf: (arm: A) => EvalArm): ArmGroup<A>[] {
  const groups = groupBy(arms, (arm) => {
    const { layout, k, window } = armOf(arm);
    return `${layout} ${k} ${window?.messages}`;
  });
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { layout, k, window } = armOf(first);
    const of = layout === "single" ? "Single prompts" : "Conversations";
    const cut = window === null ? "" : `, last ${window.messages} messages`;
    return [{ title: `${of}, k = ${k}${cut}`, arms: group }];
  });
}

/** Whether two arms differ in nothing but how prompts were built. */
export function isSameGroup(a: EvalArm, b: EvalArm): boolean {
  return a.layout === b.layout && a.k === b.k && a.window?.messages === b.window?.messages;
}

/** How an arm is called among those of its group. */
export function armLabel(arm: EvalArm): string {
  if (arm.policy === "readme") return "Mem0’s README";
  if (arm.policy === "last-message") return "in the last message, without memstem";
  return buildLabels(arm).join(" ");
}

/** What a set of questions came to in one arm, without those asked to warm up. Null: not measured of any of them. */
export interface QuestionsSummary {
  readonly answered: number;
  readonly failed: number;
  /** Milliseconds from the request to the first token. */
  readonly ttftP50: Measured | null;
  readonly ttftP95: Measured | null;
  /** Milliseconds to the end of the answer, and of each of its tokens after the first one. */
  readonly totalP50: Measured | null;
  readonly answerTokenMs: Measured | null;
  /** Prompts that memories of the search, or messages, were left out of, for the engine's limit, and those that began anew. */
  readonly cut: number;
  readonly freshStarts: number;
  /** Tokens per question, means. */
  readonly promptTokens: Measured | null;
  readonly cachedTokens: Measured | null;
  readonly uncachedTokens: Measured | null;
  /** Cached tokens ÷ prompt tokens, of all prompts together. */
  readonly hitRatio: Measured | null;
  /** Uncached tokens ÷ seconds to the first token, of all prompts together: what the engine took in, waiting and all. */
  readonly prefillPerSecond: Measured | null;
  /** Milliseconds, medians. */
  readonly searchMs: Measured | null;
  readonly composeMs: Measured | null;
  /** Gold evidence in the prompt ÷ gold evidence; `n` is questions that have some. */
  readonly evidenceRecall: Measured | null;
  /** References that resolve in their prompt ÷ references; `n` is questions that have some. */
  readonly referencesResolved: Measured | null;
  /** Means, from 0 to 1. */
  readonly f1: Measured | null;
  readonly bleu1: Measured | null;
  /** Mean of the right answer's, per token, in nats. */
  readonly logLikelihood: Measured | null;
  /** Answers judged right ÷ answers with a readable verdict. */
  readonly judge: Measured | null;
  /** Answers whose verdict could not be read. */
  readonly judgeUnread: number;
  readonly costs: readonly RunCost[];
}

/** One arm's figures. */
export interface ArmSummary {
  readonly arm: EvalArm;
  /** Questions asked to warm up, which are in no figure. */
  readonly warmUps: number;
  readonly overall: QuestionsSummary;
  /** By LoCoMo's category number, ascending; those that were asked. */
  readonly categories: readonly { readonly category: number; readonly summary: QuestionsSummary }[];
}

/** Every arm of a run, in the run's order, also those without records. Records of other arms are ignored. */
export function summariseArms(
  run: RunRecord,
  records: readonly QuestionRecord[],
  prices: readonly Price[],
): ArmSummary[] {
  const byArm = groupBy(records, ({ arm }) => arm);
  return run.arms.map((arm) => {
    const own = byArm.get(arm.id) ?? [];
    const measured = own.filter(({ isWarmUp }) => !isWarmUp);
    const byCategory = [...groupBy(measured, ({ category }) => category)].sort(([a], [b]) => a - b);
    return {
      arm,
      warmUps: own.length - measured.length,
      overall: summariseQuestions(measured, prices),
      categories: byCategory.map(([category, asked]) => ({ category, summary: summariseQuestions(asked, prices) })),
    };
  });
}

function summariseQuestions(records: readonly QuestionRecord[], prices: readonly Price[]): QuestionsSummary {
  const answered = records.filter(isAnswered);
  return {
    answered: answered.length,
    failed: records.filter(isFailed).length,
    ttftP50: quantileOf(answered, 0.5, ({ ttftMs }) => ttftMs),
    ttftP95: quantileOf(answered, 0.95, ({ ttftMs }) => ttftMs),
    totalP50: quantileOf(answered, 0.5, ({ totalMs }) => totalMs),
    answerTokenMs: ratioOf(
      answered,
      ({ ttftMs, totalMs }) => (ttftMs === null || totalMs === null ? null : totalMs - ttftMs),
      ({ answerTokens }) => answerTokens && answerTokens - 1,
    ),
    cut: answered.filter(({ memoriesCut, messagesCut }) => memoriesCut + messagesCut > 0).length,
    freshStarts: answered.filter(({ isFreshStart }) => isFreshStart).length,
    promptTokens: meanOf(answered, ({ promptTokens }) => promptTokens),
    cachedTokens: meanOf(answered, ({ cachedTokens }) => cachedTokens),
    uncachedTokens: meanOf(answered, uncachedTokens),
    hitRatio: ratioOf(
      answered,
      ({ cachedTokens }) => cachedTokens,
      ({ promptTokens }) => promptTokens,
    ),
    prefillPerSecond: ratioOf(answered, uncachedTokens, ({ ttftMs }) => (ttftMs === null ? null : ttftMs / 1_000)),
    searchMs: quantileOf(answered, 0.5, ({ searchMs }) => searchMs),
    composeMs: quantileOf(answered, 0.5, ({ composeMs }) => composeMs),
    evidenceRecall: ratioOf(
      answered,
      ({ evidenceInPrompt }) => evidenceInPrompt,
      ({ evidence }) => evidence,
    ),
    referencesResolved: ratioOf(
      answered,
      ({ referencesResolved }) => referencesResolved,
      ({ references }) => references,
    ),
    f1: meanOf(answered, ({ f1 }) => f1),
    bleu1: meanOf(answered, ({ bleu1 }) => bleu1),
    logLikelihood: meanOf(answered, logLikelihood),
    judge: meanOf(answered, judgedRight),
    judgeUnread: answered.filter(({ judge }) => judge !== null && judge.isCorrect === null).length,
    costs: prices.map((price) => costAt(price, answered)),
  };
}
