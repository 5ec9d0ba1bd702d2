import { expect, it } from "vitest";
import { CachingEngine, type ChatMessage } from "../../../src/core/index.js";
import { composeWith, memories, NOON, openService } from "./service-fixture.js";

const LONG = "word ".repeat(100);

/** The newest prompt of the second of two windows that take turns at one engine. */
async function windowAt(capacityTokens: number, history: "auto" | "exact") {
  const cachingEngine = new CachingEngine();
  let now = NOON;
  cachingEngine.read({ capacityTokens, blockTokens: 16, computedTokens: null }, now);
  const service = openService({ cachingEngine, now: () => now });
  const said: ChatMessage[] = [];
  let plan: Awaited<ReturnType<typeof composeWith>>["plan"] | null = null;
  for (let turn = 0; turn < 7; turn++) {
    said.push({ role: "user", content: `${LONG} ${turn}?` });
    for (const userId of ["ana", "bea"]) {
      now += 1_000;
      const found = memories({ [`m${turn}`]: `${userId} had the tea number ${turn} in the garden` });
      const messages = said.slice(-5);
      plan = (await composeWith(service, { userId, conversationId: "c", messages, history, memories: found })).plan;
    }
    said.push({ role: "assistant", content: `${LONG} ${turn}.` });
  }
  await service.close();
  return plan;
}

it("of a window that is longer than its share of the cache, the prompt is the client's own messages as they cost least", async () => {
  const outgrown = await windowAt(1_100, "auto");
  expect(outgrown?.epoch?.began).toBe("share");
  expect(outgrown?.totalTokens).toBe((await windowAt(1_100, "exact"))?.totalTokens);
  expect((await windowAt(100_000, "auto"))?.totalTokens).toBeGreaterThan(outgrown?.totalTokens ?? 0);
});
