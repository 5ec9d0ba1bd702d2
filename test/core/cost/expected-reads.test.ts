import { describe, expect, it } from "vitest";
import { billedBy, lateInRow, type PlannedPrompt, unreadEnds } from "../../../src/core/cost/expected-reads.js";
import { pricedModel, priceOf } from "../../../src/core/cost/prices.js";
import { ENGINE_MODELS } from "../../../src/core/index.js";

const CLAUDE = { host: "api.anthropic.com", family: "anthropic" };
const price = priceOf(CLAUDE, "claude-opus-4-8");
const single: PlannedPrompt = { layout: "single", wereSent: false, tokens: 5_000, hasHistory: false, lateInRow: 0 };
const talk: PlannedPrompt = { ...single, layout: "conversation" };

describe("the ends of a prompt that no later one is expected to read", () => {
  it("are none of a conversation, which goes on, unless two of its prompts in a row came too late", () => {
    expect(unreadEnds(price, talk)).toEqual([]);
    expect(unreadEnds(price, { ...talk, lateInRow: 1 })).toEqual([]);
    expect(unreadEnds(price, { ...talk, lateInRow: 2 })).toEqual(["turn", "memories"]);
    expect(price && [lateInRow(1, 300_000, price), lateInRow(1, 300_001, price)]).toEqual([0, 2]);
  });

  it("are of a single prompt all but the instructions, until its memories came in this order before", () => {
    expect(unreadEnds(price, single)).toEqual(["turn", "memories"]);
    const shared = { ...single, wereSent: true };
    expect(unreadEnds(price, shared)).toEqual(["turn"]);
    expect(unreadEnds(price, { ...shared, lateInRow: 2 })).toEqual(["turn", "memories"]);
    expect(unreadEnds(price, { ...single, hasHistory: true })).toEqual(["memories"]);
  });

  it("are all where the prompt is far below the minimum, if that and its tokens are known", () => {
    expect(unreadEnds(price, { ...talk, tokens: 511 })).toEqual(["turn", "memories", "instructions"]);
    expect(unreadEnds(price, { ...talk, tokens: 512 })).toEqual([]);
    expect(unreadEnds(price, { ...talk, tokens: null })).toEqual([]);
    expect(unreadEnds(priceOf(CLAUDE, "claude-opus-5-5"), { ...talk, tokens: 1 })).toEqual([]);
  });

  it("are none where nobody bills writes", () => {
    expect(unreadEnds(null, single)).toEqual([]);
    expect(unreadEnds(priceOf({ host: null, family: "openai" }, "gpt-4.1"), single)).toEqual([]);
  });

  it("cost no writes", () => {
    const model = pricedModel(CLAUDE, "claude-opus-4-8");
    expect(billedBy(model, ["turn", "memories"]).cost).toMatchObject({ written: 1, cached: 0.05 });
    expect(billedBy(model, ["turn"])).toEqual(model);
    expect(billedBy(ENGINE_MODELS.gpu, ["turn", "memories"])).toEqual(ENGINE_MODELS.gpu);
  });
});
