import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { messageOf } from "../core/text/thrown.js";
import { EvaluationError, readRun, type WrittenRun } from "../eval/base/run-files.js";
import { DATASETS, type Dataset } from "../eval/base/run-record.js";
import { type GivenRunOptions, type PlanRates, runOptions, withRateOptions, withRunOptions } from "./eval-options.js";
import type { Invocation } from "./invocation.js";

const KEYS = `
Keys come from the environment: MEMPREFIX_UPSTREAM_API_KEY or OPENAI_API_KEY for the engine, OPENAI_API_KEY for the judge and for extraction.
Exit codes: 0 done, failed questions being counted in the report; 3 every question failed; 130 stopped.`;

const DESCRIPTIONS: Readonly<Record<Dataset, string>> = {
  locomo: "LoCoMo: load it into Mem0, search, compose, ask an engine, score, report",
  longmemeval: "LongMemEval: the same, each question with a history of its own",
};

/** Adds `memprefix eval` and its subcommands. */
export function addEvalCommands(program: Command, call: Invocation): void {
  const evaluate = program
    .command("eval")
    .description("measure prompts on a data set, from memory search to the report");

  for (const [dataset, description] of Object.entries(DESCRIPTIONS) as [Dataset, string][]) {
    withRunOptions(evaluate.command(dataset).description(description))
      .addHelpText("after", KEYS)
      .action(async (given: GivenRunOptions) => {
        const options = runOptions(dataset, given);
        const { runEvalLocomo } = await import("./eval-locomo.js");
        call.exitCode = await runEvalLocomo(options, call);
      });
  }

  const plan = evaluate
    .command("plan")
    .description("what such a run will cost in tokens, time and money, before an engine or a judge is asked");
  withRateOptions(
    withRunOptions(plan).addOption(
      new Option("--dataset <name>", "whose data it is").choices(DATASETS).default("locomo"),
    ),
  ).action(async ({ dataset, ...given }: GivenRunOptions & PlanRates & { readonly dataset: Dataset }) => {
    const options = runOptions(dataset, given);
    const { runEvalPlan } = await import("./eval-plan.js");
    await runEvalPlan(options, call);
  });

  evaluate
    .command("compare")
    .description("compare two runs, arm by arm, question by question")
    .argument("<run-a>", "the --out of one run")
    .argument("<run-b>", "the --out of another")
    .action(async (a: string, b: string) => {
      const { compareRuns } = await import("../eval/report/compare-runs.js");
      call.print(compareRuns(writtenRun(a), writtenRun(b)));
    });
}

/** A run by what it wrote. Throws {@link EvaluationError} where it cannot be read. */
function writtenRun(directory: string): WrittenRun {
  const textOf = (name: string) => readFileSync(join(directory, name), "utf8");
  try {
    return readRun(textOf("run.json"), textOf("results.jsonl"));
  } catch (error) {
    throw new EvaluationError(error instanceof EvaluationError ? `${directory}: ${error.message}` : messageOf(error));
  }
}
