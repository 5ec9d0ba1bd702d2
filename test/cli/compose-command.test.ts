import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { composeResult } from "../../src/http/contracts/compose-contract.js";
import { commands } from "./memprefix-command.js";

const SECRET = "Ada hides the key under the third flower pot";
const good = { user_id: "ada", query: "Where?", request_id: "r-1", memories: [{ id: "m-1", memory: SECRET }] };
const environment = { MEMPREFIX_SOURCE: "none" };

describe("memprefix compose", () => {
  const memprefix = commands();

  it("reads a request from standard input and prints the answer, the same for the same request_id", async () => {
    const first = await memprefix.run(["compose"], { input: JSON.stringify(good), environment });
    expect(first).toMatchObject({ code: 0, stderr: "" });
    const answer = composeResult.parse(JSON.parse(first.stdout));
    expect(answer).toEqual(JSON.parse(first.stdout));
    expect(answer.messages).toEqual([{ role: "user", content: `<memories>\n- ${SECRET}\n</memories>\n\nWhere?` }]);
    expect(await memprefix.run(["compose"], { input: JSON.stringify(good), environment })).toEqual(first);
    expect(memprefix.leftBehind).toEqual([]);
  });

  it("looks only with --dry-run: nothing is stored, and the answer is that of the request itself", async () => {
    const look = await memprefix.run(["compose", "--dry-run"], { input: JSON.stringify(good), environment });
    expect(look).toMatchObject({ code: 0, stderr: "" });
    const changed = JSON.stringify({ ...good, memories: [] });
    const other = await memprefix.run(["compose"], { input: changed, environment });
    // The id was not taken.
    expect(composeResult.parse(JSON.parse(other.stdout)).warnings).toEqual([]);
    expect(composeResult.parse(JSON.parse(look.stdout)).blocks).toMatchObject([{ placement: "new" }]);
  });

  it.each([
    ["what is no JSON", "{", ["standard input"]],
    ["nothing", "", ["standard input"]],
    ["a request without user", JSON.stringify({ ...good, user_id: undefined }), ["user_id"]],
    ["a request without question", JSON.stringify({ user_id: "ada" }), ["query"]],
    ["several mistakes", JSON.stringify({ ...good, memories: 7, k: 3 }), ["memories", "k"]],
  ])("refuses %s, names what is wrong and writes nothing", async (_what, input, fields) => {
    const { code, stdout, stderr } = await memprefix.run(["compose"], { input, environment });
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect([...stderr.matchAll(/^memprefix: (.+?): /gm)].map(([, field]) => field)).toEqual(fields);
    expect(stderr).not.toContain(SECRET);
    expect(stderr).not.toContain("    at ");
    expect(existsSync(memprefix.dataDir)).toBe(false);
  });
});
