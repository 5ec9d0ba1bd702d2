import { type Command, InvalidArgumentError, Option } from "commander";
import { RETENTION_NAMES } from "../core/conversation/retention.js";
import { POLICY_NAMES } from "../core/ordering/ordering.js";
import { ENGINE_NAMES } from "../engines/adapters/engine-adapter.js";
import type { EvalLocomoOptions } from "./eval-options.js";
import { ratio } from "./option-values.js";

const LAYOUTS = ["single", "conversation"] as const;
const POLICIES = ["readme", ...POLICY_NAMES] as const;
const DEFAULT_POLICIES = ["readme", "retrieval", "context-pilot", "prefix-exact", "carry-over"] as const;
const INGESTS = ["observations", "turns", "extract"] as const;

const KEYS = `
Keys come from the environment: MEMSTEM_UPSTREAM_API_KEY or OPENAI_API_KEY for the engine, OPENAI_API_KEY for the judge and for extraction.
Ends with 0 when it is done, with failed questions counted in the report; with 3 when every question failed; with 130 when it was stopped.`;

/** Adds `memstem eval` and what is under it. */
export function addEvalCommands(program: Command): void {
  const evaluate = program
    .command("eval")
    .description("measure prompts on a data set, from memory search to the report");

  evaluate
    .command("locomo")
    .description("LoCoMo: load it into Mem0, search, compose, ask an engine, score, report")
    .requiredOption("--data <file>", "a file in LoCoMo's format")
    .requiredOption(
      "--out <directory>",
      "where everything goes: report.html, report.md, results.jsonl, run.json; must be empty",
    )
    .option("--conversations <ids>", "which, with commas between (default: all)", list(identifier))
    .option("--k <numbers>", "memories per question; one arm for each", list(wholeNumber(1, 1_000)), [20, 100])
    .option("--layout <names>", `how questions are asked: ${LAYOUTS.join(", ")}`, list(oneOf(LAYOUTS)), ["single"])
    .option("--policies <names>", `how prompts are built: ${POLICIES.join(", ")}`, list(oneOf(POLICIES)), [
      ...DEFAULT_POLICIES,
    ])
    .option(
      "--budget-ratio <number>",
      "most memory that carry-over may send over all prompts so far, as a multiple of what was retrieved",
      ratio,
      1.5,
    )
    .addOption(
      new Option("--budget-each <number>", "instead, the same of every single prompt")
        .argParser(ratio)
        .conflicts("budgetRatio"),
    )
    .option(
      "--retention <names>",
      `what conversations keep of injected memories: ${RETENTION_NAMES.join(", ")}`,
      list(oneOf(RETENTION_NAMES)),
      ["keep"],
    )
    .option(
      "--engine <name>",
      "simulated, embedded, or the address of an OpenAI-compatible API as http://127.0.0.1:8000/v1",
      "simulated",
    )
    .option("--model <name>", "what an API calls its model; for embedded a GGUF file, random-23m or random-135m")
    .addOption(
      new Option("--engine-family <name>", "whose form prompts and usage have")
        .choices(ENGINE_NAMES)
        .default("generic"),
    )
    .option(
      "--engine-slots <number>",
      "prompts that an embedded engine keeps, for each arm of single prompts",
      wholeNumber(1, 256),
      4,
    )
    .option("--context <tokens>", "tokens of an embedded engine's prompt with its answer", wholeNumber(16, 16_777_216))
    .option("--threads <number>", "threads that an embedded engine computes with", wholeNumber(1, 1_024))
    .option("--cost <model>", "what --retention auto goes by, as MEMSTEM_COST (default: cpu for embedded, else gpu)")
    .option("--max-tokens <number>", "most tokens of an answer", wholeNumber(1, 100_000), 64)
    .option(
      "--timeout-ms <number>",
      "how long engine, judge and extraction may take to begin to answer",
      wholeNumber(1, 3_600_000),
      600_000,
    )
    .option(
      "--warm-up <number>",
      "first questions of every arm that no figure counts (default: 1; 0 for simulated)",
      wholeNumber(0, 1_000),
    )
    .option(
      "--no-scores",
      "take what the engine says for no answer, as that of random weights behind an address is none",
    )
    .option("--judge <address>", "an OpenAI-compatible API that says whether answers are right (default: none)")
    .option("--judge-model <name>", "what it calls its model")
    .addOption(
      new Option(
        "--ingest <what>",
        "what Mem0 is given: LoCoMo's extracted facts, every turn, or turns for its language model to extract from",
      )
        .choices(INGESTS)
        .default("observations"),
    )
    .option("--extract-url <address>", "the OpenAI-compatible API that Mem0 extracts with")
    .option("--extract-model <name>", "what it calls its model")
    .option(
      "--categories <numbers>",
      "LoCoMo's categories; 5 is adversarial and has no answers",
      list(wholeNumber(1, 5)),
      [1, 2, 3, 4],
    )
    .option("--limit <number>", "first so many questions of each conversation only", wholeNumber(1, 100_000))
    .option(
      "--seed <number>",
      "of the bootstrap intervals, and of nothing else: questions come in the file's order",
      wholeNumber(0, 4_294_967_295),
      1,
    )
    .option("--prices <file>", "prices for the report, instead of those that come with memstem")
    .option("--resume", "go on with the run in --out, where it was stopped or killed")
    .option("--download [address]", "fetch LoCoMo's published file into --data first, where there is none yet")
    .addHelpText("after", KEYS)
    .action(async (options: EvalLocomoOptions) => {
      const { runEvalLocomo } = await import("./eval-locomo.js");
      process.exitCode = await runEvalLocomo(options, (line) => process.stdout.write(`${line}\n`));
    });

  evaluate
    .command("compare")
    .description("compare two runs, arm by arm, question by question")
    .argument("<run-a>", "the --out of one run")
    .argument("<run-b>", "the --out of another")
    .action(async (a: string, b: string) => {
      const { runEvalCompare } = await import("./eval-compare.js");
      runEvalCompare(a, b, (line) => process.stdout.write(`${line}\n`));
    });
}

/** Reads things with commas between, each once. */
function list<T>(item: (text: string) => T): (value: string) => T[] {
  return (value) => [...new Set(value.split(",").map((text) => item(text.trim())))];
}

function identifier(text: string): string {
  if (text === "") throw new InvalidArgumentError("must be ids with commas between");
  return text;
}

function oneOf<const T extends string>(names: readonly T[]): (text: string) => T {
  return (text) => {
    const name = names.find((known) => known === text);
    if (name === undefined) throw new InvalidArgumentError(`Allowed choices are ${names.join(", ")}.`);
    return name;
  };
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < least || number > most)
      throw new InvalidArgumentError(`must be ${least} to ${most}`);
    return number;
  };
}
