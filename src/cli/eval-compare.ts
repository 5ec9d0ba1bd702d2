import { join } from "node:path";
import { compareRuns } from "../eval/compare-runs.js";
import { readJsonLines } from "../eval/json-lines.js";
import { readRun } from "../eval/run-file.js";
import { questionRecord } from "../eval/run-record.js";

/** Compares two runs by what they wrote. Throws `EvaluationError` where one of them cannot be read. */
export function runEvalCompare(a: string, b: string, print: (line: string) => void): void {
  const [runA, runB] = [a, b].map((directory) => ({
    run: readRun(directory),
    records: readJsonLines(join(directory, "results.jsonl"), questionRecord),
  }));
  if (runA !== undefined && runB !== undefined) print(compareRuns(runA, runB));
}
