import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { residencyModel } from "../../../src/core/index.js";
import { composeWith, memories, openService } from "../compose/service-fixture.js";

const FACTS = memories({ m1: "Fact one.", m2: "Fact two.", m3: "Fact three." });
const id = (name: string) => name as never;

describe("eviction", () => {
  it("by the caller's own request id ends the expectation of a hit, for that user only", async () => {
    const service = openService();
    for (const userId of ["ana", "bo"])
      await composeWith(service, { userId, requestId: `${userId}-1`, query: "x", memories: FACTS });
    expect(await service.evict([id("ana-1"), id("ana-1"), id("nope")])).toEqual({
      evicted: ["ana-1"],
      unknown: ["nope"],
    });
    const [ana, bo] = await Promise.all(
      ["ana", "bo"].map((userId) => composeWith(service, { userId, query: "y", memories: FACTS })),
    );
    expect(ana?.plan.expectedCachedTokens).toBe(0);
    expect(ana?.blocks.map(({ placement }) => placement)).toEqual(["new", "new", "new"]);
    expect(bo?.blocks.map(({ placement }) => placement)).toEqual(["cached_prefix", "cached_prefix", "cached_prefix"]);
    await service.close();
  });

  it("of one of two requests that served the same blocks keeps them expected", async () => {
    const service = openService();
    for (const requestId of ["r1", "r2"])
      await composeWith(service, { userId: "ana", requestId, query: "x", memories: FACTS });
    await service.evict([id("r1")]);
    expect(
      (await composeWith(service, { userId: "ana", query: "y", memories: FACTS })).plan.expectedCachedTokens,
    ).toBeGreaterThan(0);
    await service.close();
  });

  it("is told once: the second time the id is unknown", async () => {
    const service = openService();
    await composeWith(service, { userId: "ana", requestId: "r1", query: "x", memories: FACTS });
    await service.evict([id("r1")]);
    expect(await service.evict([id("r1")])).toEqual({ evicted: [], unknown: ["r1"] });
    await service.close();
  });

  it("said twice at once counts once: what another request served stays expected", async () => {
    const service = openService();
    for (const requestId of ["r1", "r2"])
      await composeWith(service, { userId: "ana", requestId, query: "x", memories: FACTS });
    const answers = await Promise.all([service.evict([id("r1")]), service.evict([id("r1")])]);
    expect(answers.map(({ evicted }) => evicted)).toEqual([["r1"], []]);
    const { plan } = await composeWith(service, { userId: "ana", query: "y", memories: FACTS });
    expect(plan.expectedCachedTokens).toBeGreaterThan(0);
    await service.close();
  });

  it("of everything leaves an empty index that works on", async () => {
    const service = openService();
    const ids = ["r1", "r2", "r3"];
    for (const [n, requestId] of ids.entries()) {
      await composeWith(service, { userId: "ana", requestId, query: "x", memories: [...FACTS].slice(n) });
    }
    await service.evict(ids.map(id));
    expect((await service.describeIndex(id("ana"), null, 100)).nodes).toEqual([]);
    const { blocks, plan } = await composeWith(service, { userId: "ana", query: "y", memories: FACTS });
    expect(blocks.map(({ label }) => label).sort()).toEqual([1, 2, 3]);
    expect(plan.expectedCachedTokens).toBe(0);
    await service.close();
  });

  it("of a conversation's turn ends what its next turn expects of it", async () => {
    const service = openService();
    const first = { role: "user", content: "One?" };
    const of = { userId: "ana", conversationId: "c", retention: "keep" } as const;
    await composeWith(service, { ...of, requestId: "t1", messages: [first], memories: FACTS });
    await service.evict([id("t1")]);
    const messages = [first, { role: "assistant", content: "1" }, { role: "user", content: "Two?" }];
    const { plan } = await composeWith(service, { ...of, messages, memories: FACTS });
    expect(plan).toMatchObject({ expectedCachedTokens: 0, stableMessages: 1 });
    await service.close();
  });
});

describe("eviction where an engine keeps the last prompt of each slot", () => {
  const slotted = (slots: number) => openService({ residency: residencyModel({ kind: "slots", slots }) });
  const asked = (requestId: string, memories = FACTS) => ({ userId: "ana", requestId, query: "x", memories });
  const OTHERS = memories({ o1: "Quite another fact.", o2: "One more of those." });

  it("of a request whose slot was overwritten by one with the same blocks leaves that one expected", async () => {
    const service = slotted(1);
    for (const requestId of ["r1", "r2"]) await composeWith(service, asked(requestId));
    expect(await service.evict([id("r1")])).toEqual({ evicted: ["r1"], unknown: [] });
    expect((await composeWith(service, asked("r3"))).plan.expectedCachedTokens).toBeGreaterThan(0);
    expect(await service.evict([id("r2"), id("r3")])).toEqual({ evicted: ["r2", "r3"], unknown: [] });
    expect((await composeWith(service, asked("r4"))).plan.expectedCachedTokens).toBe(0);
    await service.close();
  });

  it("of both leaves neither expected, in whatever order they are named", async () => {
    for (const names of [
      ["r1", "r2"],
      ["r2", "r1"],
    ]) {
      const service = slotted(3);
      // In another slot: it shares nothing.
      await composeWith(service, asked("other", OTHERS));
      await composeWith(service, asked("r1"));
      await composeWith(service, asked("r2"));
      for (const name of names) await service.evict([id(name)]);
      expect((await composeWith(service, asked("r4"))).plan.expectedCachedTokens).toBe(0);
      await service.close();
    }
  });

  it("of requests before the last one changes nothing that a single slot is expected to hold", async () => {
    const sets = [FACTS, OTHERS, [...FACTS.slice(0, 2), ...OTHERS], FACTS.slice(0, 1)];
    const step = fc.record({ set: fc.nat(sets.length - 1), evicted: fc.array(fc.nat(12), { maxLength: 3 }) });
    const unchanged = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), async (steps) => {
      const [told, untold] = [slotted(1), slotted(1)];
      for (const [n, { set, evicted }] of steps.entries()) {
        const request = { ...asked(`r${n}`, sets[set]), query: `question ${n}` };
        const [one, other] = await Promise.all([composeWith(told, request), composeWith(untold, request)]);
        expect(one).toEqual(other);
        await told.evict(evicted.filter((named) => named < n).map((named) => id(`r${named}`)));
      }
      await Promise.all([told.close(), untold.close()]);
    });
    await fc.assert(unchanged, { numRuns: 60 });
  });
});
