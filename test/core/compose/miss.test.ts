import { describe, expect, it } from "vitest";
import { type MissFacts, plannedMiss, reportedMiss } from "../../../src/core/compose/miss.js";

/** A turn that continues a prompt of 300 tokens, all of which should be cached. */
const CONTINUED: MissFacts = {
  before: 300,
  known: 300,
  cached: 300,
  moved: 0,
  isFirst: false,
  isContinued: true,
  hasOtherModel: false,
  hasOtherTools: false,
  hasOtherInstructions: false,
  hasOtherHistory: false,
  hasOtherMemories: false,
  ageMs: 60_000,
  ttlMs: null,
};
const fresh = { isContinued: false, known: 0, cached: 0 };

describe("the miss of a planned prompt", () => {
  it.each<[string, Partial<MissFacts>, ReturnType<typeof plannedMiss>]>([
    ["is none where only the new turn is computed", {}, null],
    ["is none of what an estimate is off by", { known: 296, cached: 296 }, null],
    ["is of the user's first prompt", { ...fresh, isFirst: true }, { cause: "first_prompt", tokens: 300 }],
    [
      "is of text that no earlier prompt began with",
      { ...fresh, known: 100, cached: 100 },
      { cause: "new_text", tokens: 200 },
    ],
    ["is of other tools", { ...fresh, hasOtherTools: true }, { cause: "tools_changed", tokens: 300 }],
    [
      "is of another model first",
      { ...fresh, hasOtherModel: true, hasOtherTools: true, hasOtherInstructions: true },
      { cause: "model_changed", tokens: 300 },
    ],
    [
      "is of other instructions",
      { ...fresh, hasOtherInstructions: true, hasOtherHistory: true },
      { cause: "instructions_changed", tokens: 300 },
    ],
    [
      "is of another history",
      { isContinued: false, known: 90, cached: 90, hasOtherHistory: true },
      { cause: "history_changed", tokens: 210 },
    ],
    [
      "is of memories that were dropped",
      { known: 200, cached: 200, hasOtherMemories: true },
      { cause: "memories_changed", tokens: 100 },
    ],
    ["is of memories that moved", { isContinued: false, moved: 40 }, { cause: "memories_changed", tokens: 40 }],
    ["is of what expired", { cached: 0, ttlMs: 60_000 }, { cause: "expired", tokens: 300 }],
    [
      "is of what was evicted before it could expire",
      { cached: 100, ttlMs: 60_000, ageMs: 1 },
      { cause: "evicted", tokens: 200 },
    ],
    ["is of what a full cache evicted", { cached: 0 }, { cause: "evicted", tokens: 300 }],
    [
      "is of the larger part where two would do",
      { cached: 0, known: 200, hasOtherMemories: true },
      { cause: "evicted", tokens: 300 },
    ],
    ["is unknown where nothing tells", { known: 200, cached: 200 }, { cause: "unknown", tokens: 100 }],
  ])("%s", (_, facts, miss) => {
    expect(plannedMiss({ ...CONTINUED, ...facts })).toEqual(miss);
  });
});

describe("the miss of a reported prompt", () => {
  // Of 400 tokens 100 were expected to be cached, and 200 missed.
  const plan = {
    totalTokens: 400,
    expectedCachedTokens: 100,
    miss: { cause: "instructions_changed", tokens: 200 },
  } as const;
  it.each([
    ["stays where the engine had what was expected", 100, { cause: "instructions_changed", tokens: 200 }],
    ["is less where it had more", 200, { cause: "instructions_changed", tokens: 100 }],
    ["is none where it had all but a step", 296, null],
    ["is more where it had less", 40, { cause: "instructions_changed", tokens: 260 }],
  ])("%s", (_, cachedTokens, miss) => {
    expect(reportedMiss(plan, { cachedTokens, promptTokens: 400 })).toEqual(miss);
  });

  it("is the engine's where nothing was missed by the plan", () => {
    const little = { cachedTokens: 3, promptTokens: 400 };
    expect(reportedMiss({ ...plan, miss: null }, little)).toEqual({ cause: "unknown", tokens: 97 });
  });
});
