import { describe, expect, it } from "vitest";
import { explainResult } from "../../src/http/contracts/explain-contract.js";
import { commands } from "./memprefix-command.js";

const SECRET = "Ada hides the key under the third flower pot";
const environment = { MEMPREFIX_SOURCE: "none" };

describe("memprefix explain", () => {
  const memprefix = commands();
  const compose = async (request_id: string, ids: readonly string[], more: object = {}) => {
    const memories = ids.map((id) => ({ id, memory: `${SECRET} (${id})` }));
    const input = JSON.stringify({ user_id: "ada", request_id, query: SECRET, policy: "retrieval", memories, ...more });
    expect((await memprefix.run(["compose"], { input, environment })).code).toBe(0);
  };

  it("says in words, or as the service's JSON, what a prompt missed", async () => {
    await compose("r-1", ["a", "b"]);
    await compose("r-2", ["b", "a"]);
    const words = await memprefix.run(["explain", "r-2", "--user", "ada"], { environment });
    expect(words).toMatchObject({ code: 0, stderr: "" });
    expect(words.stdout).toMatch(/^Request r-2 has \d+ tokens\. /);
    expect(words.stdout).toContain("It continues request r-1");
    const json = await memprefix.run(["explain", "r-2", "--user", "ada", "--json"], { environment });
    const explanation = explainResult.parse(JSON.parse(json.stdout));
    expect(explanation).toEqual(JSON.parse(json.stdout));
    expect(explanation.miss?.cause).toBe("memories_changed");
    expect(`${explanation.words.join("\n")}\n`).toBe(words.stdout);
    expect(words.stdout + json.stdout).not.toContain(SECRET);
    expect(memprefix.leftBehind).toEqual([]);
  });

  it.each([
    [["r-9", "--user", "ada"], "request_id"],
    [["r-1", "--user", "bob"], "request_id"],
    [["r-1", "--user", "ada", "--agent", "coach"], "request_id"],
    [["r-1", "--user", " "], "user"],
  ])("refuses %j, naming what is wrong", async (args, field) => {
    await compose("r-1", ["a"]);
    const { code, stdout, stderr } = await memprefix.run(["explain", ...args], { environment });
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toMatch(new RegExp(`^memprefix: ${field}: .+\n$`));
  });
});
