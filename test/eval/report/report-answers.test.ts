import { describe, expect, it } from "vitest";
import { renderReport } from "../../../src/eval/report/report.js";
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
  return renderReport(run, records);
}

describe("a report", () => {
  it("says what changed of answers, each difference with its interval", () => {
    const { summary, html } = report(true);
    const [heading, , , , first] = summary.split("\n\n");
    expect(heading).toMatch(/^# LoCoMo/);
    expect(first).toMatch(
      /^- Answers, by the judge: of 2 ways to build prompts, 0 scored higher .* and 1 lower; for 1 no/,
    );
    expect(first).toContain("Single prompts, k = 20: memprefix, sorted: −50.0 (−");
    expect(first).toContain("memprefix, defaults: 0.0 (0.0 to 0.0) points against Mem0’s README");
    expect(first).toContain("Where no score differed, up to 37.5 % of questions may still score differently");
    expect(html.indexOf('class="quality"')).toBeLessThan(html.indexOf("<h2>"));
  });

  it("says that answers were not measured, and has no table of them", () => {
    const { summary, html } = report(false);
    expect(summary).toMatch(
      /\n- No answers were compared, since none was scored in two arms: this run says nothing about their quality\.$/,
    );
    for (const report of [summary, html]) expect(report).not.toMatch(/Did answers change/);
  });
});
