import { type Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_POLICY, DEFAULT_RETENTION, RETENTION_NAMES } from "../core/index.js";
import { ENGINE_NAMES } from "../engines/adapters/engine-adapter.js";
import { EvaluationError } from "../eval/base/run-files.js";
import {
  ANSWER_SCORES,
  ARM_ANNOTATIONS,
  ARM_POLICIES,
  type ArmDepth,
  type Dataset,
  HAND_BUILT,
  INGESTS,
  type Ingest,
  LONGMEMEVAL_TYPES,
  typeNumber,
} from "../eval/base/run-record.js";
import type { ArmLayout } from "../eval/run/arms.js";
import { DEFAULT_TOP_K } from "../service/compose/compose-request.js";
import { list, oneOf, positiveNumber, wholeNumber } from "./option-values.js";

/** An option for commander. `T`: its value in a run. */
interface OptionRow<T> {
  /** As it follows the name: `<numbers>`; optional: `[address]`; none for a switch. */
  readonly argument: string;
  readonly help: string;
  readonly read?: (text: string) => unknown;
  readonly choices?: readonly string[];
  readonly standard?: T;
  readonly isNeeded?: true;
}

function optional<T>(argument: string, help: string, read: (text: string) => T): OptionRow<T | undefined> {
  return { argument, help, read };
}

/** An option with a default. */
function standard<T>(argument: string, help: string, read: (text: string) => T, value: NoInfer<T>): OptionRow<T> {
  return { argument, help, read, standard: value };
}

function needed(argument: string, help: string): OptionRow<string> {
  return { argument, help, isNeeded: true };
}

function oneChoice<const T extends string>(argument: string, help: string, choices: readonly T[]) {
  return { argument, help, choices } as OptionRow<T | undefined>;
}

const text = (given: string) => given;
const LAYOUTS = ["single", "conversation"] as const satisfies ArmLayout[];
const EVERY_QUESTION = "one arm for each";

/**
 * Options of a run: its data, the comparison, the engine and the scores. The key is the flag: `maxTokens` is `--max-tokens`; an option
 * that is true by default is turned off by `--no-`, as in `--no-scores`.
 */
const RUN_OPTIONS = {
  data: needed("<file>", "a file in the data set's format"),
  out: needed("<directory>", "for report.html, results.jsonl, run.json; must be empty"),
  conversations: optional("<ids>", "conversations, separated by commas (default: all)", list(identifier)),
  k: standard("<numbers>", `memories per question; ${EVERY_QUESTION}`, list(wholeNumber(1, 1_000)), [DEFAULT_TOP_K]),
  layout: optional(
    "<names>",
    `how questions are asked: ${LAYOUTS.join(", ")} (default: conversation; single for LongMemEval)`,
    list(oneOf(LAYOUTS)),
  ),
  policies: standard("<names>", `how prompts are built: ${ARM_POLICIES.join(", ")}`, list(oneOf(ARM_POLICIES)), [
    ...HAND_BUILT,
    DEFAULT_POLICY,
  ]),
  annotations: standard(
    "<names>",
    `what is said of memories: none, default (memprefix's), paper (ContextPilot's words, with labels); ${EVERY_QUESTION}`,
    list(oneOf([...ARM_ANNOTATIONS, "default"])),
    ["default"],
  ),
  adaptiveDepth: optional(
    "<values>",
    `off, or as many memories as a first token is sure with: 5:1 tries 5, 10, 20 until at most 1 nat, 5:1:+1 one more each time; ${EVERY_QUESTION} (default: off)`,
    list(adaptiveDepth),
  ),
  retention: standard(
    "<names>",
    `what later prompts of a conversation keep: ${RETENTION_NAMES.join(", ")}`,
    list(oneOf(RETENTION_NAMES)),
    [DEFAULT_RETENTION],
  ),
  window: optional(
    "<numbers>",
    `last messages of a conversation that are sent, the question among them; ${EVERY_QUESTION} (default: all)`,
    list(wholeNumber(1, 10_000)),
  ),
  engine: standard(
    "<name>",
    "simulated, or the address of an OpenAI-compatible API as http://127.0.0.1:8000/v1",
    text,
    "simulated",
  ),
  model: optional("<name>", "the API's model name", text),
  engineFamily: {
    ...standard("<name>", "engine family: the form of prompts and usage", oneOf(ENGINE_NAMES), "generic"),
    choices: ENGINE_NAMES,
  },
  cost: optional(
    "<model>",
    "cost model for --retention auto, as MEMPREFIX_ENGINE_COST (default: the prices of the engine's provider, else gpu)",
    text,
  ),
  maxTokens: standard("<number>", "most tokens of an answer", wholeNumber(1, 100_000), 64),
  timeoutMs: standard(
    "<number>",
    "timeout for the first byte from engine or judge",
    wholeNumber(1, 3_600_000),
    600_000,
  ),
  warmUp: optional(
    "<number>",
    "first questions of every arm, left out of all figures (default: 1; 0 for simulated)",
    wholeNumber(0, 1_000),
  ),
  scores: { argument: "", help: "do not score answers: tokens and times only", standard: true },
  score: standard(
    "<names>",
    "words: F1, BLEU-1 and judge of generated answers; likelihood: log-likelihood of the correct answer (vLLM)",
    list(oneOf(ANSWER_SCORES)),
    ["words"],
  ),
  judge: optional("<address>", "the OpenAI-compatible API that judges answers (default: none)", text),
  judgeModel: optional("<name>", "that API's model name", text),
  ingest: oneChoice(
    "<what>",
    "what Mem0 ingests: LoCoMo's extracted facts, or every turn (default: observations; turns for LongMemEval)",
    INGESTS,
  ),
  times: {
    argument: "",
    help: "leave out the session's time, which Mem0's own evaluation puts before each memory",
    standard: true,
  },
  categories: optional(
    "<numbers>",
    "LoCoMo's categories; 5 is adversarial and not scored (default: 1,2,3,4)",
    list(wholeNumber(1, 5)),
  ),
  types: optional(
    "<names>",
    `LongMemEval's question types: ${LONGMEMEVAL_TYPES.join(", ")} (default: all)`,
    list(oneOf(LONGMEMEVAL_TYPES)),
  ),
  limit: optional("<number>", "only the first n questions, of each conversation of LoCoMo", wholeNumber(1, 100_000)),
  resume: { argument: "", help: "resume the run in --out" } as OptionRow<true | undefined>,
  download: {
    argument: "[address]",
    help: "first fetch the public file into --data, if it is missing",
  } as OptionRow<string | true | undefined>,
} satisfies Readonly<Record<string, OptionRow<unknown>>>;

