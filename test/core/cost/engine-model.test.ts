import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  cacheable,
  ENGINE_MODEL_NAMES,
  ENGINE_MODELS,
  type EngineModel,
  promptCost,
  sparedBy,
} from "../../../src/core/cost/engine-model.js";

const law: EngineModel = {
  cost: { kind: "time", fixedMs: 10, perTokenMs: 2, perPairMs: 0.5 },
  blockTokens: 1,
  minimumPrefixTokens: 0,
};

describe("the cost of a prompt", () => {
  it("is fixed + a·u + b·u·(c + u/2) in time", () => {
    expect(promptCost(law, 100, 60)).toBe(10 + 2 * 40 + 0.5 * 40 * (60 + 20));
  });

  it("is uncached, written and cached tokens at their prices in money", () => {
    const provider: EngineModel = {
      cost: { kind: "money", uncached: 1, written: 1.25, cached: 0.1 },
      blockTokens: 1,
      minimumPrefixTokens: 50,
    };
    expect(promptCost(provider, 100, 60)).toBe(0.1 * 60 + 1.25 * 40);
    expect(promptCost(provider, 100, 49)).toBe(1.25 * 100);
    expect(promptCost(provider, 40, 40)).toBe(40);
  });

  it("counts whole cache blocks only, and nothing below the minimum", () => {
    const { hosted } = ENGINE_MODELS;
    expect([1_023, 1_024, 1_151, 1_152].map((shared) => cacheable(hosted, shared))).toEqual([0, 1_024, 1_024, 1_152]);
  });

  it("never rises as more is shared, and never falls as the prompt grows", () => {
    const model = fc.constantFrom(...ENGINE_MODEL_NAMES.map((name) => ENGINE_MODELS[name]), law);
    const tokens = fc.nat(20_000);
    fc.assert(
      fc.property(model, tokens, tokens, tokens, (engine, total, common, more) => {
        const shared = Math.min(common, total);
        const cost = promptCost(engine, total, shared);
        expect(promptCost(engine, total, shared + more)).toBeLessThanOrEqual(cost + 1e-9);
        if (engine.cost.kind === "time") expect(promptCost(engine, total + more, shared)).toBeGreaterThanOrEqual(cost);
      }),
    );
  });
});

describe("what carrying is worth", () => {
  const around = { before: 100, retrieved: 400, after: 50 };
  const linear: EngineModel = {
    cost: { kind: "time", fixedMs: 10, perTokenMs: 2, perPairMs: 0 },
    blockTokens: 1,
    minimumPrefixTokens: 0,
  };

  it("is what is saved, where only computed tokens take time", () => {
    const spared = sparedBy(linear, around);
    for (const [saved, carried] of [
      [0, 0],
      [10, 0],
      [120, 5_000],
      [400, 70],
    ] as const)
      expect(spared(saved, carried)).toBeCloseTo(saved, 9);
  });
});
