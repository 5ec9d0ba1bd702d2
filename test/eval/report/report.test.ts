import { describe, expect, it } from "vitest";
import type { EvalArm, QuestionRecord, RunRecord } from "../../../src/eval/base/run-record.js";
import { renderReport } from "../../../src/eval/report/report.js";
import { answeredBy, EXACT_ARM, failedBy, README_ARM, runOf } from "../run/run-fixture.js";

const carrying = { layout: "conversation", policy: "carry-over", retention: "auto" } as const;
const conversationArm: EvalArm = { ...EXACT_ARM, ...carrying, id: "conversation k=20 carry-over auto" };

const small: readonly QuestionRecord[] = [
  answeredBy(README_ARM, 0, { isWarmUp: true, promptTokens: 50_000, cachedTokens: 0 }),
  answeredBy(README_ARM, 1, { promptTokens: 1_000, cachedTokens: 200, evidence: 2, evidenceInPrompt: 1 }),
  answeredBy(README_ARM, 2, { promptTokens: 1_200, cachedTokens: 400, category: 4 }),
  answeredBy(EXACT_ARM, 0, { isWarmUp: true, promptTokens: 50_000, cachedTokens: 0 }),
  answeredBy(EXACT_ARM, 1, { promptTokens: 1_000, cachedTokens: 800, evidence: 2, evidenceInPrompt: 1 }),
  failedBy(EXACT_ARM, 2, { category: 4 }),
];

