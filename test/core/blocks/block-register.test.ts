import { describe, expect, it } from "vitest";
import { BlockRegister } from "../../../src/core/blocks/block-register.js";
import { renderBlock } from "../../../src/core/prompt/section.js";
import type { MemoryId } from "../../../src/core/text/ids.js";
import { countTokens, memory } from "../compose/scope-fixture.js";
import { label } from "../context-index/served-sequences.js";

const id = (name: string) => name as MemoryId;

function emptyRegister(): BlockRegister {
  return new BlockRegister({ blocks: [], versions: [], forgotten: [] }, 1, countTokens);
}

/** Resolves one request; gives the labels of its blocks. */
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

  it("takes texts as the same that differ in line breaks and outer white space only", () => {
    const register = emptyRegister();
    expect(labelsOf(register, ["a", "tea\r\nand milk "], ["b", "\ufefftea\u2028and milk"])).toEqual([1]);
    expect(labelsOf(register, ["c", "tea\n and milk"])).toEqual([2]);
  });

  it("counts a block's tokens as its rendered line", () => {
    const register = emptyRegister();
    const [block] = register.resolve([memory("a", "tea [7]\nand milk")]).blocks;
    expect(block?.tokens).toBe(countTokens(renderBlock({ label: label(1), replaces: [] }, "tea [7]\nand milk")));
  });

  it("throws for the text of a label that it does not know", () => {
    expect(() => emptyRegister().textOf(label(1))).toThrow("[1]");
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

  it("gives a changed text a label of its own that supersedes the old one", () => {
    const register = emptyRegister();
    labelsOf(register, ["a", "lives in Rome"]);
    expect(labelsOf(register, ["a", "lives in Oslo"])).toEqual([2]);
    expect(register.successor(label(1))).toBe(2);
    expect(register.successor(label(2))).toBeNull();
    expect([...register.current()].map((block) => block.label)).toEqual([2]);
    expect(register.textOf(label(1))).toBe("lives in Rome");
  });

  it("follows a chain of changes to its end", () => {
    const register = emptyRegister();
    for (const town of ["Rome", "Oslo", "Lima", "Cork"]) labelsOf(register, ["a", town]);
    expect([1, 2, 3].map((n) => register.successor(label(n)))).toEqual([4, 4, 4]);
  });

  it("gives a text that came back its old label, which is current again", () => {
    const register = emptyRegister();
    labelsOf(register, ["a", "Rome"]);
    labelsOf(register, ["a", "Oslo"]);
    expect(labelsOf(register, ["a", "Rome"])).toEqual([1]);
    expect(register.successor(label(1))).toBeNull();
    expect(register.successor(label(2))).toBe(1);
    labelsOf(register, ["a", "Oslo"]);
    expect([register.successor(label(1)), register.successor(label(2))]).toEqual([2, null]);
  });

  it("does not supersede a text that another memory still has", () => {
    const register = emptyRegister();
    labelsOf(register, ["a", "Rome"], ["b", "Rome"]);
    labelsOf(register, ["a", "Oslo"]);
    expect(register.successor(label(1))).toBeNull();
    expect(register.memoryOf(label(1))).toBe("b");
    labelsOf(register, ["b", "Lima"]);
    expect(register.successor(label(1))).toBe(3);
  });

  it("keeps both texts of a memory listed with two, counts the better ranked as current, and says so", () => {
    const register = emptyRegister();
    const { blocks, memories, conflicting, repeated } = register.resolve([
      memory("a", "Rome"),
      memory("a", "Oslo"),
      memory("a", "Oslo"),
      memory("a", "Rome"),
    ]);
    expect(blocks.map((block) => block.text)).toEqual(["Rome", "Oslo"]);
    expect(memories.map((requested) => [requested.label, requested.rank])).toEqual([
      [1, 0],
      [2, 1],
    ]);
    expect(conflicting).toEqual(["a"]);
    expect(repeated).toEqual(["a"]);
    expect(register.successor(label(1))).toBeNull();
    expect([...register.current()].map((block) => block.label)).toEqual([1]);
    expect(register.memoryOf(label(2))).toBe("a");
  });

  it("has no place for a memory that is not there: unknown labels have no text, memory or successor", () => {
    const register = emptyRegister();
    expect([register.get(label(1)), register.memoryOf(label(1))]).toEqual([undefined, undefined]);
    expect(register.successor(label(1))).toBeNull();
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

  it("keeps a text that another memory has too", () => {
    const register = emptyRegister();
    labelsOf(register, ["a", "Rome"], ["b", "Rome"]);
    expect(register.forget(id("a"))).toEqual(new Set());
    expect(labelsOf(register, ["b", "Rome"])).toEqual([1]);
    expect(register.forget(id("b"))).toEqual(new Set([1]));
  });

  it("supersedes a text that only the forgotten memory still had", () => {
    const register = emptyRegister();
    labelsOf(register, ["a", "Rome"], ["b", "Rome"]);
    labelsOf(register, ["b", "Oslo"]);
    expect(register.successor(label(1))).toBeNull();
    register.forget(id("a"));
    expect(register.successor(label(1))).toBe(2);
    expect([...register.current()].map((block) => block.label)).toEqual([2]);
  });

  it("lets no text be superseded by one that is gone", () => {
    const register = emptyRegister();
    labelsOf(register, ["a", "Rome"], ["b", "Rome"]);
    labelsOf(register, ["b", "Oslo"]);
    labelsOf(register, ["a", "Lima"]);
    expect(register.successor(label(1))).toBe(3);
    register.forget(id("a"));
    expect(register.successor(label(1))).toBe(2);
  });

  it("never takes a forgotten memory in again, whatever its text, and says so", () => {
    const register = emptyRegister();
    labelsOf(register, ["a", "Rome"]);
    register.forget(id("a"));
    register.forget(id("never seen"));
    const { blocks, memories, forgotten } = register.resolve([
      memory("a", "Oslo"),
      memory("b", "tea"),
      memory("never seen", "milk"),
    ]);
    expect(blocks.map((block) => block.text)).toEqual(["tea"]);
    expect(memories.map(({ memoryId }) => memoryId)).toEqual(["b"]);
    expect(forgotten).toEqual(["a", "never seen"]);
  });

  it("never gives the label of a forgotten text again, not even to the same text", () => {
    const register = emptyRegister();
    labelsOf(register, ["a", "Rome"]);
    register.forget(id("a"));
    expect(labelsOf(register, ["b", "Rome"], ["c", "tea"])).toEqual([2, 3]);
  });
});
