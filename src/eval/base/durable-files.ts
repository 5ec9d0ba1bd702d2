import {
  appendFileSync,
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import type { z } from "zod";
import { EvaluationError } from "./evaluation-error.js";

/** Writes a file atomically: a process that is killed meanwhile leaves the previous content. */
export function writeWhole(path: string, text: string): void {
  const draft = `${path}.part`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

/**
 * An append-only file of JSON lines. A killed process leaves at most its last line torn; opening the file again truncates it. Throws
 * {@link EvaluationError} for any other invalid line.
 */
export class JsonLines<S extends z.ZodType> {
  readonly #file: number;
  /** What the file held when it was opened. */
  readonly kept: readonly z.output<S>[];

  constructor(path: string, schema: S) {
    const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
    const whole = bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
    this.kept = readLines(path, whole.toString("utf8"), schema);
    this.#file = openSync(path, "a");
    if (whole.length < bytes.length) ftruncateSync(this.#file, whole.length);
  }

  append(line: z.output<S>): void {
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

function readLines<S extends z.ZodType>(path: string, text: string, schema: S): z.output<S>[] {
  const lines = text.split("\n");
  lines.pop();
  return lines.map((line, at) => {
    const fault = (why: string) => new EvaluationError(`${path}, line ${at + 1}: ${why}`);
    let json: unknown;
    try {
      json = JSON.parse(line);
    } catch {
      throw fault("is not JSON");
    }
    const read = schema.safeParse(json);
    if (read.success) return read.data;
    const [issue] = read.error.issues;
    throw fault(`${issue?.path.join(".") || "the line"}: ${issue?.message ?? "is not valid"}`);
  });
}
