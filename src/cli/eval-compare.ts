import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EvaluationError, messageOf, readRun, type WrittenRun } from "../eval/base/run-files.js";
import { compareRuns } from "../eval/report/compare-runs.js";

/** Compares two runs by what they wrote. Throws {@link EvaluationError} where one of them cannot be read. */
export function runEvalCompare(a: string, b: string, print: (line: string) => void): void {
  print(compareRuns(readDirectory(a), readDirectory(b)));
}

function readDirectory(directory: string): WrittenRun {
  try {
    return readRun(
      readFileSync(join(directory, "run.json"), "utf8"),
      readFileSync(join(directory, "results.jsonl"), "utf8"),
    );
  } catch (error) {
    if (error instanceof EvaluationError) throw new EvaluationError(`${directory}: ${error.message}`);
    throw new EvaluationError(messageOf(error));
  }
}
