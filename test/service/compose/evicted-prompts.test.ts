import { expect, it } from "vitest";
import { CachingEngine } from "../../../src/core/index.js";
import { ResidentBlocks } from "../../../src/engines/kv-events/resident-blocks.js";
import { ana, composeWith, memories, NOON, openService } from "./service-fixture.js";

it("expects no prompt again of which events say that the engine lost it, after a dry run too", async () => {
  const cachingEngine = new CachingEngine();
  const blocks = new ResidentBlocks();
  cachingEngine.residents.push(blocks);
  blocks.forget(true);
  let now = NOON;
  const service = openService({ cachingEngine, now: () => (now += 1_000) });
  const ask = (name: string, dryRun = false) => {
    const messages = [{ role: "user", content: "Where?" }];
    const found = memories({ [name]: `${name} is ${"very ".repeat(300)}good.` });
    return composeWith(service, { userId: ana, messages, memories: found, dryRun });
  };
  const served = async (name: string, from: number) => {
    const { requestId, plan } = await ask(name);
    const tokens = Array.from({ length: plan.totalTokens }, (_, at) => from + at);
    const hashes = Array.from({ length: tokens.length >> 4 }, (_, at) => `${from + at}`);
    const own = { tokens: tokens.slice(0, hashes.length << 4), apart: hashes.map(() => null), blockTokens: 16 };
    blocks.take([{ kind: "stored", hashes, parent: null, ...own, medium: "GPU" }]);
    const { length } = tokens;
    service.chats.composer.tokenized(ana, null, requestId, { tokens: length, chains: blocks.chainsOf(tokens, null) });
    await service.feedback(ana, null, requestId, { cachedTokens: 0, promptTokens: length });
    return hashes;
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
