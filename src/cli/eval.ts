import type { Command } from "commander";
import type { Dataset } from "../eval/base/run-record.js";
import { type GivenRunOptions, runOptions, withRunOptions } from "./eval-options.js";
import type { Invocation } from "./invocation.js";

const KEYS = `
Keys come from the environment: MEMPREFIX_UPSTREAM_API_KEY or OPENAI_API_KEY for the engine, OPENAI_API_KEY for the judge.
Exit codes: 0 done, failed questions being counted in the report; 3 every question failed; 130 stopped.`;

const DESCRIPTIONS: Readonly<Record<Dataset, string>> = {
  locomo: "LoCoMo: load it into Mem0, search, compose, ask an engine, score, report",
  longmemeval: "LongMemEval: the same, each question with a history of its own",
};

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
}
