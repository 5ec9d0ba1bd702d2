import { groupBy } from "../../core/text/lists.js";
import type { EvalArm, FailedQuestion, QuestionRecord, RunRecord } from "../base/run-record.js";
import { type ArmSummary, summariseArms } from "../measures/arm-summary.js";
import { baselineOf, compareRecords, type MeasuredDifference } from "../measures/paired-difference.js";
import type { Price } from "../measures/prices.js";
import { type JudgeAgreement, judgeAgreements, type QualityChange, qualityChange } from "../measures/quality-change.js";

/** How far an arm is from the one that it is compared with, in all measures that are compared. */
export interface ArmComparison {
  readonly arm: EvalArm;
  readonly baseline: EvalArm;
  readonly differences: readonly MeasuredDifference[];
}

/** What both reports are made of. */
export interface ReportContent {
  readonly run: RunRecord;
  readonly records: readonly QuestionRecord[];
  readonly prices: readonly Price[];
  readonly summaries: readonly ArmSummary[];
  readonly comparisons: readonly ArmComparison[];
  /** Null: answers were not measured. */
  readonly quality: QualityChange | null;
  /** Of every two judges. */
  readonly agreements: readonly JudgeAgreement[];
  readonly failures: readonly FailedQuestion[];
}

/** Works out everything that a report shows. */
export function reportContent(
  run: RunRecord,
  records: readonly QuestionRecord[],
  prices: readonly Price[],
): ReportContent {
  return {
    run,
    records,
    prices,
    summaries: summariseArms(run, records, prices),
    comparisons: compareArms(run, records),
    quality: qualityChange(run, records),
    agreements: judgeAgreements(run, records, { seed: run.seed }),
    failures: records.filter((record) => record.outcome === "failed"),
  };
}

function compareArms(run: RunRecord, records: readonly QuestionRecord[]): ArmComparison[] {
  const of = (arm: EvalArm) => records.filter((record) => record.arm === arm.id);
  return run.arms.flatMap((arm) => {
    const baseline = baselineOf(arm, run.arms);
    if (baseline === null) return [];
    return [{ arm, baseline, differences: compareRecords(of(baseline), of(arm), run.seed) }];
  });
}

/** Failures with the same stage and message, by where they happened. */
export interface FailureGroup {
  readonly stage: FailedQuestion["stage"];
  readonly message: string;
  readonly count: number;
  /** Per arm and conversation, the questions' places in the data file. */
  readonly places: readonly {
    readonly arm: string;
    readonly conversation: string;
    readonly questions: readonly number[];
  }[];
}

/** All failures, warm-ups included, those that happened most often first. */
export function failureGroups(failures: readonly FailedQuestion[]): FailureGroup[] {
  const alike = groupBy(failures, ({ stage, message }) => `${stage} ${message}`);
  return [...alike.values()]
    .flatMap((group): FailureGroup[] => {
      const [first] = group;
      if (first === undefined) return [];
      const places = groupBy(group, ({ arm, conversation }) => JSON.stringify([arm, conversation]));
      return [
        {
          stage: first.stage,
          message: first.message,
          count: group.length,
          places: [...places.values()].flatMap((asked) => {
            const [{ arm, conversation } = first] = asked;
            return [{ arm, conversation, questions: asked.map(({ question }) => question) }];
          }),
        },
      ];
    })
    .sort((a, b) => b.count - a.count);
}

/** `question 7`, `questions 7, 12`. */
export function questionsText(questions: readonly number[]): string {
  return `question${questions.length === 1 ? "" : "s"} ${questions.join(", ")}`;
}
