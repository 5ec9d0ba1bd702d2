import { expect, it } from "vitest";
import type { MemoryId, UserId } from "../../../src/core/index.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { openInMemory } from "../../../src/store/sqlite/open.js";
import { ana, composeWith, memories, NOON, openService } from "../compose/service-fixture.js";

it("an event of a memory reads its own tenant's users alone", async () => {
  const database = openInMemory();
  const store = storeIn(database);
  const service = openService({ store });
  await composeWith(service, { userId: "ana", query: "?", memories: memories({ m1: "Ana rows." }) });
  for (let n = 0; n < 500; n++)
    await store.begin({ tenant: "other", userId: `user-${n}` as UserId, agentId: null }, NOON);
  const pages: unknown[] = [];
  const find = store.usersWithMemory.bind(store);
  store.usersWithMemory = async (...of) => {
    const page = await find(...of);
    pages.push(page);
    return page;
  };
  const event = { kind: "updated", memoryId: "m1" as MemoryId, text: "Ana sails." } as const;
  expect(await service.takeMemoryEvent(event, new AbortController().signal)).toBe(1);
  expect(pages).toEqual([{ users: [{ tenant: "default", userId: ana }], next: null }]);
  await service.close();
});
