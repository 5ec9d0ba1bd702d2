import { describe, expect, it } from "vitest";
import { type RequestId, residencyModel } from "../../../src/core/index.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { temporaryFolder } from "../../temporary-folders.js";
import { ana, composeWith, memories, NOON, openService } from "../compose/service-fixture.js";

const directory = temporaryFolder();

/** Facts of some 250 tokens each: one is more than any engine's step. */
const fact = (name: string) => ({ [name]: `${name} ${"x".repeat(1_000)}` });
const facts = (...names: readonly string[]) => memories(Object.assign({}, ...names.map(fact)));

const ask = (service: Memprefix, requestId: string, ...names: readonly string[]) =>
  composeWith(service, { userId: "ana", requestId, query: "?", memories: facts(...names) });
/** A service to which requests come a minute apart. */
const openSlowly: typeof openService = (options = {}) => {
  let minutes = 0;
  return openService({ now: () => NOON + 60_000 * ++minutes, ...options });
};

const report = (service: Memprefix, requestId: string, cachedTokens: number) =>
  service.feedback(ana, null, requestId as RequestId, { cachedTokens });
describe("feedback", () => {
  it("that shows a miss ends what the next request expects, also after a restart", async () => {
    const [steady, reopened] = [openSlowly(), openSlowly({ directory })];
    for (const service of [steady, reopened]) {
      await ask(service, "r1", "a", "b");
      await ask(service, "r2", "a", "c");
      const { difference } = await report(service, "r2", 0);
      expect(difference).toBeLessThan(-200);
    }
    await reopened.close();
    const again = openSlowly({ directory });
    const next = await ask(again, "r3", "b", "a");
    expect(next).toEqual(await ask(steady, "r3", "b", "a"));
    expect(next.blocks.map(({ memoryId, placement }) => [memoryId, placement])).toEqual([
      ["a", "cached_prefix"],
      ["b", "new"],
    ]);
    await Promise.all([again.close(), steady.close()]);
  });

  it("that comes after the cache's time is up does not bring back what it is about", async () => {
    let now = NOON;
    const service = openSlowly({ residency: residencyModel({ kind: "ttl", ttlMs: 60_000 }), now: () => now });
    const { plan } = await ask(service, "r1", "a");
    now += 59_000;
    await report(service, "r1", plan.expectedCachedTokens);
    now += 59_000;
    expect((await ask(service, "r2", "a")).plan.expectedCachedTokens).toBeGreaterThan(0);
    now += 60_000;
    await report(service, "r2", 10_000);
    expect((await ask(service, "r3", "a")).plan.expectedCachedTokens).toBe(0);
    await service.close();
  });
});

describe("an engine that was started again", () => {
  /** Two answered prompts that share their first fact, and a third that goes on from the first; all at the same moment. */
  const openQuickly = async () => {
    const service = openService();
    for (const [id, names] of [
      ["r1", ["a", "b"]],
      ["r2", ["c", "d"]],
    ] as const) {
      const { plan } = await ask(service, id, ...names);
      await report(service, id, plan.expectedCachedTokens);
    }
    return service;
  };
  const expectedOf = async (service: Memprefix, id: string, ...names: readonly string[]) =>
    (await ask(service, id, ...names)).plan.expectedCachedTokens;

  it("is noticed from one answer without a hit, however shortly before it what is gone was answered", async () => {
    const service = await openQuickly();
    expect(await expectedOf(service, "r3", "a", "e")).toBeGreaterThan(250);
    await report(service, "r3", 0);
    expect(await expectedOf(service, "r4", "c", "d")).toBeLessThan(20);
    await service.close();
  });

  it("is not taken for what was asked at the same time and is not answered yet", async () => {
    const service = await openQuickly();
    const [, both] = [await ask(service, "r3", "a", "b", "f"), await ask(service, "r4", "a", "b", "g")];
    expect(both.plan.expectedCachedTokens).toBeGreaterThan(500);
    await report(service, "r4", 0);
    // The request before was under way: of what it shares with this one nothing is known.
    expect(await expectedOf(service, "r5", "a", "b", "f")).toBeGreaterThan(500);
    await service.close();
  });

  it("is noticed from two answers in a row that had only the instructions, which others had brought back", async () => {
    const system = "Be kind. ".repeat(150);
    const of = (service: Memprefix, requestId: string, ...names: readonly string[]) =>
      composeWith(service, { userId: "ana", requestId, query: "?", system, memories: facts(...names) });
    const [once, twice] = [openService(), openService()];
    const expected: number[] = [];
    for (const service of [once, twice]) {
      for (const [id, name] of [
        ["r1", "a"],
        ["r2", "b"],
        ["r3", "c"],
        ["r4", "d"],
      ] as const) {
        const { plan } = await of(service, id, name);
        await report(service, id, plan.expectedCachedTokens);
      }
      // The oldest of them first: that it is gone says nothing of the younger ones.
      await of(service, "r5", "a");
      await report(service, "r5", 340);
      if (service === twice) {
        await of(service, "r6", "b");
        await report(service, "r6", 340);
      }
      expected.push((await of(service, "r7", "d")).plan.expectedCachedTokens);
      await service.close();
    }
    expect(expected[0]).toBeGreaterThan(550);
    expect(expected[1]).toBeLessThan(360);
  });
});
