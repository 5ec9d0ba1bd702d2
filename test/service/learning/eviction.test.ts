import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { residencyModel } from "../../../src/core/index.js";
import { composeWith, memories, openService } from "../compose/service-fixture.js";

const FACTS = memories({ m1: "Fact one.", m2: "Fact two.", m3: "Fact three." });
const id = (name: string) => name as never;

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
