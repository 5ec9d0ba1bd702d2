import { describe, expect, it } from "vitest";
import { SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { ORDERING_POLICIES, POLICY_NAMES, type PolicyName } from "../../../src/core/index.js";
import { someOf } from "../../run-length.js";
import {
  contextPilotsOwn,
  type PolicyFor,
  promptsInTurn,
  RECORDED_CONVERSATIONS,
  readRecording,
  recordedPeers,
  SKIPPED,
} from "./recorded-searches.js";
import { cachedShare, distinctTokens, inTurn } from "./shared-cache.js";

const prompt = (...tokens: readonly number[]) => ({ tokens });

describe("a cache that several users share", () => {
  it("is asked by each user in turn, for as long as the user has something to ask", () => {
    expect([...inTurn([["a1", "a2", "a3"], [], ["b1"], ["c1", "c2"]])].join(" ")).toBe("a1 b1 c1 a2 c2 a3");
    expect([...inTurn([])]).toEqual([]);
  });

  it("asks nobody before the turn comes", () => {
    const asked: string[] = [];
    function* user(name: string) {
      for (let n = 1; ; n++) {
        asked.push(`${name}${n}`);
        yield n;
      }
    }
    const turns = inTurn([user("a"), user("b")]);
    for (let n = 0; n < 3; n++) turns.next();
    expect(asked).toEqual(["a1", "b1", "a2"]);
  });

  it("holds each distinct prefix once when it has no end, and gives the share of tokens that it held", () => {
    const prompts = [prompt(1, 2, 3, 4), prompt(1, 2, 5, 6), prompt(1, 2, 3, 4)];
    expect(distinctTokens(prompts, new SimulatedCache("radix"))).toBe(6);
    expect(cachedShare(prompts, new SimulatedCache("radix"))).toBe((2 + 3) / 12);
    expect(cachedShare([], new SimulatedCache("radix"))).toBe(0);
  });

  it("holds less of what others pushed out", () => {
    const prompts = [prompt(1, 2, 3, 4), prompt(5, 6, 7, 8), prompt(1, 2, 3, 4)];
    expect(cachedShare(prompts, new SimulatedCache("radix", { capacityTokens: 4 }))).toBe(0);
    expect(cachedShare(prompts, new SimulatedCache("radix", { capacityTokens: 8 }))).toBe(3 / 12);
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
