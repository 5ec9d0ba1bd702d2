import { expect, it } from "vitest";
import { DeletedMeanwhileError } from "../../../src/service/base/errors.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { openInMemory } from "../../../src/store/sqlite/open.js";
import { ana, composeWith, found, NOON, openService, searchingSource } from "./service-fixture.js";

it("a request whose user another process deletes each time is given up, and the user's next one is composed", async () => {
  const store = storeIn(openInMemory());
  let searches = 0;
  let isDeleting = true;
  const source = searchingSource(async () => {
    searches++;
    if (!isDeleting) return found({ tea: "Ana drinks green tea." });
    await store.deleteUser({ tenant: "default", userId: ana }, false, NOON);
    await store.begin({ tenant: "default", userId: ana, agentId: null }, NOON);
    return [];
  });
  const service = openService({ store, source });
  await expect(composeWith(service, { userId: "ana", query: "tea?" })).rejects.toBeInstanceOf(DeletedMeanwhileError);
  expect(searches).toBe(3);
  isDeleting = false;
  expect((await composeWith(service, { userId: "ana", query: "tea?" })).blocks).toHaveLength(1);
  await service.close();
});
