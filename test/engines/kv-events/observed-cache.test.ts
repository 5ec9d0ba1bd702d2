import { describe, expect, it } from "vitest";
import { CachingEngine } from "../../../src/core/cache/caching-engine.js";
import { ContextIndex } from "../../../src/core/cache/context-index.js";
import { ObservedCache } from "../../../src/engines/kv-events/observed-cache.js";
import { ResidentBlocks } from "../../../src/engines/kv-events/resident-blocks.js";
import { handle, NO_HEAD } from "../../core/cache/asking.js";
import { HERE, labels } from "../../core/cache/served-sequences.js";

const BLOCK = 16;
const own = { stream: "a", user: "a", head: NO_HEAD, at: 1, cached: 0, known: 0 };

/** An engine that publishes its events, and has cached nothing yet. */
function observing() {
  const engine = new CachingEngine(10_000);
  const blocks = new ResidentBlocks();
  engine.residents.push(blocks);
  blocks.forget(true);
  const cache = new ObservedCache(engine);
  /** What the engine computes of a prompt: whole blocks, by the hash of all tokens up to their ends. */
  const compute = (tokens: readonly number[]) => {
    const count = Math.floor(tokens.length / BLOCK);
    const hashes = Array.from({ length: count }, (_, at) => tokens.slice(0, (at + 1) * BLOCK).join());
    const apart = hashes.map(() => null);
    const stored = { parent: null, tokens: tokens.slice(0, count * BLOCK), blockTokens: BLOCK, apart, medium: "GPU" };
    blocks.take([{ kind: "stored", hashes, ...stored }]);
    return hashes;
  };
  const evict = (hashes: readonly string[]) => blocks.take([{ kind: "removed", hashes, medium: null }]);
  const tokenized = (n: number, tokens: readonly number[]) =>
    cache.tokenized(handle(n), { tokens: tokens.length, chains: blocks.chainsOf(tokens, null) });
  return { cache, compute, evict, tokenized };
}

const counted = (count: number, from = 0) => Array.from({ length: count }, (_, n) => from + n);

describe("an engine's cache as its events show it", () => {
  it("holds of a stream's newest prompt what events say, in memprefix's tokens", () => {
    const { cache, compute, evict, tokenized } = observing();
    const tokens = counted(2_001);
    cache.admit({ ...own, handle: handle(1), total: 1_000 });
    const hashes = compute(tokens);
    tokenized(1, tokens);
    expect(cache.lookup("a").residentTokens).toBe(Number.POSITIVE_INFINITY);
    // Of 1,000 tokens by memprefix's counter, which are 2,001 of the engine's.
    evict(hashes.slice(50));
    expect(cache.lookup("a").residentTokens).toBe(399);
    // Its next prompt is not known block by block yet.
    cache.admit({ ...own, handle: handle(2), total: 1_200 });
    expect(cache.lookup("a").residentTokens).toBe(10_000);
  });

  it("takes from a scope's index what the engine lost, whichever prompt had it, but nothing that is computed now", () => {
    const { cache, compute, evict, tokenized } = observing();
    const index = new ContextIndex([], 1, 100, () => 100);
    const [first, second] = [labels(1, 2, 3, 4, 5), labels(1, 2, 6, 7)];
    const expire = (scope: string) => cache.lookup("a", scope).residency.expire(index, 3);
    const held = () => [first, second].map((sequence) => index.heldBlocks(HERE, sequence));
    const [ofFirst, ofSecond] = [counted(512), [...counted(208), ...counted(208, 1_000)]];
    for (const [n, sequence, tokens] of [
      [1, first, ofFirst],
      [2, second, ofSecond],
    ] as const) {
      const end = { scope: "s", leaf: index.insert(HERE, sequence, n) };
      cache.admit({ ...own, handle: handle(n), total: tokens.length, end });
    }
    const hashes = compute(ofFirst);
    tokenized(1, ofFirst);
    expire("s");
    // The second is not computed yet, so it is not lost.
    compute(ofSecond.slice(0, 208));
    tokenized(2, ofSecond);
    expire("s");
    expect(held()).toEqual([5, 4]);
    compute(ofSecond);
    cache.report(handle(2), { cachedTokens: 208, promptTokens: 416 }, 2);
    evict(hashes.slice(20));
    expire("another");
    expect(held()).toEqual([5, 4]);
    // 20 blocks of 16 tokens are left, and so three memories of 100.
    expire("s");
    expect(held()).toEqual([3, 4]);
    evict(hashes.slice(7));
    expire("s");
    expect(held()).toEqual([1, 1]);
  });
});
