import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { EvaluationError, JsonLines } from "../../../src/eval/base/run-files.js";

const line = z.strictObject({ text: z.string() });

describe("JsonLines", () => {
  let folder: string;
  const path = () => join(folder, "lines.jsonl");
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "memprefix-lines-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("keeps every whole line and cuts a torn one, wherever the file was cut off", () => {
    const texts = fc.array(fc.string({ unit: "grapheme" }), { maxLength: 5 });
    fc.assert(
      fc.property(texts, fc.nat(), (given, cut) => {
        const lines = given.map((text) => `${JSON.stringify({ text })}\n`);
        const bytes = Buffer.from(lines.join(""));
        writeFileSync(path(), bytes.subarray(0, cut % (bytes.length + 1)));
        const whole =
          bytes
            .subarray(0, cut % (bytes.length + 1))
            .toString("utf8")
            .split("\n").length - 1;
        const file = new JsonLines(path(), line);
        expect(file.kept).toEqual(given.slice(0, whole).map((text) => ({ text })));
        file.append({ text: "next" });
        file.close();
        expect(readFileSync(path(), "utf8")).toBe(`${lines.slice(0, whole).join("")}{"text":"next"}\n`);
      }),
    );
  });

  it.each([
    ['{"text":"a"}\nnonsense\n{"text":"b"}\n', /line 2: is not JSON/],
    ['{"text":1}\n', /line 1: text: /],
    ["[]\n", /line 1: the line: /],
  ])("refuses %j", (text, says) => {
    writeFileSync(path(), text);
    const open = () => new JsonLines(path(), line);
    expect(open).toThrow(EvaluationError);
    expect(open).toThrow(says);
  });
});
