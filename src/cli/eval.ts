import type { Command } from "commander";
import type { Dataset } from "../eval/base/run-record.js";
import type { EvalFactsOptions } from "./eval-facts.js";
import { withRunOptions } from "./eval-options.js";
import type { Invocation } from "./invocation.js";
import { wholeNumber } from "./option-values.js";

const KEYS = `
Keys come from the environment: MEMPREFIX_UPSTREAM_API_KEY or OPENAI_API_KEY for the engine, OPENAI_API_KEY for the judge.
Exit codes: 0 done, even if questions failed; 3 every question failed; 130 stopped.`;

const DESCRIPTIONS: Readonly<Record<Dataset, string>> = {
  locomo: "LoCoMo: load it into Mem0, search, compose, ask an engine, score, report",
  longmemeval: "LongMemEval: the same, each question with a history of its own",
};

export function addEvalCommands(program: Command, call: Invocation): void {
  const evaluate = program
    .command("eval")
    .description("measure prompts on a data set, from memory search to the report");

  for (const [dataset, description] of Object.entries(DESCRIPTIONS) as [Dataset, string][]) {
    const command = evaluate.command(dataset).description(description).addHelpText("after", KEYS);
    withRunOptions(command, dataset, async (options) => {
      const { runEvalLocomo } = await import("./eval-locomo.js");
      call.exitCode = await runEvalLocomo(options, call);
    });
  }

  evaluate
    .command("facts")
    .description("measure which value a model prefers if a fact changed or is false, on synthetic facts")
    .requiredOption("--engine <address>", "base URL of vLLM")
    .requiredOption("--model <name>", "its model")
    .option("--limit <number>", "only the first n cases", wholeNumber(1, 120), 120)
    .option("--out <file>", "JSON lines of what each case scored; a run goes on from those in it")
    .action(async (given: EvalFactsOptions) => {
      const { runEvalFacts } = await import("./eval-facts.js");
      call.exitCode = await runEvalFacts(given, call);
    });
}
