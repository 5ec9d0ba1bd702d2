import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { MemoryId, UserId } from "../../../src/core/index.js";
import type { Memstem } from "../../../src/service/library/memstem.js";
import type { Store } from "../../../src/store/api/store.js";
import { checkDatabase } from "../../../src/store/check/check-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { journalIn } from "../../../src/store/sqlite/open-journal.js";
import { openJournalDatabase } from "../../../src/store/upgrade/upgrade-to-journal.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { composeWith, openService } from "../compose/service-fixture.js";

const ANA = "ana" as UserId;
const SAFE = "m-safe" as MemoryId;
const OLD = "The blue safe opens with 4821";
const NEW = "The blue safe opens with 7734 since March";

const server = await testServer();

/** A store that does something else right before the first call of one method. */
function interrupted(store: Store, method: "commitForgetting" | "eraseQuotes", first: () => Promise<void>): Store {
  let isDone = false;
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== "function") return value;
      return async (...args: readonly unknown[]) => {
        if (name === method && !isDone) {
          isDone = true;
          await first();
        }
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
}

describe.each([
  { name: "a file", skip: false },
  { name: "PostgreSQL", skip: server.url === null },
])("two services on one database in $name, one of which forgets a memory", ({ name, skip }) => {
  let directory = "";
  let openStore: () => Promise<Store>;
  const services: Memstem[] = [];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "memstem-forgetting-"));
    const url = name === "PostgreSQL" && server.url !== null ? await newDatabase(server.url) : null;
    openStore = async () =>
      new JournalStore(
        url === null
          ? journalIn(openJournalDatabase(join(directory, "memstem.db")))
          : (await openPostgres(url)).journal,
      );
  });
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.close()));
    await rm(directory, { recursive: true });
  });

  async function started(wrap: (store: Store) => Store = (store) => store): Promise<Memstem> {
    const service = openService({ store: wrap(await openStore()) });
    services.push(service);
    return service;
  }
  const tell = (service: Memstem, agentId: string | undefined, memory: string, query = "What opens it?") =>
    composeWith(service, { userId: "ana", ...(agentId && { agentId }), query, memories: [{ id: SAFE, memory }] });

  async function expectForgotten(service: Memstem): Promise<void> {
    const kept = JSON.stringify(await service.exportUser(ANA));
    expect(kept).not.toContain("4821");
    expect(kept).not.toContain("7734");
    if (name === "PostgreSQL") return;
    for (const one of services.splice(0)) await one.close();
    const file = join(directory, "memstem.db");
    expect(checkDatabase(file).findings).toEqual([]);
    expect(await readFile(file, "latin1")).not.toMatch(/4821|7734/);
  }

  it.skipIf(skip)("keep no text of it with an agent that the other one hears of meanwhile", async () => {
    const other = await started();
    const one = await started((store) =>
      interrupted(store, "commitForgetting", async () => {
        await tell(other, "late", OLD);
      }),
    );
    await tell(one, undefined, OLD);
    await one.forgetMemory(ANA, SAFE);
    const again = await tell(other, "late", OLD, "And now?");
    expect(JSON.stringify(again)).not.toContain("4821");
    await expectForgotten(one);
  });

  it.skipIf(skip)("keep no quote of a text that the other one stores meanwhile, with any agent", async () => {
    const other = await started();
    const one = await started((store) =>
      interrupted(store, "commitForgetting", async () => {
        await tell(other, "coach", `${NEW}`);
        await tell(other, undefined, OLD, `I was told: ${NEW}`);
      }),
    );
    for (const agent of [undefined, "coach"]) await tell(one, agent, OLD);
    await one.forgetMemory(ANA, SAFE);
    await expectForgotten(one);
  });

  it.skipIf(skip)("wait where the other one goes on storing it, and say so", async () => {
    const other = await started();
    let count = 0;
    const one = await started((store) => {
      const wrapped: Store = new Proxy(store, {
        get(target, method) {
          const value = Reflect.get(target, method) as unknown;
          if (typeof value !== "function") return value;
          return async (...args: readonly unknown[]) => {
            const result: unknown = await Reflect.apply(value, target, args);
            if (method === "findQuotes") await tell(other, undefined, `${NEW}, then ${++count}`);
            return result;
          };
        },
      });
      return wrapped;
    });
    await tell(one, undefined, OLD);
    await expect(one.forgetMemory(ANA, SAFE)).rejects.toMatchObject({ fault: "busy" });
  });
});
