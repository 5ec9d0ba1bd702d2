import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SETTING_NAMES, SETTING_TITLES, variableOf } from "../../src/cli/setting-list.js";
import { SERVE_FLAGS } from "../../src/cli/settings.js";
import { commands } from "./memprefix-command.js";

describe("memprefix --help", () => {
  const memprefix = commands();

  it("names the commands, also where none is given; --version and -v the version", async () => {
    const help = await memprefix.run(["--help"]);
    expect(help.code).toBe(0);
    expect(await memprefix.run([])).toEqual(help);
    for (const command of [...["serve", "doctor", "demo", "replay", "eval", "keys"]])
      expect(help.stdout).toMatch(new RegExp(`^ {2}${command}\\b`, "m"));
    for (const flag of ["--version", "-v"])
      expect(await memprefix.run([flag])).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      });
  });

  it("lists every setting with its default for serve", async () => {
    const { code, stdout } = await memprefix.run(["serve", "--help"]);
    expect(code).toBe(0);
    expect([...stdout.matchAll(/^ {2}(MEMPREFIX_\w+)/gm)].map(([, name]) => name)).toEqual(
      SETTING_NAMES.map(variableOf),
    );
    expect(stdout).toMatch(/MEMPREFIX_HOST .*\(127\.0\.0\.1\)/);
    expect(stdout).toMatch(/MEMPREFIX_PORT .*\(4600\)/);
    expect([...stdout.matchAll(/^([A-Z]\w+)$/gm)].map(([, title]) => title)).toEqual(Object.values(SETTING_TITLES));
    for (const flag of Object.values(SERVE_FLAGS)) expect(stdout).toContain(`  ${flag} <`);
  });

  it("lists for other commands only the settings that they use", async () => {
    const settings = async (command: string) => {
      const { stdout } = await memprefix.run([command, "--help"]);
      return [...stdout.matchAll(/^ {2}MEMPREFIX_(\w+)/gm)].map(([, name]) => name);
    };
    expect(await settings("keys")).toEqual(["DATA_DIR", "DATABASE_URL"]);
    expect(await settings("demo")).toEqual([]);
  });

  it("says what is wrong with a command line first, and in two lines: help of sixty would push it off the screen", async () => {
    const { code, stdout, stderr } = await memprefix.run(["doctor", "--nope"]);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: "",
      stderr: "memprefix: unknown option '--nope'\n--help says what it takes\n",
    });
  });

  it.each([[["keys", "list"]], [["keys", "revoke", "1f0c5b7a9d3e"]]])(
    "%j neither makes a data directory that was misspelt nor says that it holds nothing",
    async (args) => {
      const { code, stdout, stderr } = await memprefix.run(args);
      expect({ code, stdout, stderr }).toEqual({
        code: 1,
        stdout: "",
        stderr: `memprefix: cannot open the database ${memprefix.dataDir}/memprefix.db: there is no such file; MEMPREFIX_DATA_DIR says which directory\n`,
      });
      expect(existsSync(memprefix.dataDir)).toBe(false);
    },
  );

  it.each([
    [["demo", "--limit", "0"], /must be a whole number above 0/],
    [["eval", "locomo", "--data", "d.json", "--out", "o", "--k", "20,0"], /must be 1 to 1000/],
  ])("refuses memprefix %j", async (args, says) => {
    const { code, stdout, stderr } = await memprefix.run(args);
    expect(code).not.toBe(0);
    expect(stdout).toBe("");
    expect(stderr).toMatch(says);
  });
});
