import { describe, expect, it } from "vitest";
import { CachingEngine } from "../../../src/core/cache/caching-engine.js";
import { PredictedCache } from "../../../src/core/cache/predicted-cache.js";
import { Asking, ENDLESS, handle, NO_HEAD } from "./asking.js";

describe("a predicted cache", () => {
  it("has no end until something was missed, and then about what was held", () => {
    const asking = new Asking(new PredictedCache(new CachingEngine()));
    asking.ask("a", 1_000);
    asking.ask("b", 4_000);
    expect([asking.cache.capacity, asking.cache.lookup("a").residentTokens]).toEqual([ENDLESS, ENDLESS]);
    asking.ask("a", 1_100, 1_000, 1_000);
    expect(asking.cache.capacity).toBe(ENDLESS);
    asking.ask("b", 4_100, 4_000, 4_000);
    for (const stream of ["c", "d", "e"]) asking.ask(stream, 4_000);
    asking.ask("a", 1_200, 1_100, 0);
    // 5,000 tokens were held with b above a, and 17,200 not.
    expect(asking.cache.capacity).toBeGreaterThan(5_000);
    expect(asking.cache.capacity).toBeLessThan(17_200);
  });

  it("is full of everybody's prompts, and as large as a tenant's own reports say: one that lies misleads itself", () => {
    const engine = new CachingEngine(10_000);
    const [honest, liar] = [new PredictedCache(engine), new PredictedCache(engine)];
    const send = (cache: PredictedCache, stream: string, at: number, found: number) => {
      const sent = {
        stream,
        user: stream,
        handle: handle(at),
        at,
        total: 1_000,
        cached: 1_000,
        known: 1_000,
        head: NO_HEAD,
      };
      cache.admit(sent);
      cache.report(handle(at), { cachedTokens: found, promptTokens: 1_000 }, at);
    };
    for (let at = 0; at < 100; at += 2) {
      send(honest, "a", at, at === 0 ? 0 : 1_000);
      send(liar, "b", at + 1, 0);
    }
    expect(honest.capacity).toBe(10_000);
    expect(liar.capacity).toBeLessThan(2_000);
    expect(honest.lookup("a").residentTokens).toBe(9_000);
    expect(honest.lookup("a").shareTokens).toBe(8_500);
  });

  it("learns nothing from the miss of a prompt whose client left before the engine said anything of it", () => {
    const asking = new Asking(new PredictedCache(new CachingEngine()));
    for (let turn = 0; turn < 8; turn++) {
      asking.ask("a", 2_000 + turn, 2_000);
      asking.leave();
      asking.ask("a", 3_000 + turn, 2_000 + turn, 1_000);
    }
    expect(asking.cache.capacity).toBe(ENDLESS);
    asking.ask("a", 4_000, 3_000, 1_000);
    expect(asking.cache.capacity).toBeLessThan(ENDLESS);
  });

  it("keeps what was served since its engine was started again, where that shows late, and nothing of before", () => {
    const engine = new CachingEngine();
    const cache = new PredictedCache(engine);
    const send = (stream: string, at: number, total: number, known: number, found: number) => {
      const cached = Math.min(known, cache.lookup(stream).residentTokens);
      cache.admit({ stream, user: stream, handle: handle(`${stream} ${at}`), at, total, cached, known, head: NO_HEAD });
      cache.report(handle(`${stream} ${at}`), { cachedTokens: found, promptTokens: total }, at + 1);
    };
    const read = (computedTokens: number, at: number) =>
      engine.read({ capacityTokens: 100_000, blockTokens: 16, computedTokens }, at);
    const resident = () => ["a", "b", "c", "d"].map((stream) => cache.lookup(stream).residentTokens > 0);
    read(0, 0);
    for (const [at, stream] of ["a", "b", "c"].entries()) send(stream, 10 + at, 2_000, 0, 0);
    read(6_000, 20);
    send("d", 30, 2_000, 0, 0);
    // It is started again, and gets a.
    send("a", 40, 2_100, 2_000, 0);
    send("a", 50, 2_200, 2_100, 2_100);
    expect(resident()).toEqual([true, true, true, true]);
    read(2_200, 60);
    expect(resident()).toEqual([true, false, false, false]);
    expect([engine.foreignTokens, cache.state.streams]).toEqual([0, 1]);
    send("b", 70, 2_100, 2_000, 0);
    read(4_300, 80);
    expect(resident()).toEqual([true, true, false, false]);
  });
});

const own = { stream: "a", user: "a", head: NO_HEAD };
const reading = (computedTokens: number, capacityTokens = 10_000) => ({
  computedTokens,
  capacityTokens,
  blockTokens: 16,
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
