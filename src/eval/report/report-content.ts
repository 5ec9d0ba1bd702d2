import type { EvalArm, FailedQuestion, QuestionRecord, RunRecord } from "../base/run-record.js";
import { type ArmSummary, summariseArms } from "../measures/arm-summary.js";
import { compareRecords, type MeasuredDifference } from "../measures/compared-measures.js";
import { type JudgeAgreement, judgeAgreements } from "../measures/judge-agreement.js";
import { isFailed } from "../measures/measured.js";
import { baselineOf } from "../measures/paired-difference.js";
import type { Price } from "../measures/prices.js";
import { type QualityChange, qualityChange } from "../measures/quality-change.js";

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
    failures: records.filter(isFailed),
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
