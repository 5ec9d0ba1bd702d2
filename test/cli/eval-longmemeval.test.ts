import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { messageText } from "../../src/core/text/message.js";
import { LONGMEMEVAL_TYPES } from "../../src/eval/base/run-record.js";
import { LONGMEMEVAL_SAMPLE } from "../eval/locomo/longmemeval-sample.js";
import { openAiEngine, sendEvents, sendJson, streamedAnswer, wholeAnswer } from "../http/routes/openai-engine.js";
import { linesOf, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";

describe("memprefix eval longmemeval", () => {
  const memprefix = commands();
  const engine = openAiEngine();
  const judge = openAiEngine();
  const out = () => join(memprefix.root, "out");
  const data = () => join(memprefix.root, "longmemeval_s.json");
  const command = (...more: string[]) => {
    writeFileSync(data(), JSON.stringify(LONGMEMEVAL_SAMPLE));
    return ["eval", "longmemeval", "--data", data(), "--out", out(), "--k", "4", ...more];
  };
  const arms = ["--policies", "readme,prefix-exact"];

  it("asks questions of every type with their day, finds their sessions, judges each by what its gold answer is", async () => {
    engine.behave(({ body }, response, usage) => {
      const asked = messageText(body.messages.at(-1) ?? { role: "" });
      const gold = LONGMEMEVAL_SAMPLE.find(({ question }) => asked.endsWith(question))?.answer;
      sendEvents(response, streamedAnswer(String(gold ?? "Yes."), usage));
    });
    const rubrics: string[] = [];
    judge.behave(({ body }, response, usage) => {
      rubrics.push(messageText(body.messages[0] ?? { role: "" }));
      sendJson(response, 200, wholeAnswer('{"label":"CORRECT"}', usage));
    });
    const engines = ["--engine", engine.url, "--model", "stub-1", "--judge", judge.url, "--judge-model", "judge-1"];
    expect(await memprefix.run(command(...arms, ...engines, "--warm-up", "0"))).toMatchObject({ code: 0, stderr: "" });
    const { run, records } = writtenRun(out());
    expect(run).toMatchObject({ dataset: "longmemeval", ingest: "turns" });
    expect(run.conversations).toHaveLength(LONGMEMEVAL_SAMPLE.length);
    expect(records).toHaveLength(2 * LONGMEMEVAL_SAMPLE.length);
    for (const record of records) {
      if (record.outcome === "failed") throw new Error(record.message);
      const isAnswer = record.conversation !== "a96c20ee_abs" && record.conversation !== "8a2466db";
      expect(record).toMatchObject({ f1: isAnswer ? 1 : null, judge: { isCorrect: true }, question: 0 });
      expect(record.evidenceInPrompt, record.conversation).toBe(record.evidence);
    }
    for (const { body } of engine.requests.slice(1)) {
      expect(messageText(body.messages.at(-1) ?? { role: "" })).toMatch(/It is 2023\/05\/30 \(Tue\) 23:40\. .*\?$/);
    }
    const about = (id: string) => {
      const question = LONGMEMEVAL_SAMPLE.find(({ question_id }) => question_id === id)?.question ?? "";
      return rubrics.find((rubric) => rubric.includes(JSON.stringify(question)));
    };
    expect(about("a96c20ee_abs")).toContain("why it cannot be answered");
    expect(about("8a2466db")).toContain("what a good answer takes into account");
    expect(about("6a1eabeb")).toContain("the right answer, usually short");
    const report = readFileSync(join(out(), "report.md"), "utf8");
    expect(report).toMatch(/^# LongMemEval with Mem0/);
    for (const type of LONGMEMEVAL_TYPES) expect(report).toContain(`\n## ${type}: Single prompts`);
  });

  it("asks the types that are named, as many as are wanted", async () => {
    const picked = ["--categories", "single-session-user,multi-session,abstention", "--limit", "1"];
    expect(await memprefix.run(command(...arms, ...picked))).toMatchObject({ code: 0 });
    const { records } = writtenRun(out());
    expect(new Set(records.map(({ conversation }) => conversation))).toEqual(new Set(["e47becba"]));
  });

  it("counts no first answer after a stop, though every conversation is but one question", async () => {
    let left = 5;
    let stop = () => {};
    engine.behave(({ body }, response, usage) => {
      if (body.messages.length > 1 && left-- === 0) return stop();
      return sendEvents(response, streamedAnswer("Yes.", usage));
    });
    const args = command(...arms, "--engine", engine.url, "--model", "stub-1");
    const results = join(out(), "results.jsonl");
    const stopped = async (after: number, ...more: string[]) => {
      left = after;
      const begun = memprefix.begin([...args, ...more]);
      stop = () => begun.kill("SIGINT");
      const { code, stdout, stderr } = await begun.ended;
      expect(code).toBe(130);
      expect(stderr).toContain("stopping; press again to stop at once");
      expect(stdout).toMatch(/Stopped with \d+ prompts left; the same command with --resume continues\./);
      expect(existsSync(join(out(), "report.md"))).toBe(true);
      expect(writtenRun(out()).run.finishedAt).toBeNull();
    };
    // In the middle of the third conversation, and at the end of it.
    await stopped(5);
    expect(linesOf(results)).toHaveLength(5);
    await stopped(1, "--resume");
    expect(linesOf(results)).toHaveLength(6);
    left = Number.POSITIVE_INFINITY;
    expect(await memprefix.run([...args, "--resume"])).toMatchObject({ code: 0 });
    const { run, records } = writtenRun(out());
    const ids = LONGMEMEVAL_SAMPLE.map(({ question_id }) => question_id);
    const armIds = run.arms.map(({ id }) => id);
    expect(records.map(({ conversation, arm }) => [conversation, arm])).toEqual(
      ids.flatMap((id) => armIds.map((arm) => [id, arm])),
    );
    const warm = records.flatMap(({ isWarmUp }, at) => (isWarmUp ? [at] : []));
    expect(warm).toEqual([0, 1, 5, 6, 7]);
  });
});
