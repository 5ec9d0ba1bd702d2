import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writeWhole } from "../base/durable-files.js";
import { EvaluationError } from "../base/evaluation-error.js";
import { leavesOf, type RunRecord, runRecord } from "../base/run-record.js";

const NAME = "run.json";

/** Reads `run.json` alone: a stopped run may have written nothing else. */
function readBegun(directory: string): RunRecord {
  const path = join(directory, NAME);
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new EvaluationError(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
  const read = runRecord.safeParse(json);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new EvaluationError(`${path}: ${issue?.path.join(".") || "the file"}: ${issue?.message ?? "is not valid"}`);
}

export function writeRun(directory: string, run: RunRecord): void {
  writeWhole(join(directory, NAME), `${JSON.stringify(run, null, 2)}\n`);
}

/**
 * Begins a run, or resumes the one in the directory; creates the directory if it is missing. Throws {@link EvaluationError} where the
 * directory is not empty and `resume` is false, or where its run has other settings.
 */
export function beginRun(directory: string, wanted: RunRecord, resume: boolean): RunRecord {
  const isEmpty = !existsSync(directory) || readdirSync(directory).length === 0;
  if (!isEmpty && !resume) {
    throw new EvaluationError(
      `--out ${directory}: is not empty; give another directory, or --resume to continue the run in it`,
    );
  }
  mkdirSync(directory, { recursive: true });
  if (isEmpty) {
    writeRun(directory, wanted);
    return wanted;
  }
  const begun = readBegun(directory);
  const differences = differencesOf(begun, wanted);
  if (differences.length > 0) {
    throw new EvaluationError(
      `--resume: ${directory} was begun with other settings, so its figures and new ones could not be compared: ${differences.join("; ")}`,
    );
  }
  return begun;
}

/** Fields that do not matter for resuming: times, paths, and what only shows during the run. */
const PASSING: ReadonlySet<string> = new Set([
  "startedAt",
  "finishedAt",
  "data.file",
  "settings.salt",
  "settings.resumedAt",
  "engine.served",
  "engine.served.version",
  "engine.served.weights",
]);

/** Which settings of two runs differ, and how. */
function differencesOf(begun: RunRecord, wanted: RunRecord): string[] {
  // How many memories extraction makes shows only when it is done.
  const ids = (run: RunRecord) => run.conversations.map(({ id, questions }) => `${id} (${questions} questions)`);
  const before = leavesOf({ ...begun, conversations: ids(begun), arms: begun.arms.map(({ id }) => id) });
  const now = leavesOf({ ...wanted, conversations: ids(wanted), arms: wanted.arms.map(({ id }) => id) });
  return [...new Set([...before.keys(), ...now.keys()])]
    .filter((name) => !PASSING.has(name) && before.get(name) !== now.get(name))
    .map((name) => `${name} was ${before.get(name) ?? "absent"} and is now ${now.get(name) ?? "absent"}`);
}
