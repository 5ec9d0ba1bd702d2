import { expect, it } from "vitest";
import { explanationText } from "../../../src/core/explain/explanation-text.js";
import { EngineCache } from "../../../src/core/index.js";
import type { UserId } from "../../../src/core/text/ids.js";
import { composeWith, memories, NOON, openService } from "../compose/service-fixture.js";

const INSTRUCTIONS = "Answer in one sentence, from what you remember. ".repeat(60);

it("of a user's first prompt the instructions are expected that others' prompts have used, as long as they are held", async () => {
  const engineCache = new EngineCache();
  let now = NOON;
  engineCache.read({ capacityTokens: 4_096, blockTokens: 16, computedTokens: null }, now);
  const service = openService({ engineCache, now: () => now });
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
  // Those of one user alone are nobody else's to know of.
  expect((await ask("dora", INSTRUCTIONS)).plan.expectedCachedTokens).toBe(0);
  const { plan, requestId } = await ask("bea", INSTRUCTIONS);
  expect(plan.expectedCachedTokens).toBeGreaterThan(500);
  expect(plan.expectedCachedTokens % 16).toBe(0);
  expect(plan.expectedCachedTokens).toBeLessThan(plan.totalTokens);
  const { explanation } = (await service.explain("bea" as UserId, null, requestId)) ?? {};
  expect(explanationText(explanation as NonNullable<typeof explanation>).join("\n")).toContain(
    `memstem expected ${plan.expectedCachedTokens} cached tokens: other users' prompts begin with the same instructions.`,
  );
  expect((await ask("eve", `Be brief. ${INSTRUCTIONS}`)).plan.expectedCachedTokens).toBe(0);
  // Another prompt that fills the cache.
  await ask("dan", "Be brief.", "word ".repeat(4_500));
  expect((await ask("cleo", INSTRUCTIONS)).plan.expectedCachedTokens).toBe(0);
  await service.close();
});
