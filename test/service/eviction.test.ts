import { describe, expect, it } from "vitest";
import { composeWith, memories, openService } from "./service-fixture.js";

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
    expect(service.describeIndex(id("ana"), null, 100).nodes).toEqual([]);
    const { blocks, plan } = await composeWith(service, { userId: "ana", query: "y", memories: FACTS });
    expect(blocks.map(({ label }) => label).sort()).toEqual([1, 2, 3]);
    expect(plan.expectedCachedTokens).toBe(0);
    await service.close();
  });

  it("of a conversation's turn ends what its next turn expects of it", async () => {
    const service = openService();
    const first = { role: "user", content: "One?" };
    const of = { userId: "ana", conversationId: "c" };
    await composeWith(service, { ...of, requestId: "t1", messages: [first], memories: FACTS });
    await service.evict([id("t1")]);
    const messages = [first, { role: "assistant", content: "1" }, { role: "user", content: "Two?" }];
    const { plan } = await composeWith(service, { ...of, messages, memories: FACTS });
    expect(plan).toMatchObject({ expectedCachedTokens: 0, stableMessages: 1 });
    await service.close();
  });
});
