import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { AnsweredQuestion } from "../../src/eval/base/run-record.js";
import { seeded } from "../../src/eval/measures/bootstrap.js";
import { openAiEngine, sendEvents, streamedAnswer } from "../http/routes/openai-engine.js";
import { linesOf, SAMPLE, untimed, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";
import { processes } from "./memprefix-process.js";

const SEED = 20_261_121;
const ROUNDS = 4;

describe("memprefix eval locomo, killed", () => {
  const memprefix = commands();
  const killable = processes();
  const engine = openAiEngine();
  const out = (name = "out") => join(memprefix.root, name);
  const onEngine = () => ["--k", "5", "--limit", "6", "--engine", engine.url, "--model", "stub-1"];
  const answered = () =>
    writtenRun(out()).records.map((record): AnsweredQuestion => {
      if (record.outcome === "failed") throw new Error(record.message);
      return record;
    });
  const command = (directory: string, ...args: string[]) => [
    ...["eval", "locomo", "--data", SAMPLE, "--out", directory],
    ...args,
  ];

  it("gives the same figures where it was killed, whenever that was, and went on", async () => {
    const args = [
      ...["--k", "5,20", "--layout", "single,conversation", "--policies", "readme,prefix-exact,carry-over"],
      ...["--retention", "keep,auto", "--window", "6"],
    ];
    expect(await memprefix.run(command(out("whole"), ...args))).toMatchObject({ code: 0 });
    const whole = untimed(out("whole"));
    const random = seeded(SEED);
    const results = join(out("killed"), "results.jsonl");
    const searches = join(out("killed"), "searches.jsonl");
    const killed: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const begun = killable.begin(command(out("killed"), ...args, ...(round === 0 ? [] : ["--resume"])));
      const so = { results: linesOf(results).length, searches: linesOf(searches).length };
      // First while memories are loaded, then among the searches, then among the answers.
      const isThere = [
        () => existsSync(join(out("killed"), "mem0", "vectors.db")),
        () => linesOf(searches).length > so.searches + Math.floor(random() * 10),
      ][round];
      const wanted = so.results + 1 + Math.floor(random() * 40);
      const ended = begun.ended.then(() => true);
      await vi.waitUntil(
        async () => (isThere ?? (() => linesOf(results).length >= wanted))() || (await Promise.race([ended, false])),
        { timeout: 60_000, interval: 1 },
      );
      begun.kill("SIGKILL");
      expect((await begun.ended).signal).toBe("SIGKILL");
      killed.push(linesOf(results).length);
      // As a machine that goes down leaves it.
      if (existsSync(results)) appendFileSync(results, '{"arm":"single k=5 readme","conversa');
    }
    expect(killed.at(-1)).toBeGreaterThan(0);
    expect(killed.at(-1)).toBeLessThan(whole.length);
    expect(await memprefix.run(command(out("killed"), ...args, "--resume"))).toMatchObject({ code: 0, stderr: "" });
    expect(untimed(out("killed"))).toEqual(whole);
    const { run } = writtenRun(out("killed"));
    expect(run.finishedAt).not.toBeNull();
    expect(run.settings?.["resumedAt"]).toEqual(expect.arrayContaining([expect.any(String)]));
    expect(await memprefix.run(command(out("killed"), ...args, "--resume"))).toMatchObject({ code: 0 });
    expect(untimed(out("killed"))).toEqual(whole);
    expect(writtenRun(out("killed")).run).toEqual(run);
  }, 300_000);

  it("goes on after a kill without asking again, says so, and counts no answer of a cache that may be cold", async () => {
    let left = 5;
    let killed = () => {};
    engine.behave((request, response, usage) => {
      if (request.body.messages.length > 1 && left-- === 0) return killed();
      return sendEvents(response, streamedAnswer("Yes.", usage));
    });
    const args = ["--policies", "readme,prefix-exact", "--layout", "conversation"];
    const begun = killable.begin(command(out(), ...onEngine(), ...args));
    killed = () => begun.kill("SIGKILL");
    expect((await begun.ended).signal).toBe("SIGKILL");
    const before = linesOf(join(out(), "results.jsonl"));
    expect(before).toHaveLength(5);
    left = 100;
    expect(await memprefix.run(command(out(), ...onEngine(), ...args, "--resume"))).toMatchObject({ code: 0 });
    expect(linesOf(join(out(), "results.jsonl")).slice(0, 5)).toEqual(before);
    const records = answered();
    expect(records).toHaveLength(12);
    // A first question each, and, behind the five that were there, the next one of each arm.
    const warm = records.flatMap(({ isWarmUp, arm, question }) => (isWarmUp ? [`${question} ${arm}`] : []));
    const [readme, ours] = writtenRun(out()).run.arms.map(({ id }) => id);
    expect(warm.sort()).toEqual([`0 ${readme}`, `0 ${ours}`, `2 ${ours}`, `3 ${readme}`].sort());
    // Each conversation goes on from where it was: every answer that was given is in the last prompt.
    const last = engine.requests.at(-1)?.body.messages ?? [];
    expect(last.filter(({ role }) => role === "assistant")).toHaveLength(5);
  });
});
