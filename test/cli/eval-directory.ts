import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readRun } from "../../src/eval/base/run-files.js";
import type { QuestionRecord, RunRecord } from "../../src/eval/base/run-record.js";

/** The sample that ships with memprefix: one conversation with 59 facts, and 27 questions of the categories that are asked. */
export const SAMPLE = "examples/sample-locomo.json";

/** What a run has written so far. */
export function writtenRun(directory: string): {
  readonly run: RunRecord;
  readonly records: readonly QuestionRecord[];
} {
  const text = (name: string) => readFileSync(join(directory, name), "utf8");
  return readRun(text("run.json"), text("results.jsonl"));
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
