import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { messageText } from "../../src/core/text/message.js";
import type { AnsweredQuestion } from "../../src/eval/base/run-record.js";
import { readLocomo } from "../../src/eval/locomo/locomo-data.js";
import { tokenF1 } from "../../src/eval/scores/answer-scores.js";
import {
  eventOf,
  openAiEngine,
  openEvents,
  type Received,
  sendEvents,
  sendJson,
  streamedAnswer,
  wholeAnswer,
} from "../http/routes/openai-engine.js";
import { SAMPLE, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";

const questions = readLocomo(JSON.parse(readFileSync(SAMPLE, "utf8")))[0]?.questions ?? [];
const WRONG = "A lighthouse in Norway";

function askedIn({ body }: Received): string {
  return (
    messageText(body.messages.at(-1) ?? { role: "user" })
      .split("\n")
      .at(-1) ?? ""
  );
}

function goldOf(request: Received): string {
  return questions.find(({ question }) => question === askedIn(request))?.answer ?? "Yes.";
}

function usageOf(prompt_tokens: number, cached_tokens: number) {
  return {
    prompt_tokens,
    completion_tokens: 5,
    total_tokens: prompt_tokens + 5,
    prompt_tokens_details: { cached_tokens },
  };
}

describe("memprefix eval locomo, with an engine behind an address", () => {
  const memprefix = commands();
  const engine = openAiEngine();
  const judge = openAiEngine();
  const out = () => join(memprefix.root, "out");
  const command = (...args: string[]) => {
    const engineArgs = ["--engine", engine.url, "--model", "stub-1"];
    return ["eval", "locomo", "--data", SAMPLE, "--out", out(), "--k", "5", "--limit", "6", ...engineArgs, ...args];
  };
  const answered = () =>
    writtenRun(out()).records.map((record): AnsweredQuestion => {
      if (record.outcome === "failed") throw new Error(record.message);
      return record;
    });

  it("scores what was answered, has it judged, and tells memprefix what was cached", async () => {
    // The third question is answered wrong, in every arm.
    engine.behave((request, response) => {
      const answer = askedIn(request) === questions[2]?.question ? WRONG : goldOf(request);
      sendEvents(response, streamedAnswer(answer, usageOf(321, 32)));
    });
    judge.behave(({ body }, response, usage) => {
      const label = messageText(body.messages[0] ?? { role: "user" }).includes(WRONG) ? "WRONG" : "CORRECT";
      sendJson(response, 200, wholeAnswer(`{"label":"${label}"}`, usage));
    });
    const judging = ["--judge", judge.url, "--judge-model", "judge-1"];
    const ended = await memprefix.run(command("--policies", "readme,prefix-exact", ...judging), {
      environment: { OPENAI_API_KEY: "sk-test" },
    });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const records = answered();
    expect(records).toHaveLength(12);
    for (const record of records) {
      const isWrong = record.question === 2;
      expect(record).toMatchObject({ promptTokens: 321, cachedTokens: 32, answerTokens: 5 });
      expect(record.ttftMs).toBeGreaterThan(0);
      expect(record.answer).toBe(isWrong ? WRONG : record.gold);
      expect(record.f1).toBe(isWrong ? tokenF1(WRONG, record.gold ?? "") : 1);
      expect(record.judge).toMatchObject({ isCorrect: !isWrong, raw: expect.stringContaining("label") });
      expect(record.judge?.prompt).toContain(record.gold);
      // One to warm up for every arm, as for every real engine.
      expect(record.isWarmUp).toBe(record.question === 0);
    }
    const [probe, ...prompts] = engine.requests;
    expect(probe?.body.messages).toHaveLength(1);
    expect(prompts).toHaveLength(12);
    for (const { body, headers } of prompts) {
      expect(headers.authorization).toBe("Bearer sk-test");
      expect(body).toMatchObject({ model: "stub-1", temperature: 0, stream: true, max_tokens: 64 });
    }
    // Nothing but a first line keeps the arms apart here: the same within an arm, another in the other one.
    const marks = prompts.map(({ body }) => messageText(body.messages[0] ?? { role: "system" }).split("\n")[0]);
    expect(new Set(marks).size).toBe(2);
    expect(marks.every((mark) => /^Session [0-9a-f]{24}\.$/.test(mark ?? ""))).toBe(true);
    const { run } = writtenRun(out());
    expect(run.engine).toMatchObject({ kind: "url", model: "stub-1", url: engine.url });
    expect(run.judge).toEqual({ url: judge.url, model: "judge-1" });
    expect(readFileSync(join(out(), "run.json"), "utf8")).not.toContain("sk-test");
  });

  it("keeps arms apart by a salt where the engine honours one", async () => {
    engine.behave((request, response) => sendEvents(response, streamedAnswer(goldOf(request), usageOf(100, 0))));
    const args = ["--policies", "readme,prefix-exact", "--engine-family", "vllm", "--limit", "2"];
    expect(await memprefix.run(command(...args))).toMatchObject({ code: 0 });
    const prompts = engine.requests.slice(1);
    const salts = prompts.map(({ body }) => (body as { cache_salt?: unknown }).cache_salt);
    expect(salts).toEqual([salts[0], salts[1], salts[1], salts[0]]);
    expect(salts[0]).not.toBe(salts[1]);
    for (const { body } of prompts) expect(messageText(body.messages[0] ?? { role: "" })).toMatch(/^You are a helpful/);
  });

  it("records and counts a question that fails, and what a judge fails with, and goes on", async () => {
    engine.behave((request, response, usage) => {
      switch (questions.findIndex(({ question }) => question === askedIn(request))) {
        case 1:
          return sendJson(response, 503, { error: { message: "overloaded" } });
        case 2:
          // Broken off in the middle.
          openEvents(response);
          response.write(eventOf(streamedAnswer("Half", null)[1] ?? {}));
          return void response.end();
        case 3:
          return sendEvents(response, [{ error: { message: "out of memory" } }]);
        case 4:
          // It has no streams.
          return sendJson(response, 200, wholeAnswer(goldOf(request), usage));
        default:
          return sendEvents(response, streamedAnswer(goldOf(request), null));
      }
    });
    judge.behave((_request, response) => sendJson(response, 500, { error: { message: "no" } }));
    const judging = ["--judge", judge.url, "--judge-model", "judge-1"];
    const ended = await memprefix.run(command("--policies", "prefix-exact", ...judging));
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stdout).toContain("3 of 6 prompts failed; results.jsonl says how.");
    expect(ended.stdout).toContain("The judge gave no verdict on 3 answers; results.jsonl says why.");
    const { records } = writtenRun(out());
    expect(
      records.map((record) => (record.outcome === "failed" ? [record.stage, record.message] : record.ttftMs)),
    ).toEqual([
      expect.any(Number),
      ["engine", "the engine answered with status 503: overloaded"],
      ["engine", "the engine's stream ended before its answer did"],
      ["engine", "the engine broke off its answer: out of memory"],
      null,
      expect.any(Number),
    ]);
    expect(records[0]).toMatchObject({ promptTokens: null, cachedTokens: null, expectedCachedTokens: null });
    expect(records[5]).toMatchObject({
      judge: { isCorrect: null, raw: expect.stringMatching(/^failed: .*answered with status 500/) },
    });
  });

  it("ends with 3 where every question failed", async () => {
    engine.behave((request, response) => {
      if (request.body.messages.length === 1) return sendEvents(response, streamedAnswer("Yes.", null));
      return sendJson(response, 400, { error: { message: "too long" } });
    });
    const ended = await memprefix.run(command("--policies", "readme,retrieval", "--limit", "2"));
    expect(ended.code).toBe(3);
    expect(ended.stdout).toContain("4 of 4 prompts failed");
  });
});
