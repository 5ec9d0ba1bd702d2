import { describe, expect, it } from "vitest";
import { BlockRegister } from "../../../src/core/blocks/block-register.js";
import type { MemoryId } from "../../../src/core/text/ids.js";
import { label } from "../cache/served-sequences.js";
import { countTokens, memory } from "../compose/scope-fixture.js";

const id = (name: string) => name as MemoryId;

function emptyRegister(): BlockRegister {
  return new BlockRegister({ blocks: [], versions: [], forgotten: [] }, 1, countTokens);
}

function labelsOf(register: BlockRegister, ...request: readonly [name: string, text: string][]): number[] {
  return register.resolve(request.map(([name, text]) => memory(name, text))).blocks.map((block) => block.label);
}

describe("block register", () => {
  it("gives each new text the next label and the same text the same label for ever", () => {
    const register = emptyRegister();
    expect(labelsOf(register, ["a", "tea"], ["b", "coffee"])).toEqual([1, 2]);
    expect(labelsOf(register, ["c", "milk"], ["b", "coffee"], ["a", "tea"])).toEqual([3, 2, 1]);
    expect(register.textOf(label(2))).toBe("coffee");
    expect(register.size).toBe(3);
  });

  it("shares a block between memories with the same text, and names both memories", () => {
    const register = emptyRegister();
    const { blocks, memories, sharing } = register.resolve([memory("a", "tea"), memory("b", "tea")]);
    expect(blocks).toHaveLength(1);
    expect(memories).toEqual([
      { memoryId: "a", label: 1, rank: 0 },
      { memoryId: "b", label: 1, rank: 1 },
    ]);
    expect(sharing).toEqual(["b"]);
  });

  it('"a request that lists the same block twice keeps one copy and says so"', () => {
    const register = emptyRegister();
    const request = [memory("a", "tea"), memory("b", "milk"), memory("a", "tea"), memory("a", "tea")];
    const { blocks, memories, repeated } = register.resolve(request);
    expect(blocks.map((block) => block.text)).toEqual(["tea", "milk"]);
    expect(memories.map(({ memoryId, rank }) => [memoryId, rank])).toEqual([
      ["a", 0],
      ["b", 1],
    ]);
    expect(repeated).toEqual(["a"]);
  });
});

describe("block register, forgetting", () => {
  it("removes a memory at every version of its text", () => {
    const register = emptyRegister();
    for (const town of ["Rome", "Oslo", "Lima"]) labelsOf(register, ["a", town]);
    labelsOf(register, ["b", "tea"]);
    expect(register.forget(id("a"))).toEqual(new Set([1, 2, 3]));
    expect(register.size).toBe(1);
    expect(register.textLength).toBe("tea".length);
    expect(register.get(label(2))).toBeUndefined();
  });

  it("never gives the label of a forgotten text again, not even to the same text", () => {
    const register = emptyRegister();
    labelsOf(register, ["a", "Rome"]);
    register.forget(id("a"));
    expect(labelsOf(register, ["b", "Rome"], ["c", "tea"])).toEqual([2, 3]);
  });
});
