import { expect, it } from "vitest";
import { CachingEngine, type ChatMessage } from "../../../src/core/index.js";
import type { ObservedCompose } from "../../../src/service/base/memprefix-observer.js";
import { composeWith, memories, NOON, openService } from "./service-fixture.js";

it("what an engine with blocks could reuse is what it caches of them: a conversation that only grows misses nothing", async () => {
  const cachingEngine = new CachingEngine();
  cachingEngine.read({ capacityTokens: 100_000, blockTokens: 16, computedTokens: null }, NOON);
  const service = openService({ cachingEngine });
  const composed: ObservedCompose[] = [];
  service.observe({ composed: (prompt) => void composed.push(prompt) });
  const history: ChatMessage[] = [{ role: "system", content: "Be brief." }];
  for (const [turn, question] of ["Which tea?", "And where is it from?", "Since when?"].entries()) {
    history.push({ role: "user", content: question });
    const found = memories({ [`m${turn}`]: `Ada had the tea number ${turn} in the garden` });
    await composeWith(service, { userId: "ana", conversationId: "c", messages: history, memories: found });
    history.push({ role: "assistant", content: "Green tea." });
  }
  const before = composed.map(({ plan }) => plan.totalTokens);
  expect(before.slice(0, -1).some((tokens) => tokens % 16 > 0)).toBe(true);
  expect(composed.map(({ plan }) => plan.miss)).toEqual([null, null, null]);
});
