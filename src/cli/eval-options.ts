import { type Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_POLICY, DEFAULT_RETENTION, RETENTION_NAMES, type RetentionName } from "../core/index.js";
import { ENGINE_NAMES, type EngineName } from "../engines/adapters/engine-adapter.js";
import {
  ANSWER_SCORES,
  type AnswerScore,
  ARM_ANNOTATIONS,
  ARM_POLICIES,
  type ArmAnnotations,
  type ArmDepth,
  type Dataset,
  HAND_BUILT,
  INGESTS,
  type Ingest,
  LONGMEMEVAL_TYPES,
  typeNumber,
} from "../eval/base/run-record.js";
import type { ArmLayout, ArmPolicy } from "../eval/run/arms.js";
import { DEFAULT_TOP_K } from "../service/compose/compose-request.js";
import { list, oneOf, positiveNumber, wholeNumber } from "./option-values.js";

/** Options of `memprefix eval locomo` and `memprefix eval longmemeval`: the data, the comparison, the engine and the scores. */
export interface EvalLocomoOptions extends OptionsOfDataset {
  readonly dataset: Dataset;
  readonly data: string;
  readonly out: string;
  readonly conversations?: readonly string[];
  readonly k: readonly number[];
  readonly policies: readonly ArmPolicy[];
  readonly annotations: readonly (ArmAnnotations | "default")[];
  readonly adaptiveDepth?: readonly (ArmDepth | null)[];
  readonly retention: readonly RetentionName[];
  readonly window?: readonly number[];
  readonly engine: string;
  readonly model?: string;
  readonly engineFamily: EngineName;
  readonly maxTokens: number;
  readonly warmUp?: number;
  readonly score: readonly AnswerScore[];
  readonly judge?: string;
  readonly judgeModel?: string;
  readonly times: boolean;
  readonly limit?: number;
  readonly resume?: true;
}

/** Options that LoCoMo's command has, and their values for LongMemEval, which has only {@link LONGMEMEVAL_TYPES} to choose from. */
interface OptionsOfDataset {
  readonly layout: readonly ArmLayout[];
  readonly ingest: Ingest;
  readonly categories: readonly number[];
}

const LAYOUTS = ["single", "conversation"] as const satisfies ArmLayout[];
const EACH = "one arm for each";

/** Adds the options of a run, and what to do with them. */
export function withRunOptions(
  command: Command,
  dataset: Dataset,
  run: (options: EvalLocomoOptions) => Promise<void>,
): void {
  const annotations = [...ARM_ANNOTATIONS, "default"] as const;
  const policies = [...HAND_BUILT, DEFAULT_POLICY];
  command
    .requiredOption("--data <file>", "a file in the data set's format")
    .requiredOption("--out <directory>", "for report.md, results.jsonl, run.json; must be empty")
    .option("--conversations <ids>", "conversations, separated by commas (default: all)", list(String))
    .option("--k <numbers>", `memories per question; ${EACH}`, list(wholeNumber(1, 1_000)), [DEFAULT_TOP_K])
    .option("--policies <names>", `how prompts are built: ${ARM_POLICIES.join(", ")}`, names(ARM_POLICIES), policies)
    .option(
      "--annotations <names>",
      `what is said of memories: none, default (memprefix's), paper (ContextPilot's words, with labels); ${EACH}`,
      names(annotations),
      ["default"],
    )
    .option(
      "--adaptive-depth <values>",
      `off, or as many memories as a first token is sure with: 5:1 tries 5, 10, 20 until at most 1 nat, 5:1:+1 one more each time; ${EACH} (default: off)`,
      list(adaptiveDepth),
    )
    .option(
      "--retention <names>",
      `what later prompts of a conversation keep: ${RETENTION_NAMES.join(", ")}`,
      names(RETENTION_NAMES),
      [DEFAULT_RETENTION],
    );
  if (dataset === "locomo") addLocomoOptions(command);
  else
    command.option(
      "--categories <names>",
      `question types: ${LONGMEMEVAL_TYPES.join(", ")} (default: all)`,
      list((name) => typeNumber(oneOf(LONGMEMEVAL_TYPES)(name))),
    );
  command
    .option(
      "--engine <name>",
      "simulated, or the address of an OpenAI-compatible API as http://127.0.0.1:8000/v1",
      "simulated",
    )
    .option("--model <name>", "the API's model name")
    .addOption(
      new Option("--engine-family <name>", "engine family: the form of prompts and usage")
        .choices(ENGINE_NAMES)
        .default("generic"),
    )
    .option("--max-tokens <number>", "most tokens of an answer", wholeNumber(1, 100_000), 64)
    .option(
      "--warm-up <number>",
      "first questions of every arm, left out of all figures (default: 1; 0 for simulated)",
      wholeNumber(0, 1_000),
    )
    .option(
      "--score <names>",
      "words: F1 and judge of generated answers; likelihood: log-likelihood of the correct answer (vLLM)",
      names(ANSWER_SCORES),
      ["words"],
    )
    .option("--judge <address>", "the OpenAI-compatible API that judges answers (default: none)")
    .option("--judge-model <name>", "that API's model name")
    .option("--no-times", "leave out the session's time, which Mem0's own evaluation puts before each memory")
    .option(
      "--limit <number>",
      `only the first n questions${dataset === "locomo" ? " of each conversation" : ""}`,
      wholeNumber(1, 100_000),
    )
    .option("--resume", "resume the run in --out")
    .action((given: Omit<EvalLocomoOptions, "dataset" | keyof OptionsOfDataset>) =>
      run({ ...OF_DATASET[dataset], ...given, dataset }),
    );
}

/** A question of LongMemEval has a history of its own, without extracted facts. */
const OF_DATASET: Readonly<Record<Dataset, OptionsOfDataset>> = {
  // All categories except the adversarial one.
  locomo: { layout: ["conversation"], ingest: "observations", categories: [1, 2, 3, 4] },
  longmemeval: { layout: ["single"], ingest: "turns", categories: LONGMEMEVAL_TYPES.map(typeNumber) },
};

function addLocomoOptions(command: Command): void {
  command
    .option(
      "--layout <names>",
      `how questions are asked: ${LAYOUTS.join(", ")} (default: conversation)`,
      names(LAYOUTS),
    )
    .option(
      "--window <numbers>",
      `last messages of a conversation that are sent, the question among them; ${EACH} (default: all)`,
      list(wholeNumber(1, 10_000)),
    )
    .addOption(
      new Option(
        "--ingest <what>",
        "what Mem0 ingests: LoCoMo's extracted facts, or every turn (default: observations)",
      ).choices(INGESTS),
    )
    .option(
      "--categories <numbers>",
      "question categories; 5 is adversarial and not scored (default: 1,2,3,4)",
      list(wholeNumber(1, 5)),
    );
}

function names<const T extends string>(known: readonly T[]): (value: string) => T[] {
  return list(oneOf(known));
}

/** `5:1`: start with 5 memories and stop when the first token has at most 1 nat of entropy; `5:1:+1`: one by one; `off`: null. */
function adaptiveDepth(given: string): ArmDepth | null {
  if (given === "off") return null;
  const [, blocks = "", nats = "", step] = /^([^:]+):([^:]+)(:\+1)?$/.exec(given) ?? [];
  if (blocks === "") throw new InvalidArgumentError("must be off, or memories:nats as 5:1 or 5:1:+1");
  const from = { firstBlocks: wholeNumber(1, 1_000)(blocks), entropyNats: positiveNumber(nats) };
  return step === undefined ? from : { ...from, isOneByOne: true };
}
