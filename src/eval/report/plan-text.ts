import { alignedTable } from "../base/aligned-table.js";
import { dollars, percent } from "../measures/figures.js";
import type { EngineRates, RunPlan } from "../measures/run-plan.js";
import { plannedSeconds } from "../measures/run-plan.js";
import { NOT_MEASURED } from "./report-table.js";

/** A plan as text: tokens by arm, judging, money and time. */
export function planText(plan: RunPlan, rates: EngineRates): string {
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
    timeLine(plan, rates),
    "Tokens are those of o200k_base; another tokenizer counts otherwise. Cached tokens are those of an unlimited cache, so an engine may find fewer.",
  ].join("\n\n");
}

function timeLine(plan: RunPlan, rates: EngineRates): string {
  const { prompts, answers } = plannedSeconds(plan, rates);
  if (prompts === null && answers === null) {
    return "Time: not known. Give --prefill-rate and --answer-rate in tokens a second, or --rates-from with a run of the same engine.";
  }
  const parts = [
    prompts === null ? "prompts: not known (--prefill-rate)" : `prompts ${duration(prompts)}`,
    answers === null ? "answers: not known (--answer-rate)" : `answers at most ${duration(answers)}`,
  ];
  const all = prompts === null || answers === null ? "" : `; together at most ${duration(prompts + answers)}`;
  return `Time, one prompt after the other: ${parts.join(", ")}${all}. Searching and judging come on top.`;
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
