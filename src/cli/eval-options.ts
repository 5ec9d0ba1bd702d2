import type { HistoryName } from "../core/conversation/epoch.js";
import type { RetentionName } from "../core/conversation/retention.js";
import type { EngineName } from "../engines/adapters/engine-adapter.js";
import { EvaluationError } from "../eval/base/evaluation-error.js";
import { type Dataset, LONGMEMEVAL_TYPES, type LongMemEvalType, typeNumber } from "../eval/base/question-types.js";
import type { Ingest } from "../eval/locomo/conversation-memories.js";
import type { AnnotationKind, AnnotationWordingName } from "../eval/run/arm-annotations.js";
import type { ArmLayout, ArmPlace, ArmPolicy } from "../eval/run/arms.js";

/** Options of `memstem eval locomo` and `memstem eval longmemeval`, with what the data set makes of what is not given. */
export interface EvalLocomoOptions {
  readonly dataset: Dataset;
  readonly data: string;
  readonly out: string;
  /** Absent: all. */
  readonly conversations?: readonly string[];
  readonly k: readonly number[];
  readonly layout: readonly ArmLayout[];
  readonly policies: readonly ArmPolicy[];
  readonly place: readonly ArmPlace[];
  /** Absent: memstem's default. */
  readonly annotations?: readonly AnnotationKind[];
  readonly annotationTop?: readonly (number | "all" | "auto")[];
  readonly annotationWording?: readonly AnnotationWordingName[];
  readonly budgetRatio: readonly number[];
  /** Given: instead of the other. */
  readonly budgetEach?: readonly number[];
  readonly retention: readonly RetentionName[];
  /** Absent: conversations are sent whole. */
  readonly window?: readonly number[];
  /** Absent: all that go with windows. */
  readonly history?: readonly HistoryName[];
  readonly historyRatio?: number;
  /** `simulated`, `embedded`, or an address. */
  readonly engine: string;
  readonly model?: string;
  readonly engineFamily: EngineName;
  readonly engineSlots: number;
  readonly context?: number;
  readonly threads?: number;
  readonly cost?: string;
  readonly maxTokens: number;
  readonly timeoutMs: number;
  readonly warmUp?: number;
  /** Whether what the engine says counts as an answer. */
  readonly scores: boolean;
  readonly prices?: string;
  /** One for all models, or one for each. */
  readonly judge?: readonly string[];
  readonly judgeModel?: readonly string[];
  /** A file of questions to leave out. */
  readonly exclude?: string;
  readonly ingest: Ingest;
  /** Whether memories are given their sessions' times. */
  readonly times: boolean;
  readonly extractUrl?: string;
  readonly extractModel?: string;
  readonly categories: readonly number[];
  readonly limit?: number;
  readonly seed: number;
  readonly resume?: boolean;
  readonly download?: string | true;
}

/** The same as the command line gives them. */
export interface GivenRunOptions extends Omit<EvalLocomoOptions, "dataset" | "ingest" | "categories"> {
  readonly ingest?: Ingest;
  /** LoCoMo's. */
  readonly categories?: readonly number[];
  /** LongMemEval's. */
  readonly types?: readonly LongMemEvalType[];
}

/** What the time of a planned run is taken from. */
export interface PlanRates {
  /** Tokens a second. */
  readonly prefillRate?: number;
  readonly answerRate?: number;
  /** The directory of a run. */
  readonly ratesFrom?: string;
}

/** Options of `memstem eval plan`. */
export type EvalPlanOptions = EvalLocomoOptions & PlanRates;

/** LoCoMo's categories but the adversarial one. */
const CATEGORIES = [1, 2, 3, 4];

/** Options of a run on a data set. Throws {@link EvaluationError} for those that are the other data set's. */
export function runOptions<G extends GivenRunOptions>(dataset: Dataset, given: G): G & EvalLocomoOptions {
  const { ingest, categories, types } = given;
  if (dataset === "locomo") {
    if (types !== undefined) throw new EvaluationError("--types: are LongMemEval's; LoCoMo has --categories");
    return { ...given, dataset, ingest: ingest ?? "observations", categories: categories ?? CATEGORIES };
  }
  if (categories !== undefined) throw new EvaluationError("--categories: are LoCoMo's; LongMemEval has --types");
  if (ingest === "observations") {
    throw new EvaluationError("--ingest observations: LongMemEval has none; use --ingest turns or extract");
  }
  if (given.layout.includes("conversation")) {
    throw new EvaluationError(
      "--layout conversation: every question of LongMemEval has a history of its own; use single",
    );
  }
  const wanted = (types ?? LONGMEMEVAL_TYPES).map(typeNumber);
  return { ...given, dataset, ingest: ingest ?? "turns", categories: wanted };
}
