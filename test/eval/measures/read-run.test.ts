import { describe, expect, it } from "vitest";
import { EvaluationError, readRun } from "../../../src/eval/base/run-files.js";
import { answeredBy, EXACT_ARM, failedBy, README_ARM, runOf } from "../run/run-fixture.js";

const run = runOf();
const records = [answeredBy(README_ARM, 0), failedBy(EXACT_ARM, 0), answeredBy(README_ARM, 1)];
const lines = (given: readonly unknown[]) => given.map((record) => `${JSON.stringify(record)}\n`).join("");
const read = (results: string, json: unknown = run) => readRun(JSON.stringify(json), results);
const errorOf = (results: string, json?: unknown) => {
  try {
    read(results, json);
  } catch (error) {
    return error;
  }
  return null;
};

describe("readRun", () => {
  it("gives back what was written", () => {
    expect(read(lines(records))).toEqual({ run, records });
    expect(read("")).toEqual({ run, records: [] });
  });

  it("leaves out a last line that was torn, wherever that was", () => {
    const whole = lines(records);
    const last = whole.lastIndexOf("\n", whole.length - 2) + 1;
    for (let end = last + 1; end < whole.length - 1; end++) {
      expect(read(whole.slice(0, end))).toEqual({ run, records: records.slice(0, 2) });
    }
    // Only the line's end is missing.
    expect(read(whole.slice(0, -1))).toEqual({ run, records });
  });

  it.each([
    ["{\n", "is not JSON"],
    [lines([{ ...records[0], promptTokens: -1 }]), "promptTokens: "],
    [lines([{ ...records[0], outcome: "lost" }]), "outcome: "],
    [lines([answeredBy({ ...README_ARM, id: "another" }, 9)]), 'arm: the run has no arm "another"'],
    [lines([records[1]]), "question: it was answered in this arm before, on line 2"],
    [`{\n${lines([answeredBy(README_ARM, 9)])}`, "is not JSON"],
  ])("names line and field of %j", (more, reason) => {
    const error = errorOf(lines(records) + more);
    expect(error).toBeInstanceOf(EvaluationError);
    expect(String(error)).toContain(`: results.jsonl, line 4: ${reason}`);
  });

  it("names the field of run.json", () => {
    expect(String(errorOf("", { ...run, arms: [{ ...README_ARM, k: 0 }] }))).toContain(": run.json: arms.0.k: ");
    expect(() => readRun("{", "")).toThrow("run.json: is not JSON");
  });
});
