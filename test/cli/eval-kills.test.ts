import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { seeded } from "../../src/eval/measures/bootstrap.js";
import { linesOf, SAMPLE, untimed, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";
import { processes } from "./memprefix-process.js";

const SEED = 20_261_121;
const ROUNDS = 4;

describe("memprefix eval locomo, killed", () => {
  const memprefix = commands();
  const killable = processes();
  const out = (name: string) => join(memprefix.root, name);
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
    expect(await memprefix.run(command(out("killed"), ...args, "--resume"))).toMatchObject({ code: 0 });
    expect(untimed(out("killed"))).toEqual(whole);
    expect(writtenRun(out("killed")).run).toEqual(run);
  }, 300_000);
});
