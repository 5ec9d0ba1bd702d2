import { renderReports } from "./report.js";
import type { QuestionRecord, RunRecord } from "./run-record.js";

interface Run {
  readonly run: RunRecord;
  readonly records: readonly QuestionRecord[];
}

/** STAND-IN until the report's own branch is merged. */
export function compareRuns(a: Run, b: Run): string {
  return [a, b].map(({ run, records }) => renderReports(run, records).markdown).join("\n");
}