type Given<Rows> = { readonly [K in keyof Rows]: Rows[K] extends OptionRow<infer T> ? T : never };

/** Options as given on the command line. */
export type GivenRunOptions = Given<typeof RUN_OPTIONS>;

/** Options of `memprefix eval locomo` and `memprefix eval longmemeval`, with the data set's defaults. */
export type EvalLocomoOptions = Omit<GivenRunOptions, "layout" | "ingest" | "categories" | "types"> & {
  readonly dataset: Dataset;
  readonly layout: readonly ArmLayout[];
  readonly ingest: Ingest;
  readonly categories: readonly number[];
};

export function withRunOptions(command: Command): Command {
  for (const [name, row] of Object.entries<OptionRow<unknown>>(RUN_OPTIONS)) {
    const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const isOff = row.standard === true;
    const option = new Option(`--${isOff ? "no-" : ""}${flag} ${row.argument}`.trimEnd(), row.help);
    if (row.read !== undefined) option.argParser(row.read);
    if (row.choices !== undefined) option.choices(row.choices);
    if (row.standard !== undefined && !isOff) option.default(row.standard);
    command.addOption(option.makeOptionMandatory(row.isNeeded === true));
  }
  return command;
}

/** All of LoCoMo's categories except the adversarial one. */
const CATEGORIES = [1, 2, 3, 4];

/** Throws {@link EvaluationError} for options of the other data set. */
export function runOptions(dataset: Dataset, given: GivenRunOptions): EvalLocomoOptions {
  const { ingest, categories, types } = given;
  if (dataset === "locomo") {
    if (types !== undefined) throw new EvaluationError("--types: are LongMemEval's; LoCoMo has --categories");
    const { layout = ["conversation"] } = given;
    return { ...given, dataset, layout, ingest: ingest ?? "observations", categories: categories ?? CATEGORIES };
  }
  if (categories !== undefined) throw new EvaluationError("--categories: are LoCoMo's; LongMemEval has --types");
  if (ingest === "observations") {
    throw new EvaluationError("--ingest observations: LongMemEval has none; use --ingest turns");
  }
  if (given.layout?.includes("conversation")) {
    throw new EvaluationError(
      "--layout conversation: every question of LongMemEval has a history of its own; use single",
    );
  }
  const wanted = (types ?? LONGMEMEVAL_TYPES).map(typeNumber);
  return { ...given, dataset, layout: ["single"], ingest: ingest ?? "turns", categories: wanted };
}

/** `5:1`: start with 5 memories and stop when the first token has at most 1 nat of entropy; `5:1:+1`: one by one; `off`: null. */
function adaptiveDepth(given: string): ArmDepth | null {
  if (given === "off") return null;
  const [, blocks = "", nats = "", step] = /^([^:]+):([^:]+)(:\+1)?$/.exec(given) ?? [];
  if (blocks === "") throw new InvalidArgumentError("must be off, or memories:nats as 5:1 or 5:1:+1");
  const from = { firstBlocks: wholeNumber(1, 1_000)(blocks), entropyNats: positiveNumber(nats) };
  return step === undefined ? from : { ...from, isOneByOne: true };
}

function identifier(given: string): string {
  if (given === "") throw new InvalidArgumentError("must be ids separated by commas");
  return given;
}