describe("what a terminal shows of a report", () => {
  const { summary } = renderReport(runOf(), small);
  const rowsOf = (text: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith("| "))
      .map((line) =>
        line
          .split("|")
          .map((cell) => cell.trim())
          .slice(1, -1),
      );

  it("has the most important figures, where all was measured", () => {
    const all = { ttftMs: 5, totalMs: 9, answerTokens: 3, f1: 0.5, likelihood: { nats: -2, tokens: 2 } };
    const judged = { judge: { isCorrect: true, prompt: "", raw: "" }, promptTokens: 123_456, cachedTokens: 50 };
    const depth = { firstBlocks: 5, entropyNats: 1 };
    const long = { ...conversationArm, layout: "single", annotations: "none", depth } as const;
    const arms = [README_ARM, long];
    const measured = arms.map((arm) => answeredBy(arm, 1, { ...all, ...judged, evidence: 2, evidenceInPrompt: 1 }));
    const { summary: shown } = renderReport(runOf({ arms }), measured);
    const heads = rowsOf(shown).filter(([name]) => name === "Prompts built by");
    expect(heads.flatMap((cells) => cells.slice(1))).toEqual([
      ...["Prompt tokens", "Uncached", "Hit ratio", "TTFT p50 ms"],
      ...["Judged right", "Log-likelihood", "F1", "Evidence in prompt"],
    ]);
    expect(shown).not.toContain("not measured");
  });

  it("has conversations first, and of each group memprefix’s defaults", () => {
    const talk = { ...EXACT_ARM, id: "talk", layout: "conversation", retention: "auto" } as const;
    const arms = [README_ARM, { ...EXACT_ARM, id: "sorted", policy: "sorted" } as const, EXACT_ARM, talk];
    const counts = { promptTokens: 100, cachedTokens: 50 };
    const { summary } = renderReport(
      runOf({ arms }),
      arms.map((arm) => answeredBy(arm, 1, counts)),
    );
    const shown = summary.split("\n").filter((line) => /^## |^\| [mM]em/.test(line));
    expect(shown.map((line) => line.replace(/^\| | +\|.*/g, ""))).toEqual([
      ...["## Conversations, k = 20", "memprefix, defaults"],
      ...["## Single prompts, k = 20", "memprefix, defaults", "Mem0’s README", "memprefix, sorted"],
    ]);
  });

  it("has the figures that were measured, worked by hand", () => {
    // 2,200 tokens in prompts, 600 of them cached.
    const head = ["Prompts built by", "Prompt tokens", "Uncached", "Hit ratio", "Evidence in prompt"];
    expect(rowsOf(summary).slice(0, 4)).toEqual([
      head,
      expect.anything(),
      ["memprefix, defaults", "1,000", "200", "80.0 %", "50.0 %"],
      ["Mem0’s README", "1,100", "800", "27.3 %", "50.0 % n=1"],
    ]);
  });

  it("has rows as long as its head, and no heading or markup of others, whatever texts hold", () => {
    const { summary, whole } = renderReport(...hostile("a|b`c``d\n| e |\n# f <img src=x>[g](javascript:h)\u202ei"));
    const table = summary.split("\n").filter((line) => line.startsWith("| "));
    expect(table.length).toBeGreaterThan(3);
    expect(new Set(table.map((line) => line.replaceAll("\\|", "").split("|").length)).size).toBe(1);
    const headings = (text: string) => text.split("\n").filter((line) => line.startsWith("#"));
    expect(headings(whole)).toEqual(headings(renderReport(...hostile("text")).whole));
    expect(whole).toContain("a\\|b\\`c\\`\\`d \\| e \\| # f &lt;img src=x&gt;\\[g\\](javascript:h)\\[U+202E\\]i");
    expect(whole).not.toMatch(/\u202e|<img|[^\\]\[g/);
  });
});

describe("report.md", () => {
  const arms = [README_ARM, EXACT_ARM, conversationArm];
  const records = [...small, answeredBy(conversationArm, 1, { promptTokens: 900, cachedTokens: 890, ttftMs: 12 })];
  const { whole } = renderReport(runOf({ arms }), records);

  it("begins with what a terminal shows, and lists what failed, settings and notes", () => {
    const { summary, whole } = renderReport(runOf(), small);
    expect(whole.startsWith(summary)).toBe(true);
    expect(whole).toContain("\n- 1 in engine: the engine did not begin to answer within 60000 ms\n");
    expect(whole).toContain("Between arms: each arm has a simulated cache of its own.");
    expect(whole).toContain("Questions asked to warm the engine up (1 per arm, the first ones) are in no figure.");
    expect(whole).toMatch(
      /Not measured in this run: TTFT p50 ms, .*F1, Log-likelihood, Judged right\. That is not zero\./,
    );
  });

  it("has no table or column of what was not measured", () => {
    const unmeasured = renderReport(runOf(), [answeredBy(README_ARM, 1), answeredBy(EXACT_ARM, 1)]);
    expect(unmeasured.whole).not.toMatch(/^\|.*(TTFT|F1|Hit ratio|Cut)/m);
    expect(unmeasured.summary).not.toContain("|");
  });

  it("says that a run is partial, and only then", () => {
    expect(whole).not.toContain("Partial run");
    const { summary } = renderReport(runOf({ finishedAt: null }), small.slice(0, 4));
    expect(summary).toContain("**Partial run.**");
    expect(summary).toContain("4 records so far, and 1 arm behind the others.");
  });

  it("is the same for the same run, and there for one without records or arms", () => {
    expect(renderReport(runOf({ arms }), records).whole).toBe(whole);
    for (const run of [runOf(), runOf({ arms: [], conversations: [], categories: [] })])
      expect(renderReport(run, []).whole).not.toMatch(/NaN|undefined|Infinity|\[object/);
  });
});

/** A run of which every text is the given one. */
function hostile(text: string): [RunRecord, readonly QuestionRecord[]] {
  const [first, second] = [
    { ...README_ARM, id: `1${text}` },
    { ...EXACT_ARM, id: `2${text}`, k: 21 },
  ];
  const run = runOf({
    memprefix: text,
    node: text,
    mem0: text,
    machine: { platform: text, cpu: text, cores: 1, memoryMegabytes: 1 },
    startedAt: text,
    finishedAt: null,
    data: { file: text, sha256: text },
    conversations: [{ id: text, memories: 1, questions: 2 }],
    engine: { kind: "url", model: text, url: text, emptied: text, served: null },
    judge: { url: text, model: text },
    arms: [first, second],
  });
  const texts = { conversation: text, answer: text, gold: text };
  const records = [
    answeredBy(first, 1, { ...texts, promptTokens: 10, cachedTokens: 5, ttftMs: 3 }),
    failedBy(second, 1, { conversation: text, message: text }),
  ];
  return [run, records];
}

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

describe("answers in a report", () => {
  it("says what changed of answers, each difference with its interval", () => {
    const { summary, whole } = report(true);
    const [heading, , , , first] = summary.split("\n\n");
    expect(heading).toMatch(/^# LoCoMo/);
    expect(first).toMatch(
      /^- Answers, by the judge: of 2 ways to build prompts, 0 scored higher .* and 1 lower; for 1 no/,
    );
    expect(first).toContain("Single prompts, k = 20: memprefix, sorted: −50.0 (−");
    expect(first).toContain("memprefix, defaults: 0.0 (0.0 to 0.0) points against Mem0’s README");
    expect(first).toContain("Where no score differed, up to 37.5 % of questions may still score differently");
    expect(whole).toContain("\n## Answers: Single prompts, k = 20\n");
  });

  it("says that answers were not measured, and has no table of them", () => {
    const { summary, whole } = report(false);
    expect(summary).toMatch(
      /\n- No answers were compared, since none was scored in two arms: this run says nothing about their quality\.$/,
    );
    expect(whole).not.toMatch(/^## Answers/m);
  });
});
