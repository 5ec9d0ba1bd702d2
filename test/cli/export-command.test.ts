import { describe, expect, it } from "vitest";
import { exportResult } from "../../src/http/contracts/user-contract.js";
import { commands } from "./memstem-command.js";

const environment = { MEMSTEM_SOURCE: "none" };

describe("memstem export", () => {
  const memstem = commands();

  it("prints what the service answers, and nothing of another tenant's user of that name", async () => {
    const input = JSON.stringify({ user_id: "ada", query: "Tea?", memories: [{ id: "m-1", memory: "green tea" }] });
    expect((await memstem.run(["compose"], { input, environment })).code).toBe(0);
    const { code, stdout } = await memstem.run(["export", "ada"], { environment });
    expect(code).toBe(0);
    expect(exportResult.parse(JSON.parse(stdout)).scopes[0]?.tables.blocks).toMatchObject([{ text: "green tea" }]);
    const other = await memstem.run(["export", "ada", "--tenant", "acme"], { environment });
    expect(JSON.parse(other.stdout)).toEqual({
      user_id: "ada",
      scopes: [],
      usage: [],
      forgotten_memories: [],
      source: null,
    });
    expect(memstem.leftBehind).toEqual([]);
  });

  it("refuses an id that can be nobody's", async () => {
    const { code, stdout, stderr } = await memstem.run(["export", " "], { environment });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^memstem: user_id: .+\n$/);
  });
});
