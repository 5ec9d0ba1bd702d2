import { groupBy } from "../../core/text/collections.js";
import type { FailedQuestion, QuestionRecord, RunRecord } from "../base/run-record.js";
import { summariseArms } from "../measures/arm-summary.js";
import { qualityChange } from "../measures/quality-change.js";

export type ReportContent = ReturnType<typeof reportContent>;

/** Computes everything that a report shows. */
export function reportContent(run: RunRecord, records: readonly QuestionRecord[]) {
  return {
    run,
    records,
    summaries: summariseArms(run, records),
    /** Null: answers were not scored. */
    quality: qualityChange(run, records),
    failures: records.filter((record) => record.outcome === "failed"),
  };
}

/** Failures, warm-ups included, counted by stage and message, most frequent first. */
export function failureGroups(failures: readonly FailedQuestion[]) {
  return [...groupBy(failures, ({ stage, message }) => `${stage} ${message}`).values()]
    .flatMap((group) => group.slice(0, 1).map(({ stage, message }) => ({ stage, message, count: group.length })))
    .sort((a, b) => b.count - a.count);
}
