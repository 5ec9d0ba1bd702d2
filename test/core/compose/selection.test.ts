import { describe, expect, it } from "vitest";
import type { ComposeInput } from "../../../src/core/compose/compose-input.js";
import { type BlockPlace, selectBlocks } from "../../../src/core/compose/selection.js";
import { type OrderingRequest, sorted } from "../../../src/core/ordering/ordering.js";
import { memories, UserScope } from "./scope-fixture.js";

function requestedWith(room: (tokens: readonly number[]) => number | null): OrderingRequest {
  const { state } = new UserScope();
  const resolution = state.register.resolve(memories("a", "b", "c"));
  const input = { policy: sorted, memoryBudgetTokens: null, memoryBudgetRatio: null, engine: state } as unknown;
  const place = { anchor: "", standing: { given: new Set() }, superseded: new Map(), before: 0, after: 0 };
  const at = { ...place, room: room(resolution.blocks.map(({ tokens }) => tokens)) } as unknown as BlockPlace;
  return selectBlocks(state, resolution, input as ComposeInput, at).request;
}

describe("the blocks of a turn", () => {
  it("fit into the room together, not only each", () => {
    const { retrieved } = requestedWith(([a = 0, b = 0]) => a + b);
    expect(retrieved.map(({ label }) => label)).toEqual([1, 2]);
  });
});
