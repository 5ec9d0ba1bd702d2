import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SAMPLE, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";

describe("memprefix eval locomo", () => {
  const memprefix = commands();
  const out = () => join(memprefix.root, "out");
  const command = (directory: string, ...args: string[]) => [
    ...["eval", "locomo", "--data", SAMPLE, "--out", directory],
    ...args,
  ];

  it("compares a conversation with memprefix's defaults to both prompts by hand, and prints what was measured", async () => {
    const { code, stdout, stderr } = await memprefix.run(command(out(), "--limit", "2"));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(join(out(), "report.md"));
    const { run, records } = writtenRun(out());
    expect(run.finishedAt).not.toBeNull();
    const arms = ["readme", "last-message", "prefix-exact auto"].map((name) => `conversation k=20 ${name}`);
    expect(run.arms.map(({ id }) => id)).toEqual(arms);
    expect(records.map(({ outcome }) => outcome)).toEqual(Array(6).fill("answered"));
    expect(stdout).toMatch(/\n## Conversations, k = 20\n\n\| Prompts built by .*\n.*\n\| memprefix, defaults /);
    expect(stdout).not.toContain("not measured");
  });

  it.each([
    [
      "a file that is not there",
      ["--data", "none.json"],
      /cannot read none\.json: there is no such file; `curl -L -o none\.json https:.*locomo10\.json`/,
    ],
    ["a file in another format", ["--data", "package.json"], /not a LoCoMo file/],
    ["a conversation that is not there", ["--conversations", "conv-0"], /no conversation conv-0; there are: sample-1/],
    ["an engine that is none", ["--engine", "gpu"], /--engine: must be simulated, or an http or https address/],
    ["an engine without its model", ["--engine", "http://h/v1"], /--model: is needed for an engine behind an address/],
    ["a judge without its model", ["--judge", "http://127.0.0.1:9/v1"], /--judge-model: is needed with --judge/],
    ["windows of nothing", ["--layout", "single", "--window", "8"], /--window: needs --layout conversation/],
    [
      "an engine that does not answer",
      ["--engine", "http://127.0.0.1:9/v1", "--model", "m", "--limit", "1", "--k", "1"],
      /could not be reached: ECONNREFUSED/,
    ],
  ])("refuses %s in one line", async (_what, args, says) => {
    const { code, stdout, stderr } = await memprefix.run(command(out(), ...args));
    expect(stderr).toMatch(/^memprefix: .*\n$/);
    expect(stderr).toMatch(says);
    expect(code).toBe(/^memprefix: (--|option)/.test(stderr) ? 2 : 1);
    expect(stdout).toBe("");
  });

  it("names --out where that directory cannot be made", async () => {
    writeFileSync(out(), "");
    const places = [join(out(), "run"), ...(existsSync("/proc/self/status") ? ["/proc/run"] : [])];
    for (const place of places) {
      const refused = await memprefix.run(command(place));
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toMatch(/^memprefix: --out .*\/run: (ENOTDIR|ENOENT): .*\n$/);
    }
  });

  it("writes into no directory that holds something, and goes on with nothing that is no run", async () => {
    mkdirSync(out());
    writeFileSync(join(out(), "mine.txt"), "mine");
    const full = await memprefix.run(command(out()));
    expect(full).toMatchObject({ code: 1, stdout: "" });
    expect(full.stderr).toMatch(
      /^memprefix: --out .*: is not empty; give another directory, or --resume to continue the run in it\n$/,
    );
    const none = await memprefix.run(command(out(), "--resume"));
    expect(none).toMatchObject({ code: 1, stdout: "" });
    expect(none.stderr).toMatch(/^memprefix: cannot read .*run\.json/);
    expect(readdirSync(out())).toEqual(["mine.txt"]);
  });
});
