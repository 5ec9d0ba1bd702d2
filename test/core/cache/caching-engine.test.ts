import { describe, expect, it } from "vitest";
import { CachingEngine } from "../../../src/core/cache/caching-engine.js";
import { PredictedCache } from "../../../src/core/cache/predicted-cache.js";
import { handle, NO_HEAD } from "./asking.js";

const own = { stream: "a", user: "a", head: NO_HEAD };
const reading = (computedTokens: number | null, capacityTokens: number | null = 10_000) => ({
  capacityTokens,
  blockTokens: 16,
  computedTokens,
});

/** One prompt of 1,000 tokens, all computed, at an engine that has been read before. */
function withPrompt(counted = 0) {
  const engine = new CachingEngine();
  const cache = new PredictedCache(engine);
  engine.read(reading(counted), 0);
  cache.admit({ ...own, handle: handle(1), at: 1, total: 1_000, cached: 0, known: 0 });
  return { engine, cache };
}

describe("what an engine says of its cache", () => {
  it("is the capacity until it is configured, or reports contradict it", () => {
    const { engine, cache } = withPrompt();
    expect(cache.capacity).toBe(10_000);
    engine.read(reading(1_000, 20_000), 2);
    expect(cache.capacity).toBe(20_000);
    const configured = new CachingEngine(5_000);
    configured.read(reading(0), 0);
    expect(new PredictedCache(configured).capacity).toBe(5_000);
  });

  it("shows what other clients had computed, which displaces memprefix's prompts", () => {
    const { engine, cache } = withPrompt(500);
    engine.read(reading(1_500), 2);
    expect(engine.foreignTokens).toBe(0);
    expect(cache.lookup("a").residentTokens).toBe(10_000);
    engine.read(reading(8_000), 3);
    expect(engine.foreignTokens).toBe(6_500);
    expect(cache.lookup("a").residentTokens).toBe(3_500);
    engine.read(reading(80_000), 4);
    expect(cache.lookup("a").residentTokens).toBe(0);
  });

  it("is not changed for others by a tenant that reports nonsense", () => {
    const { engine, cache } = withPrompt();
    const liar = new PredictedCache(engine);
    for (const [n, cachedTokens] of [1e300, Number.POSITIVE_INFINITY, 0, 1e9].entries()) {
      liar.admit({ ...own, stream: `l${n}`, handle: handle(n), at: 2 + n, total: 100, cached: 50, known: 100 });
      liar.report(handle(n), { cachedTokens, promptTokens: n % 2 === 0 ? 1 : 1e300 }, 2 + n);
    }
    engine.read(reading(1_400), 9);
    expect(engine.foreignTokens).toBeLessThanOrEqual(400);
    expect(cache.capacity).toBe(10_000);
    expect(cache.lookup("a").residentTokens).toBeGreaterThanOrEqual(9_200);
  });
});
