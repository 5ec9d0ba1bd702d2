import { expect, it } from "vitest";
import { PublishingCache } from "../../../bench/publishing-cache.js";
import { CachingEngine } from "../../../src/core/index.js";
import { ResidentBlocks } from "../../../src/engines/kv-events/resident-blocks.js";
import { ana, composeWith, memories, openService } from "./service-fixture.js";

it("expects no prompt again of which events say that the engine lost it, after a dry run too", async () => {
  const cachingEngine = new CachingEngine();
  const blocks = new ResidentBlocks();
  cachingEngine.residents.push(blocks);
  blocks.forget(true);
  const service = openService({ cachingEngine });
  const messages = [{ role: "user", content: "Where?" }];
  const found = (name: string) => memories({ [name]: `${name} is ${"very ".repeat(300)}good.` });
  const ask = (name: string, dryRun = false) =>
    composeWith(service, { userId: ana, messages, memories: found(name), dryRun });
  const cache = new PublishingCache(100_000, 16, true);
  const served = async (name: string, from: number) => {
    const { requestId, plan } = await ask(name);
    const promptTokens = plan.totalTokens;
    const tokens = Array.from({ length: promptTokens }, (_, at) => from + at);
    const { events } = cache.compute(tokens);
    blocks.take(events);
    const chains = blocks.chainsOf(tokens, null);
    service.chats.composer.tokenized(ana, null, requestId, { tokens: promptTokens, chains });
    await service.feedback(ana, null, requestId, { cachedTokens: 0, promptTokens });
    return events.flatMap((event) => event.hashes);
  };
  // A scope has no number before its first prompt is stored.
  await served("m", 0);
  const hashes = await served("n", 10_000);
  await served("o", 20_000);
  const expected = async () => (await ask("n", true)).plan.expectedCachedTokens;
  expect(await expected()).toBeGreaterThan(200);
  blocks.take([{ kind: "removed", hashes, medium: null }]);
  expect([await expected(), await expected()]).toEqual([0, 0]);
});
