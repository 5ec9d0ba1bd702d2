import { describe, expect, it } from "vitest";
import { renderReports } from "../../../src/eval/report/report.js";
import { unbeaten } from "../../../src/eval/report/svg-charts.js";
import { answeredBy, EXACT_ARM, README_ARM, runOf } from "../run/run-fixture.js";

const SORTED_ARM = { ...EXACT_ARM, id: "single k=20 sorted", policy: "sorted" } as const;
const ARMS = [README_ARM, EXACT_ARM, SORTED_ARM];

/** Sorted answers half of the questions; the others all. */
function report(hasScores: boolean) {
  const run = runOf({
    arms: ARMS,
    ...(hasScores ? { judge: { url: "http://127.0.0.1:1/v1", model: "judge-1" } } : {}),
  });
  const records = ARMS.flatMap((arm, place) =>
    Array.from({ length: 8 }, (_, n) =>
      answeredBy(arm, n, {
        promptTokens: 5_000,
        cachedTokens: 1_500 * place,
        ttftMs: 900 - 300 * place,
        judge: hasScores ? { isCorrect: arm !== SORTED_ARM || n % 2 === 0, prompt: "", raw: "" } : null,
      }),
    ),
  );
  return renderReports(run, records);
}

describe("a report", () => {
  it("begins with what changed of answers, and has them beside time, cache and money, each difference with its interval", () => {
    const { markdown, html } = report(true);
    const [heading, first] = markdown.split("\n\n");
    expect(heading).toMatch(/^# LoCoMo/);
    expect(first).toMatch(
      /^- Answers, by the judge: of 2 ways to build prompts, 0 scored higher .* and 1 lower; for 1 no/,
    );
    expect(first).toContain("single k=20 sorted −50.0 (−");
    expect(first).toContain("single k=20 prefix-exact 0.0 (0.0 to 0.0) points against single k=20 readme");
    expect(first).toContain("Where no score differed, up to 37.5 % of questions may still score differently");
    const trade = markdown.slice(markdown.indexOf("## Answers beside"), markdown.indexOf("## Did answers change?"));
    expect(trade).toMatch(/prefix-exact +\| +0\.0 \(0\.0 to 0\.0\) \| +600 \| +30\.0 % \| +3,500 \| +\\\$8\.90/);
    expect(trade).toMatch(/Mem0’s README +\| +baseline \| +900 \|/);
    expect(html.indexOf('class="quality"')).toBeLessThan(html.indexOf("<h2>"));
    expect(html).toContain("Answers against uncached tokens a question, Single prompts, k = 20");
    expect(html).toContain("Answers against 1,000 prompts at OpenAI");
  });

  it("says that answers were not measured, and draws nothing of them", () => {
    const { markdown, html } = report(false);
    expect(markdown.split("\n\n")[1]).toBe(
      "- Answers: not measured (no answer was scored in two arms). This run says nothing of quality.",
    );
    expect(html).not.toContain("Answers against");
    expect(markdown).not.toContain("Did answers change?");
  });
});

describe("unbeaten", () => {
  it("is the Pareto front: less for as much, or more for as little", () => {
    const points = [
      { x: 5, y: 3 },
      { x: 1, y: 0 },
      { x: 3, y: 3 },
      { x: 2, y: -1 },
      { x: 9, y: 4 },
      { x: 1, y: 0 },
    ];
    expect(unbeaten(points)).toEqual([points[1], points[5], points[2], points[4]]);
    expect(unbeaten([])).toEqual([]);
  });
});
