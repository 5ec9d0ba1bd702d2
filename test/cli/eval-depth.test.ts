import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { messageText } from "../../src/core/text/message.js";
import { isAnswered } from "../../src/eval/base/run-record.js";
import { uncachedTokens } from "../../src/eval/measures/measured.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { linesOf, SAMPLE, untimed, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";

const SURE = [Math.log(0.99)];
const UNSURE = Array.from({ length: 10 }, () => Math.log(0.1));
const ADAPTIVE = "single k=8 prefix-exact depth from 2 at 0.5 nats";

describe("memprefix eval locomo --adaptive-depth", () => {
  const memprefix = commands();
  const engine = openAiEngine();
  const asked = (...more: string[]) => [
    ...["eval", "locomo", "--data", SAMPLE, "--out", join(memprefix.root, "out"), "--k", "8"],
    ...["--layout", "single", "--policies", "prefix-exact"],
    ...["--engine", engine.url, "--model", "stub-1", "--limit", "4", "--warm-up", "0", ...more],
  ];
  /** Sure at two memories; at four; at neither; and no log-probabilities at all. */
  beforeEach(() => void engine.firstTokens.push(SURE, UNSURE, SURE, UNSURE, UNSURE));

  it("gives each prompt as many memories as the engine is sure with, as the proxy does, and counts its tries", async () => {
    expect(await memprefix.run(asked("--adaptive-depth", "off,2:0.5"))).toMatchObject({ code: 0, stderr: "" });
    const { run, records } = writtenRun(join(memprefix.root, "out"));
    expect(run.arms.map(({ id }) => id)).toEqual(["single k=8 prefix-exact", ADAPTIVE]);
    const answered = records.filter(isAnswered);
    const [all, adaptive] = run.arms.map(({ id }) => answered.filter(({ arm }) => arm === id));
    expect(all?.map(({ depth }) => depth)).toEqual([null, null, null, null]);
    expect(
      adaptive?.map(({ depth }) => [depth?.outcome, depth?.given, depth?.probes.map(({ blocks }) => blocks)]),
    ).toEqual([
      ["sure", 2, [2]],
      ["sure", 4, [2, 4]],
      ["unsure", 8, [2, 4]],
      ["unavailable", 8, []],
    ]);

    const tries = engine.requests.filter(({ raw }) => raw.includes('"top_logprobs"'));
    expect(tries.length).toBe(6);
    const memoriesIn = ({ body }: (typeof tries)[number]) =>
      body.messages.map(messageText).join("\n").match(/^- /gm)?.length ?? 0;
    expect(tries.map(memoriesIn)).toEqual([2, 2, 4, 2, 4, 2]);
    for (const one of adaptive ?? []) {
      const prompts = [...(one.depth?.probes ?? []), one];
      expect(uncachedTokens(one)).toBe(
        prompts.reduce((sum, { promptTokens, cachedTokens }) => sum + (promptTokens ?? 0) - (cachedTokens ?? 0), 0),
      );
    }
    // A try is a prefix of what is sent.
    expect(adaptive?.[0]?.cachedTokens).toBeGreaterThan((adaptive?.[0]?.promptTokens ?? 0) / 2);
    expect(await memprefix.run(asked("--adaptive-depth", "off,2:0.5", "--resume"))).toMatchObject({
      stdout: expect.stringContaining("depth from 2 at 0.5 nats"),
    });
  });

  it("adds one memory a try, as AdaCache does, with +1", async () => {
    engine.firstTokens.splice(0, Number.POSITIVE_INFINITY, UNSURE, UNSURE, SURE, SURE, SURE, SURE);
    expect(await memprefix.run(asked("--adaptive-depth", "1:0.5:+1"))).toMatchObject({ code: 0, stderr: "" });
    const { run, records } = writtenRun(join(memprefix.root, "out"));
    expect(run.arms.map(({ id }) => id)).toEqual(["single k=8 prefix-exact depth from 1 at 0.5 nats one by one"]);
    const [first, second] = records.filter(isAnswered).map(({ depth }) => depth?.probes.map(({ blocks }) => blocks));
    expect([first, second]).toEqual([[1, 2, 3], [1]]);
  });

  it("goes on where it was stopped, with the tries that were recorded", async () => {
    const out = join(memprefix.root, "out", "results.jsonl");
    expect(await memprefix.run(asked("--adaptive-depth", "2:0.5"))).toMatchObject({ code: 0 });
    const whole = untimed(join(memprefix.root, "out"));
    const before = engine.requests.length;
    writeFileSync(out, `${linesOf(out).slice(0, 2).join("\n")}\n`);
    engine.firstTokens.push(UNSURE, UNSURE);
    expect(await memprefix.run(asked("--adaptive-depth", "2:0.5", "--resume"))).toMatchObject({ code: 0 });
    const again = untimed(join(memprefix.root, "out"));
    expect(again.slice(0, 2)).toEqual(whole.slice(0, 2));
    const { records } = writtenRun(join(memprefix.root, "out"));
    expect(records.filter(isAnswered).map(({ depth }) => depth?.outcome)).toEqual([
      "sure",
      "sure",
      "unsure",
      "unavailable",
    ]);
    // Two questions are left: their tries, their answers, and what tries the engine out.
    const tries = engine.requests.slice(before).filter(({ raw }) => raw.includes('"top_logprobs"'));
    expect(tries.length).toBe(3);
  });

  it("refuses engines without log-probabilities, and values that are none", async () => {
    const simulated = ["eval", "locomo", "--data", SAMPLE, "--out", join(memprefix.root, "out")];
    expect(await memprefix.run([...simulated, "--adaptive-depth", "5:1"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--adaptive-depth: needs an engine that gives log-probabilities"),
    });
    for (const wrong of ["on", "5", "0:1", "5:-1", "5:1:2", "5:1:+2"])
      expect(await memprefix.run([...simulated, "--adaptive-depth", wrong]), wrong).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("--adaptive-depth"),
      });
  });
});
