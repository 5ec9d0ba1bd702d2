import { expect, it } from "vitest";
import { CachingEngine } from "../../../src/core/index.js";
import { composeWith, memories, NOON, openService } from "../compose/service-fixture.js";

const INSTRUCTIONS = "Answer in one sentence, from what you remember. ".repeat(60);

it("of a user's first prompt the instructions are expected that others' prompts have used, as long as they are held", async () => {
  const cachingEngine = new CachingEngine();
  let now = NOON;
  cachingEngine.read({ capacityTokens: 4_096, blockTokens: 16, computedTokens: null }, now);
  const service = openService({ cachingEngine, now: () => now });
  const ask = async (userId: string, system: string, query = "Which tea?") => {
    now += 1_000;
    const found = memories({ m1: `${userId} likes green tea` });
    return composeWith(service, {
      userId,
      requestId: `of ${userId}`,
      conversationId: "c",
      system,
      query,
      memories: found,
    });
  };
  expect((await ask("ana", INSTRUCTIONS)).plan.expectedCachedTokens).toBe(0);
  // Instructions that one user alone has sent are hidden from others.
  expect((await ask("dora", INSTRUCTIONS)).plan.expectedCachedTokens).toBe(0);
  const { plan } = await ask("bea", INSTRUCTIONS);
  expect(plan.expectedCachedTokens).toBeGreaterThan(500);
  expect(plan.expectedCachedTokens % 16).toBe(0);
  expect(plan.expectedCachedTokens).toBeLessThan(plan.totalTokens);
  expect(plan.miss).toBeNull();
  expect((await ask("eve", `Be brief. ${INSTRUCTIONS}`)).plan.expectedCachedTokens).toBe(0);
  // Another prompt that fills the cache.
  await ask("dan", "Be brief.", "word ".repeat(4_500));
  expect((await ask("cleo", INSTRUCTIONS)).plan.expectedCachedTokens).toBe(0);
  await service.close();
});

it("a prompt that its caller sends to an engine of another family takes nothing of the configured one's cache", async () => {
  const cachingEngine = new CachingEngine(4_096);
  let now = NOON;
  const service = openService({ cachingEngine, now: () => now });
  const ask = (userId: string, engine: "generic" | "anthropic", system: string) => {
    now += 1_000;
    const found = memories({ m1: `${userId} likes green tea` });
    const query = "Which tea?";
    return composeWith(service, { userId, conversationId: "c", engine, system, query, memories: found });
  };
  const cachedOf = async (...prompt: Parameters<typeof ask>) => (await ask(...prompt)).plan.expectedCachedTokens;
  const own = "Be brief. ".repeat(200);
  await ask("ana", "generic", own);
  const expected = await cachedOf("ana", "generic", own);
  expect(expected).toBeGreaterThan(400);
  // They would displace all of it.
  for (let n = 0; n < 10; n++) await ask(`user ${n}`, "anthropic", `${n} ${"word ".repeat(1_000)}`);
  expect(await cachedOf("ana", "generic", own)).toBeGreaterThanOrEqual(expected);
  for (let n = 0; n < 10; n++) await ask(`user ${n}`, "generic", `${n} ${"word ".repeat(1_000)}`);
  expect(await cachedOf("ana", "generic", own)).toBe(0);
  await service.close();
});
