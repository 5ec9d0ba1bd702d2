import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { countO200k, encodeO200k } from "../../src/cli/o200k.js";
import { SimulatedCache } from "../../src/core/cache/simulated-cache.js";
import { ORDERING_POLICIES } from "../../src/core/index.js";
import type { AnsweredQuestion, EvalArm, QuestionRecord } from "../../src/eval/base/run-record.js";
import { readTrace } from "../../src/eval/replay/recorded-trace.js";
import { replayTrace } from "../../src/eval/replay/replay-trace.js";
import { linesOf, SAMPLE, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";

const tokens = { encode: encodeO200k, countTokens: countO200k };

function answersOf(records: readonly QuestionRecord[], arm: EvalArm): AnsweredQuestion[] {
  return records
    .filter((record) => record.arm === arm.id)
    .map((record) => {
      if (record.outcome === "failed") throw new Error(`${arm.id}, question ${record.question}: ${record.message}`);
      return record;
    });
}

describe("memprefix eval locomo, simulated", () => {
  const memprefix = commands();
  const out = (name = "out") => join(memprefix.root, name);
  const command = (directory: string, ...args: string[]) => [
    ...["eval", "locomo", "--data", SAMPLE, "--out", directory],
    ...args,
  ];

  it("costs what replaying its own searches costs, to the token, in every arm", async () => {
    const args = ["--k", "10", "--layout", "single,conversation", "--retention", "keep,ephemeral,auto"];
    args.push("--policies", "readme,retrieval,context-pilot,prefix-exact,carry-over");
    const { code, stdout, stderr } = await memprefix.run(command(out(), ...args));
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toContain(join(out(), "report.md"));
    const { run, records } = writtenRun(out());
    expect(run.finishedAt).not.toBeNull();
    expect(run.conversations).toEqual([{ id: "sample-1", memories: 59, questions: 27 }]);
    // Five single arms; as a conversation Mem0's README's once, and four policies with each retention.
    expect(run.arms).toHaveLength(5 + 1 + 4 * 3);
    expect(new Set(records.map(({ question }) => question)).size).toBe(27);
    for (const arm of run.arms) {
      const answers = answersOf(records, arm);
      expect(answers.map(({ question }) => question)).toEqual(
        [...answers.map(({ question }) => question)].sort((a, b) => a - b),
      );
      if (arm.policy === "readme" || arm.policy === "last-message") continue;
      const trace = readTrace(JSON.parse(readFileSync(join(out(), "traces", `sample-1-k${arm.k}.json`), "utf8")));
      const replayed = replayTrace(trace, new SimulatedCache("blocks"), tokens, {
        k: arm.k,
        policy: ORDERING_POLICIES[arm.policy],
        budgetRatio: arm.policy === "carry-over" ? 1.5 : null,
        layout: arm.layout,
        retention: arm.retention ?? undefined,
        reports: true,
      });
      type Counted = Pick<AnsweredQuestion, "promptTokens" | "cachedTokens" | "expectedCachedTokens">;
      const counts = (of: Counted) => [of.promptTokens, of.cachedTokens, of.expectedCachedTokens];
      expect(answers.map(counts), arm.id).toEqual(replayed.requests.map(counts));
      const sum = (field: "retrievedTokens" | "memoryTokens" | "evidence" | "evidenceInPrompt") =>
        answers.reduce((total, answer) => total + answer[field], 0);
      for (const field of ["retrievedTokens", "memoryTokens", "evidence", "evidenceInPrompt"] as const) {
        expect(sum(field), `${arm.id}, ${field}`).toBe(replayed.totals[field]);
      }
    }
  });

  it("asks every arm the same with the same memories, another one first each time", async () => {
    expect(await memprefix.run(command(out(), "--k", "20", "--limit", "6"))).toMatchObject({
      code: 0,
    });
    const { run, records } = writtenRun(out());
    const rounds = run.arms.map((_, n) => records.slice(n * run.arms.length, (n + 1) * run.arms.length));
    for (const [n, round] of rounds.entries()) {
      expect(new Set(round.map(({ question }) => question)).size).toBe(1);
      expect(round[0]?.arm).toBe(run.arms[n % run.arms.length]?.id);
      const retrieved = round.map((record) => record.outcome === "answered" && record.retrievedTokens);
      expect(new Set(retrieved).size).toBe(1);
    }
    for (const arm of run.arms) {
      for (const answer of answersOf(records, arm)) {
        expect(answer).toMatchObject({
          ttftMs: null,
          answer: null,
          f1: null,
          judge: null,
          isWarmUp: false,
        });
        expect(answer.gold).toEqual(expect.any(String));
      }
    }
  });

  it("keeps every dialogue turn as a memory where asked to, each its own evidence", async () => {
    const args = ["--ingest", "turns", "--k", "10", "--policies", "prefix-exact", "--limit", "3", "--categories", "4"];
    expect(await memprefix.run(command(out(), ...args))).toMatchObject({ code: 0 });
    const { run, records } = writtenRun(out());
    expect(records).toHaveLength(3);
    expect(records.every(({ category }) => category === 4)).toBe(true);
    const trace = readTrace(JSON.parse(readFileSync(join(out(), "traces", "sample-1-k10.json"), "utf8")));
    expect(trace.memories).toHaveLength(run.conversations[0]?.memories ?? 0);
    expect(trace.memories[0]?.evidence).toEqual(["D1:1"]);
    expect(trace.memories[0]?.memory).toMatch(/^\w+ \(.+\): /);
  });

  it("gives memories their session's time in every arm, says so, and leaves it out where asked to", async () => {
    const args = ["--k", "10", "--layout", "single", "--policies", "readme,prefix-exact", "--limit", "3"];
    const runs = [
      {
        directory: out("timed"),
        more: [],
        starts: /^\d+:\d\d [ap]m on \d+ \w+, \d{4}: \w/,
        says: "given before each memory",
      },
      { directory: out("bare"), more: ["--no-times"], starts: /^[A-Z]/, says: "left out" },
    ];
    const tokens: number[] = [];
    for (const { directory, more, starts, says } of runs) {
      expect(await memprefix.run(command(directory, ...args, ...more))).toMatchObject({ code: 0 });
      const trace = readTrace(JSON.parse(readFileSync(join(directory, "traces", "sample-1-k10.json"), "utf8")));
      for (const { memory } of trace.memories) expect(memory).toMatch(starts);
      expect(readFileSync(join(directory, "report.md"), "utf8")).toContain(says);
      const { run, records } = writtenRun(directory);
      for (const arm of run.arms)
        tokens.push(answersOf(records, arm).reduce((sum, { memoryTokens }) => sum + memoryTokens, 0));
    }
    const [readme = 0, composed, bareReadme = 0, bareComposed] = tokens;
    expect(composed).toBe(readme);
    expect(bareComposed).toBe(bareReadme);
    expect(readme).toBeGreaterThan(bareReadme);
    const { code, stderr } = await memprefix.run(command(out("timed"), ...args, "--no-times", "--resume"));
    expect(code).toBe(1);
    expect(stderr).toContain("settings.times was true and is now absent");
  });

  it("refuses to go on with other settings or other data, and names what differs", async () => {
    const data = join(memprefix.root, "data.json");
    writeFileSync(data, readFileSync(SAMPLE));
    const of = (...args: string[]) => [
      ...["eval", "locomo", "--data", data, "--out", out(), "--limit", "2", "--policies", "readme"],
      ...args,
    ];
    expect(await memprefix.run(of("--k", "5"))).toMatchObject({ code: 0 });
    const before = readdirSync(out()).map((name) => [name, linesOf(join(out(), "results.jsonl"))]);
    const other = await memprefix.run(of("--k", "7", "--warm-up", "2", "--resume"));
    expect(other).toMatchObject({ code: 1, stdout: "" });
    expect(other.stderr).toMatch(
      /^memprefix: --resume: .* was begun with other settings.*: .*warmUpQuestions was 0 and is now 2; arms was \["conversation k=5 readme"\] and is now \["conversation k=7 readme"\]\n$/,
    );
    appendFileSync(data, " ");
    const changed = await memprefix.run(of("--k", "5", "--resume"));
    expect(changed).toMatchObject({ code: 1, stdout: "" });
    expect(changed.stderr).toMatch(/data\.sha256 was "[0-9a-f]{64}" and is now "[0-9a-f]{64}"\n$/);
    expect(readdirSync(out()).map((name) => [name, linesOf(join(out(), "results.jsonl"))])).toEqual(before);
  });
});
