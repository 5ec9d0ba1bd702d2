import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { answersIn, requestsIn } from "./batch-file.js";
import { commands } from "./memprefix-command.js";

const environment = { MEMPREFIX_SOURCE: "none" };
const request = (n: number) => ({
  user_id: `user-${n % 2}`,
  request_id: `r-${n}`,
  query: `Question ${n}?`,
  memories: [0, 1, 2].map((at) => ({ id: `m-${(n + at) % 5}`, memory: `Fact ${(n + at) % 5} is this.` })),
});

describe("memprefix batch", () => {
  const memprefix = commands();

  it("answers every line of a file, in the order in which they are to be executed", async () => {
    const file = requestsIn(memprefix.root, ...Array.from({ length: 20 }, (_, n) => JSON.stringify(request(n))));
    const { code, stdout, stderr } = await memprefix.run(["batch", file], { environment });
    expect(code).toBe(0);
    const answers = answersIn(stdout).flatMap((line) => ("answer" in line ? [line] : []));
    expect(answers.map(({ rank }) => rank)).toEqual(Array.from({ length: 20 }, (_, at) => at));
    expect(new Set(answers.map(({ index }) => index)).size).toBe(20);
    expect(stderr).toBe("20 composed, 0 failed\n");
  });

  it("writes to a file, makes a bad line an error in its place, and says by its exit code that there was one", async () => {
    const file = requestsIn(
      memprefix.root,
      JSON.stringify(request(0)),
      "{",
      JSON.stringify({ query: "Whose?" }),
      JSON.stringify(request(1)),
    );
    const out = join(memprefix.root, "answers.jsonl");
    const ended = await memprefix.run(["batch", file, "--out", out, "--window", "2"], { environment });
    expect(ended).toMatchObject({ code: 1, stdout: "", stderr: "2 composed, 2 failed\n" });
    const lines = answersIn(readFileSync(out, "utf8"));
    expect(
      lines.map((line) => ("problem" in line ? [line.index, line.problem.status] : "answer" in line && line.index)),
    ).toEqual([[1, 422], 0, [2, 422], 3]);
  });

  it("leaves the requests where their answers would go into their file, by whatever name", async () => {
    const file = requestsIn(memprefix.root, JSON.stringify(request(0)));
    const link = join(memprefix.root, "link.jsonl");
    symlinkSync(file, link);
    for (const out of [file, link]) {
      const { code, stderr } = await memprefix.run(["batch", file, "--out", out], { environment });
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("--out") });
      expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(request(0));
    }
  });

  it("leaves earlier answers where it cannot begin", async () => {
    const file = requestsIn(memprefix.root, JSON.stringify(request(0)));
    const out = join(memprefix.root, "earlier.jsonl");
    writeFileSync(out, "earlier");
    const nowhere = { ...environment, MEMPREFIX_DATA_DIR: "/dev/null/nowhere" };
    expect((await memprefix.run(["batch", file, "--out", out], { environment: nowhere })).code).toBe(1);
    expect(readFileSync(out, "utf8")).toBe("earlier");
  });

  it.each([
    ["a file that is not there", ["batch", "/nowhere/requests.jsonl"], 1, "ENOENT"],
    ["an answer file that cannot be written", ["batch", import.meta.filename, "--out", "/nowhere/out"], 1, "ENOENT"],
    ["no file", ["batch"], 2, "missing required argument"],
    ["a window of nothing", ["batch", import.meta.filename, "--window", "0"], 2, "whole number"],
  ])("refuses %s", async (_what, args, ends, message) => {
    const { code, stdout, stderr } = await memprefix.run(args, { environment });
    expect({ code, stdout }).toEqual({ code: ends, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("    at ");
  });
});
