import { readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/text/thrown.js";
import { beginRun, EvaluationError, JsonLines, readRun } from "../eval/base/run-files.js";
import { type QuestionRecord, questionKey, questionRecord, type RunRecord } from "../eval/base/run-record.js";
import { simulatedEngine } from "../eval/engine/simulated-engine.js";
import { armSalt, markOf, SALTED_FAMILIES } from "../eval/engine/upstream-engine.js";
import type { EvaluatedConversation } from "../eval/locomo/locomo-data.js";
import { RecordedSearches } from "../eval/locomo/recorded-searches.js";
import { PRICES } from "../eval/measures/prices.js";
import { type EngineRates, measuredRates, planRun, planText } from "../eval/measures/run-plan.js";
import type { RunParts } from "../eval/run/run-conversation.js";
import { openMeasuredMemprefix } from "./assemble.js";
import { pickedData } from "./eval-data.js";
import type { EvalPlanOptions } from "./eval-options.js";
import { costModel, describeRun, judgesOf, ownPrices } from "./eval-settings.js";
import { type Invocation, stopSignal } from "./invocation.js";
import { askAll, searchConversations } from "./locomo-evaluation.js";
import { countO200k, encodeO200k } from "./o200k.js";
import { withProgress } from "./progress-bar.js";

/**
 * Prints what a run will use, without asking an engine or a judge. Memories and searches are made in the run's directory, where the run finds
 * them. Throws `EvaluationError`.
 */
export async function runEvalPlan(options: EvalPlanOptions, call: Invocation): Promise<void> {
  if (options.ingest === "extract") {
    throw new EvaluationError("--ingest extract: its memories are a language model's and cannot be planned with");
  }
  const stop = stopSignal(call);
  try {
    const picked = await pickedData(options, stop.signal);
    const { conversations } = picked;
    const run = beginRun(options.out, describeRun(options, picked, call.env), true);
    const asked = recordedIn(options.out);
    const composed = await composeAll({ options, run, asked, call }, conversations, stop.signal);
    const questions = new Map(
      conversations.flatMap(({ id, asked }) =>
        asked.map(({ at, question }) => [questionKey({ conversation: id, question: at }), question]),
      ),
    );
    const plan = planRun(run.arms, composed, {
      prices: ownPrices(options) ?? PRICES,
      maxTokens: run.engine.kind === "simulated" || !options.score.includes("words") ? 0 : options.maxTokens,
      judges: run.engine.kind === "simulated" ? 0 : judgesOf(options).length,
      countTokens: countO200k,
      scores: options.score,
      questionOf: (asked) => questions.get(questionKey(asked)),
    });
    call.print(planText(plan, ratesOf(options, asked), run.engine.kind === "simulated"));
    call.print(`\nMemories and searches are in ${options.out}: \`memprefix eval locomo\` with --resume begins there.`);
  } finally {
    stop.end();
  }
}

/** What a run has asked already. */
function recordedIn(directory: string): readonly QuestionRecord[] {
  const results = new JsonLines(join(directory, "results.jsonl"), questionRecord);
  results.close();
  return results.kept;
}

interface BegunRun {
  readonly options: EvalPlanOptions;
  readonly run: RunRecord;
  readonly asked: readonly QuestionRecord[];
  readonly call: Invocation;
}

/** Composes what is left of a run, on a simulated cache. */
async function composeAll(
  { options, run, asked, call }: BegunRun,
  conversations: readonly EvaluatedConversation[],
  signal: AbortSignal,
): Promise<readonly QuestionRecord[]> {
  const cost = costModel(options);
  const searches = new RecordedSearches(options.out);
  const composed: QuestionRecord[] = [];
  try {
    const memories = await searchConversations({ options, conversations, searches, call }, signal, () => {});
    const salt = String(run.settings?.["salt"]);
    const isMarked = run.engine.kind === "url" && !SALTED_FAMILIES.has(options.engineFamily);
    const parts: RunParts = {
      arms: run.arms,
      engine: simulatedEngine(encodeO200k, {
        family: run.engine.kind === "url" ? options.engineFamily : "generic",
        markOf: (arm, conversation) => (isMarked ? markOf(armSalt(salt, arm, conversation)) : null),
      }),
      judges: [],
      countTokens: countO200k,
      openMemprefix: (now) => openMeasuredMemprefix(cost, now),
    };
    const left = conversations.reduce((sum, { asked }) => sum + asked.length, 0) * run.arms.length - asked.length;
    await withProgress(call.stderr, "composing", left, async (step) => {
      const onRecord = (record: QuestionRecord) => {
        composed.push(record);
        step();
      };
      const given = { conversations, memories, searches, recorded: asked };
      await askAll(parts, { ...given, warmUpQuestions: 0, onRecord }, signal);
    });
  } finally {
    searches.close();
  }
  return composed;
}

/** As given, else as measured in the run that is named, else as in this one before it was stopped. */
function ratesOf({ prefillRate, answerRate, ratesFrom }: EvalPlanOptions, own: readonly QuestionRecord[]): EngineRates {
  const measured = ratesFrom === undefined ? measuredRates(own) : ratesMeasuredIn(ratesFrom);
  return {
    prefill: prefillRate ?? measured.prefill,
    answer: answerRate ?? measured.answer,
    answerTokens: measured.answerTokens,
  };
}

function ratesMeasuredIn(directory: string): EngineRates {
  let rates: EngineRates;
  try {
    const text = (name: string) => readFileSync(join(directory, name), "utf8");
    rates = measuredRates(readRun(text("run.json"), text("results.jsonl")).records);
  } catch (error) {
    throw new EvaluationError(`--rates-from ${directory}: ${messageOf(error)}`);
  }
  if (rates.prefill === null && rates.answer === null) {
    throw new EvaluationError(`--rates-from ${directory}: that run measured no time, or its answers were not streamed`);
  }
  return rates;
}
