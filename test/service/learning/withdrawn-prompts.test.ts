import { describe, expect, it } from "vitest";
import { CachingEngine, type RequestId } from "../../../src/core/index.js";
import { ana, composeWith, NOON, openService } from "../compose/service-fixture.js";

describe("a prompt that the engine never got", () => {
  it.each(["neverServed", "withdraw"] as const)(
    "displaces nothing of others' in the cache that all share: %s",
    async (how) => {
      const cachingEngine = new CachingEngine();
      const read = (computedTokens: number) =>
        cachingEngine.read({ capacityTokens: 100_000, blockTokens: 16, computedTokens }, NOON);
      read(0);
      const service = openService({ cachingEngine });
      const ask = (requestId: string, conversationId: string, text: string) =>
        composeWith(service, { userId: "ana", requestId, conversationId, query: text, memories: [] });
      await ask("first", "a", "?");
      const before = service.cacheState;
      const withdrawn = await ask("second", "b", "x".repeat(40_000));
      expect(service.cacheState?.streams).toBe((before?.streams ?? 0) + 1);
      await service.chats.reports[how](ana, null, withdrawn.requestId as RequestId);
      expect(service.cacheState?.streams).toBe(before?.streams);
      // Other clients' 5,000 tokens are not taken for those of the prompt.
      read(5_000);
      expect(service.cacheState?.foreignTokens).toBeGreaterThan(4_900);
      await service.close();
    },
  );
});
