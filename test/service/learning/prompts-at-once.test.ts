import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { CachingEngine, type UserId } from "../../../src/core/index.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { openInMemory } from "../../../src/store/sqlite/open.js";
import { StoreUnavailableError } from "../../../src/store/store.js";
import { composeWith, NOON, openService } from "../compose/service-fixture.js";
import { beforeComposes } from "../shared-database.js";

const [BLOCKS, BLOCK_TOKENS, ANSWER_TOKENS] = [70, 128, 16];
const USERS = ["ana", "bo", "cy", "di", "ed", "flo", "gil", "hal"];

describe("prompts that are composed together", () => {
  it("leave each other room in the cache that all share, though none of them is stored when the last is planned", async () => {
    const cachingEngine = new CachingEngine();
    const read = (computedTokens: number) =>
      cachingEngine.read({ capacityTokens: BLOCKS * BLOCK_TOKENS, blockTokens: BLOCK_TOKENS, computedTokens }, NOON);
    // As on a disk that is busy.
    const store = beforeComposes(storeIn(openInMemory()), () => setTimeout(20));
    const service = openService({ cachingEngine, store });
    const histories = USERS.map((): { role: "user" | "assistant"; content: string }[] => []);
    let computed = 0;
    for (let turn = 0; turn < 12; turn++) {
      read(computed);
      const composed = await Promise.all(
        USERS.map(async (userId, at) => {
          const history = histories[at] ?? [];
          history.push({ role: "user", content: `What of number ${turn}, when, and why?` });
          // Half of them are new each time.
          const memories = Array.from({ length: 14 }, (_, n) => {
            const memory = 7 * turn + n;
            return {
              id: `m${memory}`,
              memory: `In year ${memory} ${userId} moved to another town with all that was there.`,
            };
          });
          return composeWith(service, { userId, conversationId: "c", messages: history, memories });
        }),
      );
      const blocksOf = ({ plan }: (typeof composed)[number]) =>
        Math.ceil((plan.totalTokens + ANSWER_TOKENS) / BLOCK_TOKENS);
      expect(
        composed.reduce((sum, one) => sum + blocksOf(one), 0),
        `turn ${turn}`,
      ).toBeLessThanOrEqual(BLOCKS);
      for (const [at, { requestId, plan }] of composed.entries()) {
        histories[at]?.push({ role: "assistant", content: "So it is, as you said the other day." });
        const { totalTokens: promptTokens, expectedCachedTokens: cachedTokens } = plan;
        computed += promptTokens - cachedTokens;
        await service.feedback(USERS[at] as UserId, null, requestId, { cachedTokens, promptTokens });
      }
    }
    await service.close();
  });

  it("leave no trace in it where they are planned and cannot be stored", async () => {
    const states = [0, 1].map(async (failures) => {
      const cachingEngine = new CachingEngine();
      cachingEngine.read(
        { capacityTokens: BLOCKS * BLOCK_TOKENS, blockTokens: BLOCK_TOKENS, computedTokens: null },
        NOON,
      );
      let left = failures;
      const store = beforeComposes(storeIn(openInMemory()), async () => {
        if (left-- > 0) throw new StoreUnavailableError("full");
      });
      const service = openService({ cachingEngine, store });
      const memories = [{ id: "m", memory: "She moved to another town. ".repeat(100) }];
      const ask = (userId: string, query: string) =>
        composeWith(service, { userId, conversationId: "c", query, memories });
      if (failures > 0) await expect(ask("ana", "Who?")).rejects.toBeInstanceOf(StoreUnavailableError);
      await ask("ana", "Where?");
      await ask("bo", "When?");
      const { cacheState } = service;
      await service.close();
      return cacheState;
    });
    const [once, again] = await Promise.all(states);
    expect(once?.streams).toBe(2);
    expect(again).toEqual(once);
  });
});
