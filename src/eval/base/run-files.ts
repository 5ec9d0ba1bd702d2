import {
  appendFileSync,
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { parsedJson } from "../../core/text/json.js";
import { messageOf } from "../../core/text/thrown.js";
import { type RunRecord, runRecord } from "./run-record.js";

/** An evaluation or replay cannot run as requested; the message says what to change. */
export class EvaluationError extends Error {
  override readonly name = "EvaluationError";
}

/**
 * Checks JSON against a schema. Throws {@link EvaluationError} naming the first invalid field.
 *
 * @param where names the JSON, or its file
 * @param whole names the JSON where no single field is wrong
 */
export function checked<S extends z.ZodType>(schema: S, json: unknown, where: string, whole = "the file"): z.output<S> {
  const read = schema.safeParse(json);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const names = [where, issue?.path.join(".") || whole, issue?.message ?? "is not valid"];
  throw new EvaluationError(names.filter((name) => name !== "").join(": "));
}

/** Parses JSON. The error does not quote the text, which may hold answers. */
function jsonIn(text: string, where: string): unknown {
  const json = parsedJson(text);
  if (json === undefined) throw new EvaluationError(`${where}: is not JSON`);
  return json;
}

/** Throws {@link EvaluationError}. */
export function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new EvaluationError(`cannot read ${path}: ${messageOf(error)}`);
  }
}

/** Writes a file atomically: a process killed meanwhile leaves the previous content. */
export function writeWhole(path: string, text: string): void {
  const draft = `${path}.part`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

/**
 * An append-only file of JSON lines. A killed process leaves at most its last line torn; reopening truncates it. Throws
 * {@link EvaluationError} for any other invalid line, and for a path that cannot be written.
 */
export class JsonLines<S extends z.ZodType> {
  readonly #file: number;
  /** The file's content when it was opened. */
  readonly kept: readonly z.output<S>[];

  constructor(path: string, schema: S) {
    this.#file = openToAppend(path);
    const bytes = readFileSync(path);
    const whole = bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
    const lines = whole.toString("utf8").split("\n").slice(0, -1);
    this.kept = lines.map((line, at) => {
      const where = `${path}, line ${at + 1}`;
      return checked(schema, jsonIn(line, where), where, "the line");
    });
    if (whole.length < bytes.length) ftruncateSync(this.#file, whole.length);
  }

  append(line: z.output<S>): void {
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

function openToAppend(path: string): number {
  try {
    return openSync(path, "a");
  } catch (error) {
    throw new EvaluationError(`cannot write ${path}: ${messageOf(error)}`);
  }
}

const NAME = "run.json";

export function writeRun(directory: string, run: RunRecord): void {
  writeWhole(join(directory, NAME), `${JSON.stringify(run, null, 2)}\n`);
}

/**
 * Begins a run, or resumes the one in the directory; creates a missing directory. Throws {@link EvaluationError} where the directory is not
 * empty and `resume` is false, or where its run has other settings.
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
  const path = join(directory, NAME);
  const begun = checked(runRecord, readJson(path), path);
  const differences = differencesOf(begun, wanted);
  if (differences.length > 0) {
    throw new EvaluationError(
      `--resume: ${directory} was begun with other settings, so its figures and new ones could not be compared: ${differences.join("; ")}`,
    );
  }
  return begun;
}

/** Fields that may differ when a run resumes: times, paths, and what only shows during the run. */
const PASSING: ReadonlySet<string> = new Set([
  "startedAt",
  "finishedAt",
  "data.file",
  "settings.salt",
  "engine.served",
  "engine.served.version",
  "engine.served.weights",
]);

function differencesOf(begun: RunRecord, wanted: RunRecord): string[] {
  const settingsOf = (run: RunRecord) => ({
    ...run,
    conversations: run.conversations.map(({ id, questions }) => `${id} (${questions} questions)`),
    arms: run.arms.map(({ id }) => id),
  });
  const [before, now] = [leavesOf(settingsOf(begun)), leavesOf(settingsOf(wanted))];
  return [...new Set([...before.keys(), ...now.keys()])]
    .filter((name) => !PASSING.has(name) && before.get(name) !== now.get(name))
    .map((name) => `${name} was ${before.get(name) ?? "absent"} and is now ${now.get(name) ?? "absent"}`);
}

/** A record's values as JSON, by path, as in `engine.kind`; a list is one value. */
function leavesOf(value: object, path = ""): Map<string, string> {
  const leaves = new Map<string, string>();
  for (const [key, inner] of Object.entries(value)) {
    const at = path === "" ? key : `${path}.${key}`;
    if (typeof inner === "object" && inner !== null && !Array.isArray(inner)) {
      for (const [leaf, text] of leavesOf(inner, at)) leaves.set(leaf, text);
    } else leaves.set(at, JSON.stringify(inner));
  }
  return leaves;
}
