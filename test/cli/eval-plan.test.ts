import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { QuestionRecord } from "../../src/eval/base/run-record.js";
import { openAiEngine, sendJson, wholeAnswer } from "../http/routes/openai-engine.js";
import { SAMPLE, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";

/** The numbers of a row of a plan's tables, by its title. */
function rowOf(plan: string, title: string): number[] {
  const line = plan.split("\n").find((text) => text.startsWith(`| ${title} `));
  if (line === undefined) throw new Error(`no ${title} in ${plan}`);
  return line
    .split("|")
    .slice(2, -1)
    .map((cell) => Number(cell.replace(/[,%$\s]/g, "")));
}

function usedBy(records: readonly QuestionRecord[]) {
  const sum = (field: "promptTokens" | "cachedTokens" | "answerTokens") =>
    records.reduce((total, record) => total + (record.outcome === "answered" ? (record[field] ?? 0) : 0), 0);
  return { prompt: sum("promptTokens"), cached: sum("cachedTokens"), answers: sum("answerTokens") };
}

const within = (planned: number, used: number, share: number) => Math.abs(planned - used) <= share * used;

describe("memprefix eval plan", () => {
  const memprefix = commands();
  const engine = openAiEngine();
  const judge = openAiEngine();
  const out = () => join(memprefix.root, "out");
  const settings = (...more: string[]) => ["--data", SAMPLE, "--out", out(), "--k", "10", "--limit", "12", ...more];

  it("says what the run then uses, on the simulated engine, and leaves memories and searches to it", async () => {
    const arms = ["--layout", "single,conversation", "--policies", "readme,prefix-exact,carry-over", "--window", "6"];
    const plan = await memprefix.run(["eval", "plan", ...settings(...arms)]);
    expect(plan).toMatchObject({ code: 0, stderr: "" });
    expect(plan.stdout).toContain("--resume begins there");
    expect(plan.stdout).toContain("Answers: at most 0 tokens. Judging: no judge is named.");
    expect(plan.stdout).toContain(
      "Time: not known, as the engine is simulated. With --engine and --model, run the same options with --limit 5",
    );
    expect(await memprefix.run(["eval", "locomo", ...settings(...arms)])).toMatchObject({ code: 1 });
    expect(await memprefix.run(["eval", "locomo", ...settings(...arms), "--resume"])).toMatchObject({ code: 0 });
    const { run, records } = writtenRun(out());
    for (const arm of run.arms) {
      const { prompt, cached } = usedBy(records.filter((record) => record.arm === arm.id));
      expect(rowOf(plan.stdout, arm.id).slice(0, 3), arm.id).toEqual([12, prompt, cached]);
    }
    // Nothing is left of a run that ended.
    const after = await memprefix.run(["eval", "plan", ...settings(...arms)]);
    expect(rowOf(after.stdout, "all").slice(0, 2)).toEqual([0, 0]);
  });

  it("is within 5 % of what an engine behind an address counts; answers and judging are at most what it says", async () => {
    let judgedTokens = 0;
    judge.behave((_request, response, usage) => {
      judgedTokens += usage.prompt_tokens;
      sendJson(response, 200, wholeAnswer('{"label":"WRONG"}', usage));
    });
    const engines = ["--engine", engine.url, "--model", "stub-1", "--judge", judge.url, "--judge-model", "judge-1"];
    const arms = ["--policies", "readme,retrieval,prefix-exact", "--max-tokens", "20"];
    const rates = ["--prefill-rate", "1000", "--answer-rate", "10"];
    const plan = await memprefix.run(["eval", "plan", ...settings(...arms), ...engines, ...rates]);
    expect(plan).toMatchObject({ code: 0, stderr: "" });
    // Nothing was asked.
    expect([...engine.requests, ...judge.requests]).toEqual([]);
    expect(await memprefix.run(["eval", "locomo", ...settings(...arms), ...engines, "--resume"])).toMatchObject({
      code: 0,
    });
    const { records } = writtenRun(out());
    const used = usedBy(records);
    const [questions, prompt = 0, cached = 0] = rowOf(plan.stdout, "all");
    expect(questions).toBe(36);
    expect(within(prompt, used.prompt, 0.05)).toBe(true);
    // A radix cache holds parts of blocks too.
    expect(within(cached, used.cached, 0.15)).toBe(true);
    expect(plan.stdout).toContain("Answers: at most 720 tokens. Judging: 36 calls");
    expect(used.answers).toBeLessThanOrEqual(720);
    const judging = Number(/at most ([\d,]+) prompt tokens/.exec(plan.stdout)?.[1]?.replaceAll(",", ""));
    expect(judgedTokens).toBeLessThanOrEqual(judging + 36 * 10);
    expect(within(judging, judgedTokens, 0.15)).toBe(true);
    const [prompts = 0, answers = 0, judgement = 0, all = 0] = rowOf(plan.stdout, "OpenAI gpt-6.2-sol");
    expect(all).toBeCloseTo(prompts + answers + judgement, 2);
    expect(answers).toBeCloseTo((720 * 10) / 1e6, 3);
    expect(plan.stdout).toMatch(
      /Time, one prompt after the other, at 1,000 prompt tokens a second and 10 answer tokens a second: prompts \d+ s, answers at most 72 s; together at most \d+/,
    );
    // The run measured its own rate.
    const again = ["--rates-from", out(), "--out", join(memprefix.root, "again")];
    const measured = await memprefix.run(["eval", "plan", ...settings(...arms), ...again]);
    expect(measured.stdout).toMatch(
      /prompts \d+ s, answers at most \d+ s \(\d+ s if as long as those measured: \d+ tokens each\)/,
    );
  });

  it("cannot plan with memories that a language model makes", async () => {
    const extract = ["--ingest", "extract", "--extract-url", engine.url, "--extract-model", "m"];
    const ended = await memprefix.run(["eval", "plan", ...settings(...extract)]);
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toContain("--ingest extract: its memories are a language model's");
  });
});
