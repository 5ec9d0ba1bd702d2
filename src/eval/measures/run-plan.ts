import type { TokenCounter } from "../../core/index.js";
import { groupBy } from "../../core/text/collections.js";
import { alignedTable } from "../base/aligned-table.js";
import {
  type AnsweredQuestion,
  type AnswerScore,
  countedIn,
  type EvalArm,
  isAnswered,
  type QuestionRecord,
} from "../base/run-record.js";
import type { Question } from "../locomo/locomo-data.js";
import { comparable, isScored } from "../scores/answer-scores.js";
import { judgePrompt } from "../scores/judge.js";
import { dollars, NOT_MEASURED, type PromptCounts, percent, uncachedTokens } from "./measured.js";
import { type Price, promptUsd } from "./prices.js";

/** Tokens of a verdict in the form that the rubric names; a model that reasons aloud says more. */
const VERDICT_TOKENS = 8;

/** What one arm will send. */
export interface ArmPlan {
  readonly arm: EvalArm;
  readonly questions: number;
  readonly promptTokens: number;
  /** By a simulated prefix cache without a limit. */
  readonly cachedTokens: number;
  /** Questions that cannot be composed. */
  readonly failed: number;
}

/** What a run will use. Tokens are counted as the plan's tokenizer does. */
export interface RunPlan {
  readonly arms: readonly ArmPlan[];
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** At most. */
  readonly answerTokens: number;
  /** At most, of all judges together: answers as long as they may be. Null without a judge. */
  readonly judge: { readonly calls: number; readonly promptTokens: number; readonly answerTokens: number } | null;
  readonly costs: readonly PlannedCost[];
}

/** What a run costs at a price, in US dollars; answers and judging at most. */
export interface PlannedCost {
  readonly price: Price;
  readonly prompts: number;
  readonly answers: number;
  /** As if the judge were that model, and nothing of its prompts cached; null without a judge. */
  readonly judging: number | null;
}

export interface RunPlanOptions {
  readonly prices: readonly Price[];
  /** Most tokens of an answer; 0 where the engine answers nothing. */
  readonly maxTokens: number;
  readonly judges: number;
  readonly countTokens: TokenCounter;
  readonly scores: readonly AnswerScore[];
  /** Undefined: not known. */
  readonly questionOf: (asked: AnsweredQuestion) => Question | undefined;
}

/** What the composed prompts of a run come to, from the records of a simulated engine. */
export function planRun(
  arms: readonly EvalArm[],
  records: readonly QuestionRecord[],
  { prices, maxTokens, judges, countTokens, scores, questionOf }: RunPlanOptions,
): RunPlan {
  const sentFor = (asked: readonly AnsweredQuestion[]) =>
    asked.flatMap((one) => sentPrompts(one, scores, questionOf(one)));
  const byArm = groupBy(records, ({ arm }) => arm);
  const answered = records.filter(isAnswered);
  const sent = sentFor(answered);
  const answerTokens = answered.length * maxTokens;
  const judged = judges === 0 ? [] : answered.filter(({ gold, category }) => gold !== null && isScored(category));
  const longest = " yes".repeat(maxTokens);
  const judge =
    judges === 0
      ? null
      : {
          calls: judges * judged.length,
          promptTokens:
            judges *
            sumOf(judged, (one) =>
              countTokens(
                judgePrompt({ question: questionOf(one)?.question ?? "", gold: one.gold ?? "", answer: longest }),
              ),
            ),
          answerTokens: judges * judged.length * VERDICT_TOKENS,
        };
  return {
    arms: arms.map((arm) => {
      const own = byArm.get(arm.id) ?? [];
      const asked = own.filter(isAnswered);
      const prompts = sentFor(asked);
      return {
        arm,
        questions: asked.length,
        promptTokens: sumOf(prompts, ({ promptTokens }) => promptTokens),
        cachedTokens: sumOf(prompts, ({ cachedTokens }) => cachedTokens),
        failed: own.length - asked.length,
      };
    }),
    promptTokens: sumOf(sent, ({ promptTokens }) => promptTokens),
    cachedTokens: sumOf(sent, ({ cachedTokens }) => cachedTokens),
    answerTokens,
    judge,
    costs: prices.map((price) => ({
      price,
      prompts: MILLIONTH * sumOf(sent, (one) => promptUsd(price, one.promptTokens, one.cachedTokens)),
      answers: MILLIONTH * answerTokens * price.output,
      judging:
        judge === null ? null : MILLIONTH * (judge.promptTokens * price.input + judge.answerTokens * price.output),
    })),
  };
}

