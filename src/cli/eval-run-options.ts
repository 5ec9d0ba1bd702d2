import { type Command, InvalidArgumentError, Option } from "commander";
import { POLICY_NAMES } from "../core/compose/policies.js";
import { HISTORY_NAMES } from "../core/conversation/epoch.js";
import { RETENTION_NAMES } from "../core/conversation/retention.js";
import { ENGINE_NAMES } from "../engines/adapters/engine-adapter.js";
import { LONGMEMEVAL_TYPES } from "../eval/base/question-types.js";
import { ANNOTATION_KINDS, ANNOTATION_WORDINGS } from "../eval/base/run-record.js";
import { ARM_PLACES } from "../eval/run/arms.js";
import { list, oneOf, ratio } from "./option-values.js";
import { HISTORY_RATIO, WINDOW_HISTORIES } from "./window-options.js";

const LAYOUTS = ["single", "conversation"] as const;
const POLICIES = ["readme", "last-message", ...POLICY_NAMES] as const;
const DEFAULT_POLICIES = ["readme", "retrieval", "context-pilot", "prefix-exact", "carry-over"] as const;
const INGESTS = ["observations", "turns", "extract"] as const;

/** Adds the options of a run: its data, what is compared, the engine and the scores. */
export function withRunOptions(command: Command): Command {
  return command
    .requiredOption("--data <file>", "a file in the data set's format")
    .requiredOption("--out <directory>", "for report.html, report.md, results.jsonl, run.json; must be empty")
    .option("--conversations <ids>", "which, separated by commas (default: all)", list(identifier))
    .option("--k <numbers>", "memories per question; one arm for each", list(wholeNumber(1, 1_000)), [20, 100])
    .option("--layout <names>", `how questions are asked: ${LAYOUTS.join(", ")}`, list(oneOf(LAYOUTS)), ["single"])
    .option("--policies <names>", `how prompts are built: ${POLICIES.join(", ")}`, list(oneOf(POLICIES)), [
      ...DEFAULT_POLICIES,
    ])
    .option(
      "--place <names>",
      `where memstem's memories stand: ${ARM_PLACES.join(", ")} (docs/evaluation.md)`,
      list(oneOf(ARM_PLACES)),
      ["turn"],
    )
    .option(
      "--annotations <names>",
      `what is said of memories: ${ANNOTATION_KINDS.join(", ")}; one arm for each (default: memstem's)`,
      list(oneOf(ANNOTATION_KINDS)),
    )
    .option(
      "--annotation-top <numbers>",
      "most labels of an annotation: numbers, all, auto (default: auto)",
      list(labels),
    )
    .option(
      "--annotation-wording <names>",
      `whose sentences: ${ANNOTATION_WORDINGS.join(", ")} (default: memstem)`,
      list(oneOf(ANNOTATION_WORDINGS)),
    )
    .option(
      "--budget-ratio <numbers>",
      "most memory tokens of carry-over over all prompts so far, as a multiple of those retrieved; one arm for each",
      list(ratio),
      [1.5],
    )
    .addOption(
      new Option("--budget-each <numbers>", "the same bound for every single prompt instead")
        .argParser(list(ratio))
        .conflicts("budgetRatio"),
    )
    .option(
      "--retention <names>",
      `what later prompts of a conversation keep: ${RETENTION_NAMES.join(", ")}`,
      list(oneOf(RETENTION_NAMES)),
      ["keep"],
    )
    .option(
      "--window <numbers>",
      "last messages of a conversation that are sent, the question among them; one arm for each (default: all)",
      list(wholeNumber(1, 10_000)),
    )
    .option(
      "--history <names>",
      `what memstem makes of a window: ${HISTORY_NAMES.join(", ")} (default: ${WINDOW_HISTORIES.join(",")})`,
      list(oneOf(HISTORY_NAMES)),
    )
    .option("--history-ratio <number>", HISTORY_RATIO, ratio)
    .option(
      "--engine <name>",
      "simulated, embedded, or the address of an OpenAI-compatible API as http://127.0.0.1:8000/v1",
      "simulated",
    )
    .option("--model <name>", "the API's model name; for embedded a GGUF file, random-23m or random-135m")
    .addOption(
      new Option("--engine-family <name>", "engine family: the form of prompts and usage")
        .choices(ENGINE_NAMES)
        .default("generic"),
    )
    .option(
      "--engine-slots <number>",
      "slots of an embedded engine, for each arm of single prompts",
      wholeNumber(1, 256),
      4,
    )
    .option("--context <tokens>", "context of an embedded engine: prompt and answer", wholeNumber(16, 16_777_216))
    .option("--threads <number>", "threads of an embedded engine", wholeNumber(1, 1_024))
    .option("--cost <model>", "cost model for --retention auto, as MEMSTEM_COST (default: cpu for embedded, else gpu)")
    .option("--max-tokens <number>", "most tokens of an answer", wholeNumber(1, 100_000), 64)
    .option(
      "--timeout-ms <number>",
      "time-out for the first byte of engine, judge and extraction",
      wholeNumber(1, 3_600_000),
      600_000,
    )
    .option(
      "--warm-up <number>",
      "first questions of every arm, left out of all figures (default: 1; 0 for simulated)",
      wholeNumber(0, 1_000),
    )
    .option("--no-scores", "do not score answers: for an engine with random weights")
    .option(
      "--judge <addresses>",
      "OpenAI-compatible APIs that judge answers: one for all models, or one for each (default: none)",
      listWithRepeats,
    )
    .option("--judge-model <names>", "their models; the first one's verdicts are the report's", listWithRepeats)
    .option("--exclude <file>", "leave out the questions that a file lists, as those whose labels are wrong")
    .addOption(
      new Option(
        "--ingest <what>",
        "what Mem0 ingests: LoCoMo's extracted facts, every turn, or turns for its language model to extract from (default: observations; turns for LongMemEval)",
      ).choices(INGESTS),
    )
    .option("--no-times", "leave out the session's time, which each memory is given as in Mem0's own evaluation")
    .option("--extract-url <address>", "the OpenAI-compatible API that Mem0 extracts with")
    .option("--extract-model <name>", "that API's model name")
    .option(
      "--categories <numbers>",
      "LoCoMo's categories; 5 is adversarial and not scored (default: 1,2,3,4)",
      list(wholeNumber(1, 5)),
    )
    .option(
      "--types <names>",
      `LongMemEval's question types: ${LONGMEMEVAL_TYPES.join(", ")} (default: all)`,
      list(oneOf(LONGMEMEVAL_TYPES)),
    )
    .option("--limit <number>", "only the first n questions, of each conversation of LoCoMo", wholeNumber(1, 100_000))
    .option(
      "--seed <number>",
      "seed of the bootstrap intervals; questions keep the file's order",
      wholeNumber(0, 4_294_967_295),
      1,
    )
    .option("--prices <file>", "list prices for the report (default: built in)")
    .option("--resume", "resume the run in --out")
    .option("--download [address]", "first fetch the public file into --data, if it is missing");
}

function labels(text: string): number | "all" | "auto" {
  return text === "all" || text === "auto" ? text : wholeNumber(1, 100)(text);
}

function listWithRepeats(value: string): string[] {
  return value.split(",").map((text) => identifier(text.trim()));
}

function identifier(text: string): string {
  if (text === "") throw new InvalidArgumentError("must be ids separated by commas");
  return text;
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < least || number > most)
      throw new InvalidArgumentError(`must be ${least} to ${most}`);
    return number;
  };
}
