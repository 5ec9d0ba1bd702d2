import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SAMPLE } from "./eval-directory.js";
import { commands } from "./memstem-process.js";

/** Run in front of a command: at its end it leaves the paths of what `require` loaded, as it does the tokenizer. */
const NOTE = `process.on("exit", () => require("node:fs").writeFileSync(process.env.LOADED, Object.keys(require.cache).join("\\n")));`;

describe("memstem tells mistakes before it loads its tokenizer:", () => {
  const memstem = commands();

  async function ended(args: readonly string[], environment: Readonly<Record<string, string>>, input = "") {
    const [note, loaded] = [join(memstem.root, "note.cjs"), join(memstem.root, "loaded.txt")];
    writeFileSync(note, NOTE);
    const noted = { ...environment, NODE_OPTIONS: `--require=${note}`, LOADED: loaded };
    const { code, stderr } = await memstem.run(args, { input, environment: noted });
    return { code, stderr, hasTokenizer: readFileSync(loaded, "utf8").includes("/gpt-tokenizer/") };
  }

  it.each([
    ["a setting of a service", ["serve"], { MEMSTEM_PORT: "x" }, "memstem: MEMSTEM_PORT: "],
    ["a setting of a compose", ["compose"], { MEMSTEM_TOP_K: "x" }, "memstem: MEMSTEM_TOP_K: "],
    ["a compose without a body", ["compose"], {}, "memstem: standard input: is not JSON"],
    ["a database that is not there", ["explain", "r-1", "--user", "ada"], {}, "memstem: cannot open the database"],
    ["a trace that is not there", ["replay", "--trace", "none.json"], {}, "memstem: cannot read none.json"],
    [
      "a data set that is not there",
      ["eval", "locomo", "--data", "none.json", "--out", "out"],
      {},
      "memstem: cannot read none.json",
    ],
    [
      "a cost that is none",
      ["eval", "locomo", "--data", SAMPLE, "--out", "out", "--cost", "x"],
      {},
      "memstem: --cost: must be one of",
    ],
  ])("%s", async (_what, args, environment, says) => {
    const { code, stderr, hasTokenizer } = await ended(args, environment);
    expect(stderr).toContain(says);
    expect({ code, hasTokenizer }).toEqual({ code: 1, hasTokenizer: false });
  });

  it("where a prompt is composed, it is loaded, and seen to be", async () => {
    const input = JSON.stringify({ user_id: "ada", query: "Tea?", memories: [{ id: "m", memory: "Ada drinks tea" }] });
    const { code, hasTokenizer } = await ended(["compose"], { MEMSTEM_SOURCE: "none" }, input);
    expect({ code, hasTokenizer }).toEqual({ code: 0, hasTokenizer: true });
  });
});
