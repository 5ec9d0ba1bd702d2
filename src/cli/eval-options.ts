import type { HistoryName } from "../core/conversation/epoch.js";
import type { RetentionName } from "../core/conversation/retention.js";
import type { EngineName } from "../engines/adapters/engine-adapter.js";
import type { Ingest } from "../eval/locomo/conversation-memories.js";
import type { AnnotationKind, AnnotationWordingName } from "../eval/run/arm-annotations.js";
import type { ArmLayout, ArmPlace, ArmPolicy } from "../eval/run/arms.js";

/** Options of `memstem eval locomo`. */
export interface EvalLocomoOptions {
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

/** Options of `memstem eval plan`: those of the run that is planned, and what its time is taken from. */
export interface EvalPlanOptions extends EvalLocomoOptions {
  /** Tokens a second. */
  readonly prefillRate?: number;
  readonly answerRate?: number;
  /** The directory of a run. */
  readonly ratesFrom?: string;
}
