import type { z } from "zod";
import { type QuestionRecord, questionRecord, type RunRecord, runRecord } from "../base/run-record.js";
import { questionKey } from "./measured.js";

/** A run, read from its files. */
export interface WrittenRun {
  readonly run: RunRecord;
  readonly records: readonly QuestionRecord[];
  /** The last line was torn by a crash and is left out. */
  readonly isLastLineTorn: boolean;
}

/** A run's files are not what a run writes. */
export class ReadRunError extends Error {
  override readonly name = "ReadRunError";
  constructor(
    readonly file: "run.json" | "results.jsonl",
    /** From 1; null for `run.json`. */
    readonly line: number | null,
    /** Path of the first field that is wrong, as `arms.0.k`; null where the whole is. */
    readonly field: string | null,
    readonly reason: string,
  ) {
    super([line === null ? file : `${file}, line ${line}`, ...(field === null ? [] : [field]), reason].join(": "));
  }
}

/**
 * Reads the texts of `run.json` and `results.jsonl`. A last line without a line end that is no JSON was torn by a crash and is tolerated;
 * anything else that is wrong throws {@link ReadRunError}: a line that is no record, one of an arm that the run does not have, and a question
 * that stands there twice in one arm.
 */
export function readRun(runJson: string, resultsJsonl: string): WrittenRun {
  const run = checked(runRecord, jsonOf(runJson, "run.json", null), "run.json", null);
  const arms = new Set(run.arms.map(({ id }) => id));
  const lines = resultsJsonl.split("\n");
  const records: QuestionRecord[] = [];
  const seen = new Map<string, number>();
  for (const [at, text] of lines.entries()) {
    const line = at + 1;
    if (text.trim() === "") continue;
    if (line === lines.length && !isJson(text)) return { run, records, isLastLineTorn: true };
    const record = checked(questionRecord, jsonOf(text, "results.jsonl", line), "results.jsonl", line);
    if (!arms.has(record.arm)) {
      throw new ReadRunError("results.jsonl", line, "arm", `the run has no arm ${JSON.stringify(record.arm)}`);
    }
    const key = `${record.arm} ${questionKey(record)}`;
    const before = seen.get(key);
    if (before !== undefined) {
      throw new ReadRunError(
        "results.jsonl",
        line,
        "question",
        `it was answered in this arm before, on line ${before}`,
      );
    }
    seen.set(key, line);
    records.push(record);
  }
  return { run, records, isLastLineTorn: false };
}

function checked<S extends z.ZodType>(
  schema: S,
  json: unknown,
  file: ReadRunError["file"],
  line: number | null,
): z.output<S> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ReadRunError(file, line, issue?.path.join(".") || null, issue?.message ?? "is not valid");
}

function jsonOf(text: string, file: ReadRunError["file"], line: number | null): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the text, which holds answers.
    throw new ReadRunError(file, line, null, "is not JSON");
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
