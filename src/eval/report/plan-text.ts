import { alignedTable } from "../base/aligned-table.js";
import { dollars, percent } from "../measures/figures.js";
import type { EngineRates, RunPlan } from "../measures/run-plan.js";
import { plannedSeconds } from "../measures/run-plan.js";
import { NOT_MEASURED } from "./report-table.js";

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
