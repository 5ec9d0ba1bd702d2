import type { TokenCounter } from "../../core/index.js";
import { groupBy } from "../../core/text/lists.js";
import type { EvalArm, QuestionRecord } from "../base/run-record.js";
import { judgePrompt } from "../scores/judge.js";
import { isAnswered } from "./measured.js";
import { type Price, promptUsd } from "./prices.js";

/** Tokens of a verdict as the rubric asks for it; a model that reasons aloud says more. */
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
  /** The question's text, by conversation and place. */
  readonly textOf: (conversation: string, question: number) => string;
}

/** What the composed prompts of a run come to, from the records of a simulated engine. */
export function planRun(
  arms: readonly EvalArm[],
  records: readonly QuestionRecord[],
  { prices, maxTokens, judges, countTokens, textOf }: RunPlanOptions,
): RunPlan {
  const byArm = groupBy(records, ({ arm }) => arm);
  const answered = records.filter(isAnswered);
  const answerTokens = answered.length * maxTokens;
  const judged = judges === 0 ? [] : answered.filter(({ gold }) => gold !== null);
  const longest = " yes".repeat(maxTokens);
  const judge =
    judges === 0
      ? null
      : {
          calls: judges * judged.length,
          promptTokens:
            judges *
            sumOf(judged, ({ conversation, question, gold }) =>
              countTokens(judgePrompt({ question: textOf(conversation, question), gold: gold ?? "", answer: longest })),
            ),
          answerTokens: judges * judged.length * VERDICT_TOKENS,
        };
  return {
    arms: arms.map((arm) => {
      const own = byArm.get(arm.id) ?? [];
      const asked = own.filter(isAnswered);
      return {
        arm,
        questions: asked.length,
        promptTokens: sumOf(asked, ({ promptTokens }) => promptTokens ?? 0),
        cachedTokens: sumOf(asked, ({ cachedTokens }) => cachedTokens ?? 0),
        failed: own.length - asked.length,
      };
    }),
    promptTokens: sumOf(answered, ({ promptTokens }) => promptTokens ?? 0),
    cachedTokens: sumOf(answered, ({ cachedTokens }) => cachedTokens ?? 0),
    answerTokens,
    judge,
    costs: prices.map((price) => ({
      price,
      prompts: MILLIONTH * sumOf(answered, (one) => promptUsd(price, one.promptTokens ?? 0, one.cachedTokens ?? 0)),
      answers: MILLIONTH * answerTokens * price.output,
      judging:
        judge === null ? null : MILLIONTH * (judge.promptTokens * price.input + judge.answerTokens * price.output),
    })),
  };
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

/** Seconds that a run will take; null where a rate is unknown. Judging and searching are not in it. */
export interface PlannedSeconds {
  readonly prompts: number | null;
  /** At most. */
  readonly answers: number | null;
  /** With answers as long as those that were measured; null where none were. */
  readonly likelyAnswers: number | null;
}

export function plannedSeconds(
  { promptTokens, cachedTokens, answerTokens, arms }: Omit<RunPlan, "judge" | "costs">,
  { prefill, answer, answerTokens: usual }: EngineRates,
): PlannedSeconds {
  const questions = sumOf(arms, (arm) => arm.questions);
  return {
    prompts: prefill === null ? null : (promptTokens - cachedTokens) / prefill,
    answers: answer === null ? null : answerTokens / answer,
    likelyAnswers: answer === null || usual === null ? null : Math.min(answerTokens, questions * usual) / answer,
  };
}

/**
 * How fast an engine was in another run: uncached tokens ÷ time to the first token, and further answer tokens ÷ time from it to the last. A rate
 * is null where it was not measured, as that of answers which were not streamed.
 */
export function measuredRates(records: readonly QuestionRecord[]): EngineRates {
  const asked = records.filter(isAnswered).filter(({ isWarmUp }) => !isWarmUp);
  const prefill = asked.flatMap(({ promptTokens, cachedTokens, ttftMs }) =>
    promptTokens === null || cachedTokens === null || ttftMs === null
      ? []
      : [{ tokens: promptTokens - cachedTokens, ms: ttftMs }],
  );
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
