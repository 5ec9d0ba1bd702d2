import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { describe, expect, it } from "vitest";

const PAGE = readFileSync("docs/internals/lifecycle.md", "utf8");
const MOST_FILES = 10;

interface Step {
  readonly number: number;
  readonly name: string;
  readonly file: string;
  readonly caller: number | null;
}

const ROW = /^\| (\d+) \| [^|]+ \| `(\w+)` \| `([\w/.-]+)` \| (\d+|–) \|$/gm;
const STEPS = [...PAGE.matchAll(ROW)].map(
  ([, number, name, file, caller]): Step => ({
    number: Number(number),
    name: name ?? "",
    file: file ?? "",
    caller: caller === "–" ? null : Number(caller),
  }),
);

const stepAt = (number: number) => STEPS[number - 1] as Step;

function filesTo(step: Step): readonly string[] {
  return step.caller === null ? [step.file] : [...filesTo(stepAt(step.caller)), step.file];
}

describe("the walk of a request", () => {
  it("numbers its steps, each called by one before it, and has a paragraph on every decision", () => {
    expect(STEPS.length).toBeGreaterThan(20);
    expect(STEPS.map(({ number }) => number)).toEqual(STEPS.map((_, at) => at + 1));
    for (const { number, caller } of STEPS) expect(caller ?? 0).toBeLessThan(number);
  });

  it.each(STEPS)("step $number: $name is declared in its file, and its caller imports it", ({ name, file, caller }) => {
    const declared = new RegExp(`(?:function|class|const) ${name}\\b|^  (?:override )?${name}\\(`, "m");
    expect(readFileSync(file, "utf8")).toMatch(declared);
    if (caller === null) return;
    const code = readFileSync(stepAt(caller).file, "utf8");
    expect(code.includes(basename(file, ".ts")) || new RegExp(`\\b${name}\\b`).test(code)).toBe(true);
  });

  it("passes at most ten files to any of them", () => {
    for (const step of STEPS) expect(new Set(filesTo(step)).size, step.name).toBeLessThanOrEqual(MOST_FILES);
  });
});