/** The prompts that a question's scores take: one to be answered, and one more, computed whole, for the right answer's likelihood. */
function sentPrompts(one: AnsweredQuestion, scores: readonly AnswerScore[], question?: Question): PromptCounts[] {
  const { promptTokens, cachedTokens } = one;
  const answered = { promptTokens: promptTokens ?? 0, cachedTokens: cachedTokens ?? 0 };
  const isLikely = scores.includes("likelihood") && question !== undefined && comparable(question) !== null;
  return [...(scores.includes("words") ? [answered] : []), ...(isLikely ? [{ ...answered, cachedTokens: 0 }] : [])];
}

const MILLIONTH = 1 / 1_000_000;

function sumOf<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0);
}

/** How fast an engine is, one prompt after the other; null: unknown. */
export interface EngineRates {
  /** Uncached prompt tokens a second. */
  readonly prefill: number | null;
  /** Answer tokens a second. */
  readonly answer: number | null;
  /** Tokens that its answers have on average. */
  readonly answerTokens: number | null;
}

/**
 * Seconds that a run will take, answers at most; `likelyAnswers`: with answers as long as those that were measured. Null where a rate is
 * unknown. Judging and searching are not in it.
 */
export function plannedSeconds(
  { promptTokens, cachedTokens, answerTokens, arms }: Omit<RunPlan, "judge" | "costs">,
  { prefill, answer, answerTokens: usual }: EngineRates,
) {
  const questions = sumOf(arms, (arm) => arm.questions);
  return {
    prompts: prefill === null ? null : (promptTokens - cachedTokens) / prefill,
    answers: answer === null ? null : answerTokens / answer,
    likelyAnswers: answer === null || usual === null ? null : Math.min(answerTokens, questions * usual) / answer,
  };
}

/**
 * How fast an engine was in another run: uncached tokens ÷ time to the first token, tries of adaptive depth in both, and further answer tokens
 * ÷ time from it to the last. A rate is null where it was not measured, as that of answers which were not streamed.
 */
export function measuredRates(records: readonly QuestionRecord[]): EngineRates {
  const asked = countedIn(records);
  const prefill = asked.flatMap((question) => {
    const [tokens, ms] = [uncachedTokens(question), question.ttftMs];
    return tokens === null || ms === null ? [] : [{ tokens, ms }];
  });
  const answers = asked.flatMap(({ answerTokens, ttftMs, totalMs }) =>
    answerTokens === null || answerTokens < 2 || ttftMs === null || totalMs === null
      ? []
      : [{ tokens: answerTokens - 1, ms: totalMs - ttftMs }],
  );
  const counted = asked.flatMap(({ answerTokens }) => answerTokens ?? []);
  return {
    prefill: perSecond(prefill),
    answer: perSecond(answers),
    answerTokens: counted.length === 0 ? null : sumOf(counted, (tokens) => tokens) / counted.length,
  };
}

function perSecond(times: readonly { readonly tokens: number; readonly ms: number }[]): number | null {
  const [tokens, ms] = [sumOf(times, (one) => one.tokens), sumOf(times, (one) => one.ms)];
  return tokens <= 0 || ms <= 0 ? null : tokens / (ms / 1_000);
}

/**
 * A plan as text: tokens by arm, judging, money and time.
 *
 * @param isSimulated whether the run's engine is, which takes no time
 */
