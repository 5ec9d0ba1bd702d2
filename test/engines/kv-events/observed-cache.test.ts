import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CachingEngine } from "../../../src/core/cache/caching-engine.js";
import { ContextIndex } from "../../../src/core/cache/context-index.js";
import type { Label } from "../../../src/core/text/ids.js";
import { ObservedCache } from "../../../src/engines/kv-events/observed-cache.js";
import { ResidentBlocks } from "../../../src/engines/kv-events/resident-blocks.js";
import { handle, NO_HEAD } from "../../core/cache/asking.js";
import { checkIndex } from "../../core/cache/index-rules.js";
import { HERE, labels } from "../../core/cache/served-sequences.js";

const BLOCK = 16;
const PER_LABEL = 100;

/** What a prompt with these memories has for tokens. */
function tokensOf(sequence: readonly Label[]): number[] {
  return sequence.flatMap((label) => Array.from({ length: PER_LABEL }, (_, at) => label * 1_000 + at));
}

/** By all tokens up to the block's end. */
function hashesOf(tokens: readonly number[], size = BLOCK): string[] {
  const count = Math.floor(tokens.length / size);
  return Array.from({ length: count }, (_, at) => tokens.slice(0, (at + 1) * size).join());
}

function store(blocks: ResidentBlocks, tokens: readonly number[], size = BLOCK): void {
  const hashes = hashesOf(tokens, size);
  const own = { tokens: tokens.slice(0, hashes.length * size), apart: hashes.map(() => null) };
  blocks.take([{ kind: "stored", hashes, parent: null, ...own, blockTokens: size, medium: "GPU" }]);
}

/** An engine that publishes its events, and a scope's index. Prompts are ten seconds apart. */
function observing() {
  const engine = new CachingEngine(1_000_000);
  const worker = () => {
    const blocks = new ResidentBlocks();
    engine.residents.push(blocks);
    blocks.forget(true);
    return blocks;
  };
  const blocks = worker();
  store(blocks, [...Array(BLOCK).keys()]);
  const cache = new ObservedCache(engine);
  let index = new ContextIndex([], 1, 1_000, () => PER_LABEL);
  let n = 0;
  const send = (sequence: readonly Label[], tokens = tokensOf(sequence), total = tokens.length) => {
    const leaf = index.insert(HERE, sequence, ++n);
    const [end, at] = [{ scopeId: 1, leaf }, n * 10_000];
    const own = { stream: "a", user: "a", head: NO_HEAD, cached: 0, known: 0, handle: handle(n), at };
    cache.admit({ ...own, total, end });
    cache.tokenized(handle(n), { tokens: tokens.length, chains: blocks.chainsOf(tokens, null) });
    return () => cache.report(handle(own.at / 10_000), { cachedTokens: 0, promptTokens: tokens.length }, at + 1);
  };
  const serve = (sequence: readonly Label[]) => {
    store(blocks, tokensOf(sequence));
    send(sequence)();
  };
  const evict = (hashes: readonly string[]) => blocks.take([{ kind: "removed", hashes, medium: null }]);
  const look = (scopeId = 1, after = 10_000) => {
    cache.lookup("a", scopeId).residency.expire(index, n * 10_000 + after);
    checkIndex(index);
  };
  const held = (sequence: readonly Label[]) => index.heldBlocks(HERE, sequence);
  const rollBack = () => {
    const stored = index.stored();
    look();
    index = new ContextIndex(stored, index.nextId, 1_000, () => PER_LABEL);
  };
  return { cache, blocks, worker, send, serve, evict, look, held, rollBack };
}

const [first, second] = [labels(1, 2, 3, 4, 5), labels(1, 2, 6, 7)];

describe("an engine's cache as its events show it", () => {
  it("says of a stream's newest prompt what is held, in memprefix's tokens", () => {
    const { cache, blocks, send, evict } = observing();
    const tokens = Array.from({ length: 2_001 }, (_, n) => n);
    store(blocks, tokens);
    send(first, tokens, 1_000);
    expect(cache.lookup("a").residentTokens).toBe(Number.POSITIVE_INFINITY);
    // Of 1,000 tokens by memprefix's counter, which are 2,001 of the engine's.
    evict(hashesOf(tokens).slice(50));
    expect(cache.lookup("a").residentTokens).toBe(399);
    // Its next prompt is not known block by block yet.
    const own = { stream: "a", user: "a", head: NO_HEAD, at: 1, cached: 0, known: 0 };
    cache.admit({ ...own, handle: handle(2), total: 1_200 });
    expect(cache.lookup("a").residentTokens).toBe(1_000_000);
  });

  it("leaves in a scope's index what the engine holds and at most two blocks more, in any life", () => {
    const anyLife = fc.array(
      fc.oneof(
        fc.record({ serve: fc.uniqueArray(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 }) }),
        fc.record({ evict: fc.nat(12), looks: fc.boolean() }),
        fc.constant({ rollBack: true }),
      ),
      { maxLength: 14 },
    );
    const lives = fc.property(anyLife, (life) => {
      const { serve, evict, look, held, rollBack } = observing();
      /** The next to be evicted first. */
      const cached = new Set<string>();
      const served: Label[][] = [];
      for (const event of life) {
        if ("serve" in event) {
          look();
          const sequence = labels(...event.serve);
          serve(sequence);
          served.push(sequence);
          const hashes = hashesOf(tokensOf(sequence)).reverse();
          for (const hash of hashes) cached.delete(hash);
          for (const hash of hashes) cached.add(hash);
        } else if ("evict" in event) {
          const gone = [...cached].slice(0, event.evict);
          for (const hash of gone) cached.delete(hash);
          evict(gone);
          if (event.looks) look();
        } else rollBack();
      }
      look();
      for (const sequence of served) {
        const hashes = hashesOf(tokensOf(sequence));
        const missing = hashes.findIndex((hash) => !cached.has(hash));
        const tokens = missing < 0 ? sequence.length * PER_LABEL : missing * BLOCK;
        expect(held(sequence)).toBeGreaterThanOrEqual(Math.floor(tokens / PER_LABEL));
        expect(held(sequence) * PER_LABEL).toBeLessThanOrEqual(1.02 * (tokens + 2 * BLOCK));
      }
    });
    fc.assert(lives, { numRuns: 300 });
  });

  it("takes nothing from another scope, nor while a prompt of this one is computed", () => {
    const { blocks, send, serve, evict, look, held } = observing();
    serve(first);
    look();
    evict(hashesOf(tokensOf(first)).slice(7));
    look(2);
    const answered = send(second);
    look(1, 1_000);
    expect([held(first), held(second)]).toEqual([5, 4]);
    store(blocks, tokensOf(second));
    answered();
    look(1, 1_000);
    expect([held(first), held(second)]).toEqual([2, 4]);
  });

  it("takes nothing that a worker may hold whose events were lost, nor for a new length of blocks", () => {
    const { blocks, worker, serve, look, held } = observing();
    serve(first);
    look();
    store(worker(), tokensOf(labels(9)));
    blocks.forget(false);
    look();
    expect(held(first)).toBe(5);
    blocks.forget(true);
    store(blocks, tokensOf(first), 2 * BLOCK);
    look();
    expect(held(first)).toBe(5);
  });
});
