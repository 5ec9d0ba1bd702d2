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
