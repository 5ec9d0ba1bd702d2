import { describe, expect, it } from "vitest";
import { exportResult } from "../../src/http/contracts/user-contract.js";
import { commands } from "./memprefix-command.js";

const environment = { MEMPREFIX_SOURCE: "none" };

describe("memprefix export", () => {
  const memprefix = commands();

  it("prints what the service answers, and nothing of another tenant's user of that name", async () => {
    const input = JSON.stringify({ user_id: "ada", query: "Tea?", memories: [{ id: "m-1", memory: "green tea" }] });
    expect((await memprefix.run(["compose"], { input, environment })).code).toBe(0);
    const { code, stdout } = await memprefix.run(["export", "ada"], { environment });
    expect(code).toBe(0);
    expect(exportResult.parse(JSON.parse(stdout)).scopes[0]?.tables.blocks).toMatchObject([{ text: "green tea" }]);
    const other = await memprefix.run(["export", "ada", "--tenant", "acme"], { environment });
    expect(JSON.parse(other.stdout)).toEqual({
      user_id: "ada",
      scopes: [],
      forgotten_memories: [],
      source: null,
    });
    expect(memprefix.leftBehind).toEqual([]);
  });

  it("refuses an id that can be nobody's", async () => {
    const { code, stdout, stderr } = await memprefix.run(["export", " "], { environment });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^memprefix: user_id: .+\n$/);
  });
});
