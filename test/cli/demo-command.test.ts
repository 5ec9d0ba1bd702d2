import { describe, expect, it } from "vitest";
import { commands } from "./memprefix-command.js";

describe("memprefix demo", () => {
  const memprefix = commands();

  it("prints what each way of building prompts costs, and leaves nothing behind", async () => {
    const { code, stdout } = await memprefix.run(["demo", "--limit", "3"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^sample-1: \d+ memories in Mem0, 3 questions, k = 20, search p50 \d+ ms; /);
    const rows = stdout.split("\n").filter((line) => line.startsWith("|"));
    const cells = rows.map((row) =>
      row
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
    expect(cells[0]).toEqual(["layout", "prompt built by", "prompt tokens", "memories", "to prefill", "billed", ""]);
    expect(cells.slice(2).map(([layout, builder]) => [layout, builder])).toEqual([
      ["conversation", "Mem0's README"],
      ["conversation", "memprefix, ephemeral"],
      ["conversation", "memprefix, keep"],
      ["single", "Mem0's README"],
      ["single", "memprefix"],
    ]);
    for (const row of cells.slice(2)) {
      const [prompt = 0, memories = 0, prefill = 0, billed = 0] = row
        .slice(2, 6)
        .map((cell) => Number(cell.replaceAll(",", "")));
      expect(prefill).toBeGreaterThan(0);
      expect(prefill).toBeLessThanOrEqual(prompt);
      expect(billed).toBeGreaterThanOrEqual(Math.floor(prefill + 0.05 * (prompt - prefill)));
      // A conversation that keeps what it was sent holds more than one search found.
      if (row[1] === "memprefix, keep") expect(memories).toBeGreaterThan(20);
      else expect(memories).toBe(20);
    }
    expect(cells[3]?.[6]).toMatch(/^\d+\.\d× fewer$/);
    expect(cells[4]?.[6]).toMatch(/^\d+\.\d× fewer$/);
    expect(memprefix.leftBehind).toEqual([]);
  });

  it("serves the dashboard's try-it view, and deletes its data when told to end", async () => {
    const begun = memprefix.begin(["demo", "--limit", "1", "--open"]);
    const address = await begun.printed(/The dashboard is at (\S+)\n/);
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/dashboard#\/try$/);
    expect(await (await fetch(address)).text()).toContain("/dashboard/page.js");
    begun.kill("SIGINT");
    expect((await begun.ended).code).toBe(0);
    expect(memprefix.leftBehind).toEqual([]);
  });
});
