import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type QuestionRecord, questionRecord, type RunRecord, runRecord } from "../../src/eval/base/run-record.js";

/** The sample that ships with memprefix: one conversation with 59 facts, and 27 questions of the categories that are asked. */
export const SAMPLE = "examples/sample-locomo.json";

/** What a run has written so far. */
export function writtenRun(directory: string): {
  readonly run: RunRecord;
  readonly records: readonly QuestionRecord[];
} {
  const records = linesOf(join(directory, "results.jsonl")).map((line) => questionRecord.parse(JSON.parse(line)));
  return { run: runRecord.parse(JSON.parse(readFileSync(join(directory, "run.json"), "utf8"))), records };
}

/** Whole lines that a file has by now. */
export function linesOf(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
}

/** The lines of `results.jsonl` as they are, but for what a clock said. */
export function untimed(directory: string): string[] {
  return linesOf(join(directory, "results.jsonl")).map((line) =>
    line.replace(/"(searchMs|composeMs|probeMs|ttftMs)":[\d.e-]+/g, '"$1":0'),
  );
}
