import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { POLICY_NAMES, RETENTION_NAMES } from "../../src/core/index.js";
import type { ReplayedTrace } from "../../src/eval/replay/replay-trace.js";
import { commands } from "./memprefix-command.js";

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

describe("memprefix replay", () => {
  const memprefix = commands();

  function written(): string {
    const file = join(memprefix.root, "trace.json");
    writeFileSync(file, JSON.stringify(trace));
    return file;
  }

  const rowsOf = (table: string) =>
    new Map(
      table
        .split("\n")
        .filter((line) => line.startsWith("| "))
        .slice(2)
        .map((line) => line.split("|").map((cell) => cell.trim()))
        .map(([, name, ...cells]) => [name, cells.slice(0, -1)]),
    );

  it("shows all policies side by side", async () => {
    const { code, stdout, stderr } = await memprefix.run(["replay", "--trace", written(), "--k", "3"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect([...rowsOf(stdout).keys()]).toEqual([...POLICY_NAMES]);
  });

  it("shows for a conversation what each retention comes to, as every policy comes to the same", async () => {
    const asked = ["replay", "--trace", written(), "--k", "3", "--layout", "conversation"];
    const { code, stdout, stderr } = await memprefix.run(asked);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const rows = rowsOf(stdout);
    expect([...rows.keys()]).toEqual([...RETENTION_NAMES]);
    expect(stdout).toContain("Ordered by prefix-exact. All policies have the same cache hits here");
    const sent = (retention: string) => Number(rows.get(retention)?.[0]);
    expect(sent("ephemeral")).toBe(1);
    expect(sent("keep")).toBeGreaterThan(1);
    for (const policy of POLICY_NAMES) {
      const of = rowsOf((await memprefix.run([...asked, "--policy", policy, "--budget-ratio", "3"])).stdout);
      const cached = (row: readonly string[] | undefined) => row?.at(-2);
      for (const retention of RETENTION_NAMES) expect(cached(of.get(retention))).toBe(cached(rows.get(retention)));
    }
  });

  it("replays what there is where the trace holds less than --k asks for", async () => {
    const asked = (k: number) => ["replay", "--trace", written(), "--k", `${k}`];
    expect(await memprefix.run(asked(20))).toEqual(await memprefix.run(asked(3)));
  });

  it("keeps all that a conversation was given in its JSON", async () => {
    const asked = ["replay", "--trace", written(), "--layout", "conversation", "--json"];
    const { requests } = JSON.parse((await memprefix.run(asked)).stdout);
    expect(requests.slice(1).map(({ order }: { order: number[] }) => order)).toEqual(Array(5).fill([0, 1, 2, 3]));
  });

  it("gives every request of one policy as JSON", async () => {
    const { stdout } = await memprefix.run([
      "replay",
      "--trace",
      written(),
      ...["--k", "2", "--json", "--policy", "retrieval"],
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
      const { requests, totals } = JSON.parse((await memprefix.run(asked)).stdout) as Pick<
        ReplayedTrace,
        "requests" | "totals"
      >;
      const ratios = requests.map(({ memoryTokens, retrievedTokens }) => memoryTokens / retrievedTokens);
      expect(totals.largestSentRatio).toBe(Math.max(...ratios));
      expect(totals.sentRatio).toBe(totals.memoryTokens / totals.retrievedTokens);
      return totals;
    };
    expect((await sentWith()).largestSentRatio).toBe(1);
    const shared = await sentWith("--budget-ratio", "1.4");
    expect(shared.sentRatio).toBeLessThanOrEqual(1.4);
    expect(shared.largestSentRatio).toBeLessThanOrEqual(1.5 * 1.4);
  });
});
