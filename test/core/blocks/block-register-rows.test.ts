import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BlockRegister } from "../../../src/core/blocks/block-register.js";
import type { RetrievedMemory, StoredBlock } from "../../../src/core/blocks/context-block.js";
import { FIRST_COUNTERS } from "../../../src/core/compose/scope-state.js";
import type { Label, MemoryId } from "../../../src/core/text/ids.js";
import { countTokens, memory } from "../compose/scope-fixture.js";
import { StoredRows } from "../compose/stored-rows.js";
import { label } from "../context-index/served-sequences.js";

type Step =
  | { readonly kind: "resolve"; readonly memories: readonly RetrievedMemory[] }
  | { readonly kind: "forget"; readonly id: MemoryId };

const anyId = fc.constantFrom("a", "b", "c", "d", "e").map((name) => name as MemoryId);

/** Few ids and few texts, so that memories change, share, swap and conflict all the time. */
const anySteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("resolve" as const),
        memories: fc.array(
          fc
            .tuple(anyId, fc.constantFrom("Rome", "Oslo", "Buenos Aires", "Cork"))
            .map(([id, text]) => memory(id, text)),
          { maxLength: 4 },
        ),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const), id: anyId }) },
  ),
  { maxLength: 12 },
);

/** A register with a store under it that applies what each step drained. */
class StoredRegister {
  register = new BlockRegister({ blocks: [], versions: [], forgotten: [] }, 1, countTokens);
  readonly rows = new StoredRows();

  take(step: Step): unknown {
    const outcome = step.kind === "forget" ? this.register.forget(step.id) : this.register.resolve(step.memories);
    const counters = { ...FIRST_COUNTERS, nextLabel: this.register.nextLabel };
    const unchanged = { upserted: [], removed: [] };
    const register = this.register.drain();
    this.rows.apply({
      counters,
      bankedTokens: 0,
      register,
      index: unchanged,
      recent: unchanged,
      workers: unchanged,
      published: null,
    });
    return outcome;
  }

  reload(): void {
    const { register, counters } = this.rows.load();
    this.register = new BlockRegister(register, counters.nextLabel, countTokens);
  }
}

/** Everything that a register says about its blocks. */
function stateOf(register: BlockRegister): unknown {
  const known = Array.from({ length: register.nextLabel }, (_, n) => label(n));
  return {
    blocks: known.map((at) => [register.get(at), register.successor(at), register.memoryOf(at)]),
    current: [...register.current()].map((block) => block.label),
    sizes: [register.size, register.textLength, register.nextLabel],
  };
}

function blocksOf(register: BlockRegister): StoredBlock[] {
  return Array.from({ length: register.nextLabel }, (_, n) => register.get(label(n))).filter((at) => at !== undefined);
}

describe("block register, stored as rows", () => {
  it("answers and continues after a reload as if there had been none", () => {
    const life = fc.property(anySteps, anySteps, (before, after) => {
      const kept = new StoredRegister();
      const reloaded = new StoredRegister();
      for (const step of before) {
        kept.take(step);
        reloaded.take(step);
      }
      reloaded.reload();
      expect(stateOf(reloaded.register)).toEqual(stateOf(kept.register));
      for (const step of after) {
        expect(reloaded.take(step)).toEqual(kept.take(step));
        expect(stateOf(reloaded.register)).toEqual(stateOf(kept.register));
      }
    });
    fc.assert(life, { numRuns: 1_000 });
  });

  it("never gives a label to a second text, and supersedes exactly the texts that no memory has any more", () => {
    const life = fc.property(anySteps, (steps) => {
      const stored = new StoredRegister();
      const { register } = stored;
      const firstText = new Map<Label, string>();
      const has = new Map<MemoryId, string>();
      const forgotten = new Set<MemoryId>();
      for (const step of steps) {
        stored.take(step);
        if (step.kind === "forget") {
          forgotten.add(step.id);
          has.delete(step.id);
        } else {
          // Best ranked last, so that of two texts of a memory the better ranked one stays.
          for (const { id, text } of step.memories.toReversed()) if (!forgotten.has(id)) has.set(id, text);
        }
        for (const block of blocksOf(register)) {
          expect(firstText.get(block.label) ?? block.text).toBe(block.text);
          firstText.set(block.label, block.text);
        }
        const current = [...register.current()].map((block) => block.text).sort();
        expect(current).toEqual([...new Set(has.values())].sort());
        for (const block of blocksOf(register)) {
          const successor = register.successor(block.label);
          expect(successor === null).toBe(current.includes(block.text));
          if (successor !== null) expect(current).toContain(register.textOf(successor));
        }
      }
    });
    fc.assert(life, { numRuns: 1_000 });
  });

  it("counts the tokens of exactly the blocks that some memory has now, also after a reload", () => {
    const life = fc.property(anySteps, anySteps, (before, after) => {
      const stored = new StoredRegister();
      const check = () => {
        const sum = [...stored.register.current()].reduce((tokens, block) => tokens + block.tokens, 0);
        expect(stored.register.currentTokens).toBe(sum);
      };
      for (const steps of [before, after]) {
        for (const step of steps) {
          stored.take(step);
          check();
        }
        stored.reload();
        check();
      }
    });
    fc.assert(life, { numRuns: 500 });
  });

  it("hands over every change once", () => {
    const { register } = new StoredRegister();
    register.resolve([memory("a", "Rome")]);
    expect(register.drain()).toMatchObject({
      blocks: [{ label: 1, text: "Rome", supersededBy: null }],
      versions: [{ memoryId: "a", label: 1, current: true }],
      removedBlocks: [],
      forgotten: [],
    });
    register.resolve([memory("a", "Rome")]);
    expect(register.drain()).toEqual({ blocks: [], versions: [], removedBlocks: [], forgotten: [] });
    register.resolve([memory("a", "Oslo")]);
    expect(register.drain()).toMatchObject({
      blocks: [{ label: 2 }, { label: 1, supersededBy: 2 }],
      versions: [
        { memoryId: "a", label: 1, current: false },
        { memoryId: "a", label: 2, current: true },
      ],
    });
    register.forget("a" as MemoryId);
    expect(register.drain()).toEqual({ blocks: [], versions: [], removedBlocks: [1, 2], forgotten: ["a"] });
  });

  it("hands over nothing of a text that came and went in between, but that its memory was forgotten", () => {
    const { register } = new StoredRegister();
    register.resolve([memory("a", "Rome")]);
    register.forget("a" as MemoryId);
    expect(register.drain()).toEqual({ blocks: [], versions: [], removedBlocks: [1], forgotten: ["a"] });
  });

  it("never reuses a label after everything was forgotten and reloaded", () => {
    const stored = new StoredRegister();
    stored.take({ kind: "resolve", memories: [memory("a", "Rome")] });
    stored.take({ kind: "forget", id: "a" as MemoryId });
    stored.reload();
    const { blocks, forgotten } = stored.register.resolve([memory("a", "Oslo"), memory("b", "Rome")]);
    expect(blocks.map((block) => [block.label, block.text])).toEqual([[2, "Rome"]]);
    expect(forgotten).toEqual(["a"]);
  });
});