export function planText(plan: RunPlan, rates: EngineRates, isSimulated: boolean): string {
  const { promptTokens, cachedTokens, answerTokens, judge } = plan;
  const share = (cached: number, prompt: number) => (prompt === 0 ? NOT_MEASURED : percent(cached / prompt));
  const arms = alignedTable(
    ["Arm", "Questions", "Prompt tokens", "Cached", "Share", "Uncached"],
    [
      ...plan.arms.map(({ arm, questions, promptTokens: prompt, cachedTokens: cached }) => [
        arm.id,
        counted(questions),
        counted(prompt),
        counted(cached),
        share(cached, prompt),
        counted(prompt - cached),
      ]),
      [
        "all",
        counted(plan.arms.reduce((sum, { questions }) => sum + questions, 0)),
        counted(promptTokens),
        counted(cachedTokens),
        share(cachedTokens, promptTokens),
        counted(promptTokens - cachedTokens),
      ],
    ],
  );
  const money = alignedTable(
    ["At the price of", "Prompts", "Answers, at most", "Judging, at most", "All, at most"],
    plan.costs.map(({ price, prompts, answers, judging }) => [
      `${price.provider} ${price.model}`,
      dollars(prompts),
      dollars(answers),
      judging === null ? "no judge" : dollars(judging),
      dollars(prompts + answers + (judging ?? 0)),
    ]),
  );
  const failed = plan.arms.reduce((sum, arm) => sum + arm.failed, 0);
  return [
    arms,
    `Answers: at most ${counted(answerTokens)} tokens. Judging: ${
      judge === null
        ? "no judge is named."
        : `${counted(judge.calls)} calls, at most ${counted(judge.promptTokens)} prompt tokens.`
    }${failed === 0 ? "" : ` ${failed} prompts cannot be composed.`}`,
    money,
    timeLine(plan, rates, isSimulated),
    "Tokens are those of o200k_base; another tokenizer counts otherwise. Cached tokens are those of an unlimited cache, so an engine may find fewer.",
  ].join("\n\n");
}

/** How a plan's time comes to be known. */
const HOW_TO_MEASURE =
  "the same options with --limit 5 and another --out, then plan with --rates-from that directory; or give --prefill-rate and --answer-rate, in tokens a second.";

function timeLine(plan: RunPlan, rates: EngineRates, isSimulated: boolean): string {
  const { prompts, answers, likelyAnswers } = plannedSeconds(plan, rates);
  if (prompts === null && answers === null) {
    const why = isSimulated
      ? "not known, as the engine is simulated. With --engine and --model, run "
      : "not known. Run ";
    return `Time: ${why}${HOW_TO_MEASURE}`;
  }
  const usual = rates.answerTokens === null ? "" : counted(Math.ceil(rates.answerTokens));
  const likely =
    likelyAnswers === null ? "" : ` (${duration(likelyAnswers)} if as long as those measured: ${usual} tokens each)`;
  const parts = [
    prompts === null ? "prompts: not known (--prefill-rate, or --rates-from)" : `prompts ${duration(prompts)}`,
    answers === null
      ? "answers: not known (--answer-rate, or --rates-from a run whose answers were streamed)"
      : `answers at most ${duration(answers)}${likely}`,
  ];
  const all = prompts === null || answers === null ? "" : `; together at most ${duration(prompts + answers)}`;
  const of = [
    ...(rates.prefill === null ? [] : [`${rounded(rates.prefill)} prompt tokens a second`]),
    ...(rates.answer === null ? [] : [`${rounded(rates.answer)} answer tokens a second`]),
  ];
  return `Time, one prompt after the other, at ${of.join(" and ")}: ${parts.join(", ")}${all}. Judging comes on top.`;
}

function rounded(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : counted(Math.round(rate));
}

function counted(count: number): string {
  return count.toLocaleString("en");
}

/** `2 h 05 min`, `12 min`, `40 s`. */
function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}
