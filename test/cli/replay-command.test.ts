import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Replay } from "../../src/eval/replay-trace.js";
import { commands } from "./memstem-process.js";

const memories = ["Ana likes green tea.", "Ana lives in Ghent.", "Ana rides a bicycle.", "Ana plays chess."];
const trace = {
  memories: memories.map((memory, at) => ({ memory, evidence: [`D1:${at}`] })),
  questions: Array.from({ length: 6 }, (_, n) => ({
    question: `Question ${n}?`,
    answer: "Yes.",
    evidence: ["D1:0"],
    retrieved: n % 2 === 0 ? [0, 1, 2] : [3, 2, 1],
  })),
};

describe("memstem replay", () => {
  const memstem = commands();

  function written(): string {
    const file = join(memstem.root, "trace.json");
    writeFileSync(file, JSON.stringify(trace));
    return file;
  }

  it.each(["single", "conversation"])("shows all policies side by side, %s prompts", async (layout) => {
    const { code, stdout, stderr } = await memstem.run(["replay", "--trace", written(), "--layout", layout]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.split("\n").filter((line) => line.startsWith("| "))).toHaveLength(2 + 7);
  });

  it("gives every request of one policy as JSON", async () => {
    const { stdout } = await memstem.run([
      "replay",
      "--trace",
      written(),
      "--k",
      "2",
      "--json",
      "--policy",
      "retrieval",
    ]);
    const { policy, k, requests, totals } = JSON.parse(stdout) as Record<string, never>;
    expect({ policy, k }).toEqual({ policy: "retrieval", k: 2 });
    expect(requests).toHaveLength(6);
    expect(requests).toMatchObject([{ order: [0, 1], carried: [] }, { order: [3, 2] }, {}, {}, {}, {}]);
    expect(totals).toMatchObject({ requests: 6 });
  });

  it("bounds what is sent over all prompts so far, or in each; and says both the average and the most", async () => {
    const sentWith = async (...options: readonly string[]) => {
      const asked = ["replay", "--trace", written(), "--k", "2", "--json", "--policy", "carry-over", ...options];
      const { requests, totals } = JSON.parse((await memstem.run(asked)).stdout) as Pick<Replay, "requests" | "totals">;
      const ratios = requests.map(({ memoryTokens, retrievedTokens }) => memoryTokens / retrievedTokens);
      expect(totals.largestSentRatio).toBe(Math.max(...ratios));
      expect(totals.sentRatio).toBe(totals.memoryTokens / totals.retrievedTokens);
      return totals;
    };
    expect((await sentWith()).largestSentRatio).toBe(1);
    const shared = await sentWith("--budget-ratio", "1.4");
    expect(shared.sentRatio).toBeLessThanOrEqual(1.4);
    expect(shared.largestSentRatio).toBeLessThanOrEqual(1.5 * 1.4);
    expect((await sentWith("--budget-each", "1.4")).largestSentRatio).toBeLessThanOrEqual(1.4);
    const both = await sentWith("--budget-ratio", "1.4", "--budget-each", "1.1");
    expect(both.largestSentRatio).toBeLessThanOrEqual(1.1);
  });

  it("shows a batch in every order and under every schedule; planned it reuses most", async () => {
    const { code, stdout } = await memstem.run([
      "replay",
      "--trace",
      written(),
      "--layout",
      "batch",
      "--cache",
      "radix",
    ]);
    expect(code).toBe(0);
    const ratios = new Map(
      stdout
        .trim()
        .split("\n")
        .slice(2)
        .map((line) => line.split("|").map((cell) => cell.trim()))
        .map((cells) => [cells[1], Number(cells[5])]),
    );
    expect(ratios.size).toBe(6 + 4);
    expect(ratios.get("shared prefixes")).toBe(Math.max(...ratios.values()));
  });

  it.each([
    ["--json", "--json: means nothing for a batch"],
    ["--budget-each=2", "--budget-each: means nothing for a batch"],
    ["--policy=sorted", "--policy: means nothing for a batch"],
  ])("refuses a batch with %s", async (option, message) => {
    const { code, stderr } = await memstem.run(["replay", "--trace", written(), "--layout", "batch", option]);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
  });
});
