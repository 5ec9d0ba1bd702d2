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

/** Tokens a second of the engine, one prompt after the other; null: unknown. */
export interface EngineRates {
  /** Uncached prompt tokens. */
  readonly prefill: number | null;
  readonly answer: number | null;
}

/** Seconds that a run's prompts and its answers, at most, will take; null where the rate is unknown. Judging and searching are not in it. */
export function plannedSeconds(
  { promptTokens, cachedTokens, answerTokens }: Pick<RunPlan, "promptTokens" | "cachedTokens" | "answerTokens">,
  { prefill, answer }: EngineRates,
): { readonly prompts: number | null; readonly answers: number | null } {
  return {
    prompts: prefill === null ? null : (promptTokens - cachedTokens) / prefill,
    answers: answer === null ? null : answerTokens / answer,
  };
}

/** The rate at which an engine took in prompts in another run: uncached tokens ÷ time to the first token. Null where it was not measured. */
export function measuredPrefill(records: readonly QuestionRecord[]): number | null {
  let [tokens, seconds] = [0, 0];
  for (const record of records) {
    if (!isAnswered(record) || record.isWarmUp) continue;
    const { promptTokens, cachedTokens, ttftMs } = record;
    if (promptTokens === null || cachedTokens === null || ttftMs === null) continue;
    tokens += promptTokens - cachedTokens;
    seconds += ttftMs / 1_000;
  }
  return seconds === 0 || tokens === 0 ? null : tokens / seconds;
}
