import { describe, expect, it } from "vitest";
import { ReadRunError, readRun } from "../../../src/eval/measures/read-run.js";
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
    expect(read(lines(records))).toEqual({ run, records, isLastLineTorn: false });
    expect(read("")).toEqual({ run, records: [], isLastLineTorn: false });
  });

  it("leaves out a last line that was torn, wherever that was, and says so", () => {
    const whole = lines(records);
    const last = whole.lastIndexOf("\n", whole.length - 2) + 1;
    for (let end = last + 1; end < whole.length - 1; end++) {
      expect(read(whole.slice(0, end))).toEqual({ run, records: records.slice(0, 2), isLastLineTorn: true });
    }
    // Only the line's end is missing.
    expect(read(whole.slice(0, -1))).toEqual({ run, records, isLastLineTorn: false });
  });

  it.each([
    ["{\n", 4, null],
    [lines([{ ...records[0], promptTokens: -1 }]), 4, "promptTokens"],
    [lines([{ ...records[0], outcome: "lost" }]), 4, "outcome"],
    [lines([answeredBy({ ...README_ARM, id: "another" }, 9)]), 4, "arm"],
    [lines([records[1]]), 4, "question"],
    [`{\n${lines([answeredBy(README_ARM, 9)])}`, 4, null],
  ])("names line and field of %j", (more, line, field) => {
    const error = errorOf(lines(records) + more);
    expect(error).toBeInstanceOf(ReadRunError);
    expect(error).toMatchObject({ file: "results.jsonl", line, field });
    expect(String(error)).toContain(`results.jsonl, line ${line}`);
  });

  it("names the field of run.json", () => {
    const error = errorOf("", { ...run, arms: [{ ...README_ARM, k: 0 }] });
    expect(error).toMatchObject({ file: "run.json", line: null, field: "arms.0.k" });
    expect(() => readRun("{", "")).toThrow("run.json: is not JSON");
  });
});
