import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PublishingCache } from "../../../bench/publishing-cache.js";
import { type KvEvent, ResidentBlocks } from "../../../src/engines/kv-events/resident-blocks.js";
import { seeded } from "../../../src/eval/measures/bootstrap.js";

const BLOCK = 4;
const stored = (
  hashes: string[],
  parent: string | null,
  tokens: number[],
  more: Partial<KvEvent & { kind: "stored" }> = {},
): KvEvent => ({
  kind: "stored",
  hashes,
  parent,
  tokens,
  blockTokens: BLOCK,
  apart: hashes.map(() => null),
  medium: "GPU",
  ...more,
});
const removed = (hashes: string[], medium: string | null = "GPU"): KvEvent => ({ kind: "removed", hashes, medium });
const upTo = (count: number, from = 0) => Array.from({ length: count }, (_, n) => from + n);

function whole(): ResidentBlocks {
  const blocks = new ResidentBlocks();
  blocks.forget(true);
  return blocks;
}
const residentIn = (blocks: ResidentBlocks, tokens: number[], apart: string | null = null) =>
  blocks.residentTokens(blocks.chainsOf([...tokens, 0], apart));

describe("an engine's cached blocks, as its events say", () => {
  it("are a prompt's leading ones, as far as they were stored and not removed", () => {
    const blocks = whole();
    blocks.take([stored(["a", "b"], null, upTo(8)), stored(["c"], "b", upTo(4, 8))]);
    expect(residentIn(blocks, upTo(30))).toBe(12);
    expect(residentIn(blocks, upTo(11))).toBe(8);
    expect(residentIn(blocks, [...upTo(4), ...upTo(8, 50)])).toBe(4);
    blocks.take([removed(["b"])]);
    expect(residentIn(blocks, upTo(30))).toBe(4);
    blocks.take([stored(["b"], "a", upTo(4, 4))]);
    expect(residentIn(blocks, upTo(30))).toBe(12);
    blocks.take([{ kind: "cleared" }]);
    expect(residentIn(blocks, upTo(30))).toBe(0);
  });

  it("are kept apart by what engines keep apart", () => {
    const blocks = whole();
    blocks.take([stored(["a", "b"], null, upTo(8), { apart: ['["salt"]', null] })]);
    expect(residentIn(blocks, upTo(8), '["salt"]')).toBe(8);
    expect(residentIn(blocks, upTo(8))).toBe(0);
    expect(residentIn(blocks, upTo(8), '["other"]')).toBe(0);
  });

  it("are unknown where a prompt's begin was stored before anybody followed, and known behind that", () => {
    const blocks = new ResidentBlocks();
    blocks.take([stored(["x"], "never-seen", upTo(4, 4))]);
    expect(residentIn(blocks, upTo(8))).toBeNull();
    blocks.take([stored(["a"], null, upTo(4))]);
    expect(residentIn(blocks, upTo(8))).toBe(4);
    // Stored again, behind what is known now.
    blocks.take([stored(["x"], "a", upTo(4, 4))]);
    expect(residentIn(blocks, upTo(8))).toBe(8);
  });

  it("do not count those of the prompt itself, nor lose what another medium still has", () => {
    const blocks = whole();
    blocks.take([stored(["a"], null, upTo(4))]);
    const before = blocks.newest;
    blocks.take([stored(["b"], "a", upTo(4, 4)), stored(["a"], null, upTo(4), { medium: "CPU" }), removed(["a"])]);
    const chains = blocks.chainsOf(upTo(9), null);
    expect(blocks.residentTokens(chains, before)).toBe(4);
    expect(blocks.residentTokens(chains)).toBe(8);
    blocks.take([removed(["a", "unknown"], null)]);
    expect(blocks.residentTokens(chains)).toBe(0);
  });

  it("are what an LRU cache of blocks holds, in any life", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 4, max: 40 }), (seed, capacity) => {
        const draw = seeded(seed);
        const blocks = whole();
        const cache = new PublishingCache(capacity * BLOCK, BLOCK, false);
        for (let n = 0; n < 120; n++) {
          const own = Array.from({ length: BLOCK * (1 + Math.floor(draw() * 6)) }, (_, at) =>
            at < 8 ? 0 : Math.floor(draw() * 2),
          );
          const { cached, events } = cache.compute([...own, 0]);
          expect(residentIn(blocks, own)).toBe(cached);
          blocks.take(events);
        }
        expect(blocks.size).toBe(cache.size);
      }),
    );
  });
});
