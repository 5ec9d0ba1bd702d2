import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { messageText } from "../../src/core/text/message.js";
import { qualityChange, verdictOf } from "../../src/eval/measures/quality-change.js";
import { openAiEngine, type Received, sendEvents, sendJson, streamedAnswer } from "../http/routes/openai-engine.js";
import { linesOf, SAMPLE, untimed, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";

/** Nats a token by which the stub holds the right answer likelier: with labelled lines, and with lines in a section. */
const PLANTED = { labels: -0.25, lines: -0.15 } as const;

/** From 0 to below 1, the same for the same text. */
function drawn(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE() / 2 ** 32;
}

/** Log-likelihood per token: most differs between questions, then what was planted, then noise. */
function likelihoodAfter(messages: Received["body"]["messages"]): number {
  const [system = "", user = ""] = messages.map(messageText);
  return (
    -3 +
    2 * drawn(user.split("\n").at(-1) ?? "") +
    (/^\[Doc_\d+\] /m.test(`${system}\n${user}`) ? PLANTED.labels : 0) +
    (user.includes("<memories>") ? PLANTED.lines : 0) +
    0.4 * (drawn(`noise ${system} ${user}`) - 0.5)
  );
}

const scored = z.object({ prompt: z.array(z.int()), prompt_logprobs: z.literal(0), max_tokens: z.literal(1) });
const FIRST_ANSWER_TOKEN = 1_000_000;

describe("memprefix eval locomo --score likelihood", () => {
  const memprefix = commands();
  const engine = openAiEngine();
  const judge = openAiEngine();
  const asked = (out: string, arms: string) => [
    ...["eval", "locomo", "--data", SAMPLE, "--out", out, "--k", "8", "--layout", "single", ...arms.split(" ")],
    ...["--engine", engine.url, "--model", "stub-1", "--engine-family", "vllm"],
  ];

  /** As vLLM: a chat's only token names it, and every word of an answer is a token. */
  function behave(weights = "Some/Model") {
    const chats: Received["body"]["messages"][] = [];
    engine.list((_request, response) => sendJson(response, 200, { data: [{ id: "stub-1", root: weights }] }));
    engine.behave(({ url, body, raw }, response, usage) => {
      if (url.endsWith("/tokenize")) {
        const { prompt } = z.object({ prompt: z.string().optional() }).parse(JSON.parse(raw));
        const tokens =
          prompt === undefined
            ? [chats.push(body.messages) - 1]
            : prompt.split(/\s+/).map((_word, at) => FIRST_ANSWER_TOKEN + at);
        return sendJson(response, 200, { tokens });
      }
      if (!url.endsWith("/completions") || url.endsWith("/chat/completions"))
        return sendEvents(response, streamedAnswer("Yes.", usage));
      const [chat = 0, ...answer] = scored.parse(JSON.parse(raw)).prompt;
      const logprob = likelihoodAfter(chats[chat] ?? []);
      const prompt_logprobs = [null, ...answer.map((token) => ({ [token]: { logprob }, 7: { logprob: -0.1 } }))];
      return sendJson(response, 200, { choices: [{ prompt_logprobs }] });
    });
  }

  it("finds what was planted in form and annotations, within its interval", async () => {
    behave();
    const out = join(memprefix.root, "out");
    const arms = "--policies last-message,retrieval --annotations default,paper --score likelihood --warm-up 0";
    expect(await memprefix.run(asked(out, arms))).toMatchObject({ code: 0, stderr: "" });

    const { run, records } = writtenRun(out);
    expect(run.engine.served).toEqual({ version: null, weights: "Some/Model" });
    expect(run.arms.map(({ id }) => id)).toEqual([
      "single k=8 last-message",
      "single k=8 retrieval",
      "single k=8 retrieval annotations=paper",
    ]);
    const change = qualityChange(run, records);
    expect(change?.score).toBe("log-likelihood");
    // Lines against Mem0's list; lines with the paper's labels against the list.
    const planted = [PLANTED.lines, PLANTED.lines + PLANTED.labels];
    for (const [at, one] of change?.arms.entries() ?? []) {
      if (one.found === null) throw new Error(one.arm.id);
      expect([one.arm.id, verdictOf(one.found)]).toEqual([one.arm.id, "lower"]);
      expect(one.found.difference.low).toBeLessThanOrEqual(planted[at] ?? 0);
      expect(one.found.difference.high).toBeGreaterThanOrEqual(planted[at] ?? 0);
    }
  });

  it("goes on where it was stopped, on the same weights only", async () => {
    behave();
    const out = join(memprefix.root, "out");
    const arms = "--policies last-message,retrieval --score likelihood --warm-up 0 --limit 4";
    expect(await memprefix.run(asked(out, arms))).toMatchObject({ code: 0 });
    const whole = untimed(out);
    writeFileSync(join(out, "results.jsonl"), `${linesOf(join(out, "results.jsonl")).slice(0, 3).join("\n")}\n`);
    behave("Another/Model");
    expect(await memprefix.run([...asked(out, arms), "--resume"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--resume: the engine served {"version":null,"weights":"Some/Model"}'),
    });
    behave();
    expect(await memprefix.run([...asked(out, arms), "--resume"])).toMatchObject({ code: 0 });
    expect(untimed(out)).toEqual(whole);
    expect(engine.requests.filter(({ url }) => url.endsWith("/chat/completions"))).toEqual([]);
  });

  it("scores words beside it, and asks for neither of a warm-up where nothing is generated", async () => {
    behave();
    const [both, warm] = [join(memprefix.root, "both"), join(memprefix.root, "warm")];
    expect(
      await memprefix.run(asked(both, "--policies retrieval --score words,likelihood --warm-up 0 --limit 2")),
    ).toMatchObject({
      code: 0,
    });
    for (const one of writtenRun(both).records)
      expect(one).toMatchObject({
        outcome: "answered",
        f1: 0,
        answer: "Yes.",
        likelihood: { tokens: 2 + one.question },
      });
    const limit = "--policies retrieval --score likelihood --limit 3 --warm-up 2";
    expect(await memprefix.run(asked(warm, limit))).toMatchObject({ code: 0 });
    expect(
      writtenRun(warm).records.map((one) => [one.isWarmUp, one.outcome === "answered" && one.likelihood !== null]),
    ).toEqual([
      [true, false],
      [true, false],
      [false, true],
    ]);
  });

  it("is not asked for in category 5, nor is a judge, where the file has an answer there", async () => {
    behave();
    const sample = z.array(z.looseObject({ qa: z.array(z.looseObject({ category: z.int() })) }));
    const [conversation] = sample.parse(JSON.parse(readFileSync(SAMPLE, "utf8")));
    const qa = conversation?.qa.map((one) => (one.category === 5 ? { ...one, answer: "No" } : one));
    const data = join(memprefix.root, "answered.json");
    writeFileSync(data, JSON.stringify([{ ...conversation, qa }]));
    const out = join(memprefix.root, "out");
    const arms = "--policies retrieval --score words,likelihood --warm-up 0 --categories 5";
    const args = [...asked(out, arms), "--data", data, "--judge", judge.url, "--judge-model", "judge-1"];
    expect(await memprefix.run(args)).toMatchObject({ code: 0 });
    const { records } = writtenRun(out);
    expect(records).toHaveLength(3);
    for (const one of records)
      expect(one).toMatchObject({ answer: "Yes.", gold: "No", f1: null, likelihood: null, judge: null });
    expect(judge.requests).toEqual([]);
  });

  it("refuses engines that give no log-probabilities of prompts", async () => {
    const ended = await memprefix.run([
      ...["eval", "locomo", "--data", SAMPLE, "--out", join(memprefix.root, "out"), "--score", "likelihood"],
    ]);
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining("--score likelihood: needs an engine") });
  });
});
