import { describe, expect, it } from "vitest";
import { cachedShare, distinctTokens, inTurn } from "../../bench/shared-cache.js";
import { SimulatedCache } from "../../src/core/cache/simulated-cache.js";
import { ORDERING_POLICIES, POLICY_NAMES, type PolicyName } from "../../src/core/index.js";
import {
  contextPilotsOwn,
  type PolicyFor,
  promptsInTurn,
  RECORDED_CONVERSATIONS,
  readRecording,
  recordedPeers,
  SKIPPED,
} from "../eval/locomo/recorded-searches.js";
import { someOf } from "../run-length.js";

const prompt = (...tokens: readonly number[]) => ({ tokens });

describe("a cache that several users share", () => {
  it("is asked by each user in turn, for as long as the user has something to ask", () => {
    expect([...inTurn([["a1", "a2", "a3"], [], ["b1"], ["c1", "c2"]])].join(" ")).toBe("a1 b1 c1 a2 c2 a3");
    expect([...inTurn([])]).toEqual([]);
  });

  it("holds each distinct prefix once when it has no end, and gives the share of tokens that it held", () => {
    const prompts = [prompt(1, 2, 3, 4), prompt(1, 2, 5, 6), prompt(1, 2, 3, 4)];
    expect(distinctTokens(prompts, new SimulatedCache("radix"))).toBe(6);
    expect(cachedShare(prompts, new SimulatedCache("radix"))).toBe((2 + 3) / 12);
    expect(cachedShare([], new SimulatedCache("radix"))).toBe(0);
  });

  const data = recordedPeers();
  const title = "six users' recorded Mem0 searches, room for half of what all prompts hold";
  describe.skipIf(data === null)(data === null ? `${title}${SKIPPED}` : title, () => {
    const recordings = data === null ? [] : RECORDED_CONVERSATIONS.map((name) => readRecording(data, name));
    const peers: readonly [name: string, policyFor: PolicyFor][] = [
      ...POLICY_NAMES.filter((name) => name !== "prefix-exact" && name !== "carry-over").map(
        (name): [PolicyName, PolicyFor] => [name, () => ORDERING_POLICIES[name]],
      ),
      ["ContextPilot's own code", contextPilotsOwn],
    ];

    it.each(someOf([20, 100], 1))(
      "prefix-exact hits more than every peer that sends the same blocks at k = %i",
      (k) => {
        const promptsOf = (policyFor: PolicyFor) =>
          promptsInTurn(recordings, { k, policyFor, budgetEach: null, limit: 60 });
        const all = distinctTokens(
          promptsOf(() => ORDERING_POLICIES.retrieval),
          new SimulatedCache("blocks"),
        );
        const shareOf = (policyFor: PolicyFor) =>
          cachedShare(promptsOf(policyFor), new SimulatedCache("blocks", { capacityTokens: Math.floor(all / 2) }));
        const ours = shareOf(() => ORDERING_POLICIES["prefix-exact"]);
        for (const [name, policyFor] of peers) expect.soft(ours, name).toBeGreaterThan(shareOf(policyFor));
      },
      60_000,
    );
  });
});
