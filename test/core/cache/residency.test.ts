import { describe, expect, it } from "vitest";
import { residencyModel } from "../../../src/core/cache/residency.js";
import { checkIndex } from "./index-rules.js";
import { describeResidencyModel } from "./residency.suite.js";
import { type PromptServed, ServedPrompts } from "./served-prompts.js";
import { HERE, labels } from "./served-sequences.js";

const TTL_MS = 10_000;

describeResidencyModel("all", residencyModel({ kind: "all" }));
describeResidencyModel("ttl", residencyModel({ kind: "ttl", ttlMs: TTL_MS }));

const heldOf = (prompts: ServedPrompts, served: readonly PromptServed[]) =>
  served.map((prompt) => prompts.holds(prompt));

describe("residency: ttl", () => {
  const ttl = () => new ServedPrompts(residencyModel({ kind: "ttl", ttlMs: TTL_MS }));

  it("takes what was last used its time ago, and not a millisecond before", () => {
    const prompts = ttl();
    const served = prompts.serve(labels(1));
    prompts.now = TTL_MS - 1;
    prompts.expire();
    expect(prompts.holds(served)).toBe(true);
    prompts.now = TTL_MS;
    prompts.expire();
    expect(prompts.index.size).toBe(0);
  });

  it("keeps the whole prefix of what was used again, and evicts the rest", () => {
    const prompts = ttl();
    const [long, other] = [prompts.serve(labels(1, 2, 3)), prompts.serve(labels(4))];
    prompts.now = TTL_MS - 1;
    const short = prompts.serve(labels(1, 2));
    prompts.now = TTL_MS + 1;
    prompts.expire();
    expect(heldOf(prompts, [long, other, short])).toEqual([false, false, true]);
    expect(prompts.index.hasAnchor(HERE)).toBe(true);
  });
});

describe("residency models", () => {
  it("refuse a limit that nothing can meet", () => {
    for (const ttlMs of [0, -1, Number.NaN])
      expect(() => residencyModel({ kind: "ttl", ttlMs })).toThrow(`ttlMs is ${ttlMs}, not above 0`);
  });
});

describe("a conversation that alone is more than an index may hold", () => {
  it("is known by its newest turn, within the bound, and goes on", () => {
    const prompts = new ServedPrompts(residencyModel({ kind: "all" }), 10);
    const turns = [prompts.serve(labels(1))];
    for (let n = 2; n <= 40; n++) {
      turns.push(prompts.serve(labels((n % 8) + 1), turns.at(-1)));
      checkIndex(prompts.index);
      expect(heldOf(prompts, turns.slice(-1))).toEqual([true]);
    }
    expect(heldOf(prompts, turns.slice(0, 10))).not.toContain(true);
  });
});
