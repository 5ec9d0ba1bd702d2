import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { MemoryId, UserId } from "../../../src/core/index.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { checkDatabase } from "../../store/checked-database.js";
import { composeWith } from "../compose/service-fixture.js";
import { around, doingBefore, SHARED, sharedDatabase } from "../shared-database.js";

const ANA = "ana" as UserId;
const SAFE = "m-safe" as MemoryId;
const OLD = "The blue safe opens with 4821";
const NEW = "The blue safe opens with 7734 since March";

describe.each(SHARED)("two services on one database in $name, one of which forgets a memory", ({ name, skip }) => {
  const database = sharedDatabase(name);
  const tell = (service: Memprefix, agentId: string | undefined, memory: string, query = "What opens it?") =>
    composeWith(service, { userId: "ana", ...(agentId && { agentId }), query, memories: [{ id: SAFE, memory }] });

  async function expectForgotten(service: Memprefix): Promise<void> {
    const kept = JSON.stringify(await service.exportUser(ANA));
    expect(kept).not.toContain("4821");
    expect(kept).not.toContain("7734");
    if (name === "PostgreSQL") return;
    await database.close();
    expect((await checkDatabase(database.file)).findings).toEqual([]);
    expect(await readFile(database.file, "latin1")).not.toMatch(/4821|7734/);
  }

  it.skipIf(skip)("keep no text of it with an agent that the other one hears of meanwhile", async () => {
    const other = await database.start();
    const one = await database.start((store) =>
      doingBefore(store, "commitForgetting", async () => {
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
    const other = await database.start();
    const one = await database.start((store) =>
      doingBefore(store, "commitForgetting", async () => {
        await tell(other, "coach", NEW);
        await tell(other, undefined, OLD, `I was told: ${NEW}`);
      }),
    );
    for (const agent of [undefined, "coach"]) await tell(one, agent, OLD);
    await one.forgetMemory(ANA, SAFE);
    await expectForgotten(one);
  });

  it.skipIf(skip)("say so where the other one goes on storing texts of it", async () => {
    const other = await database.start();
    let count = 0;
    const one = await database.start((store) =>
      around(store, async (method, call) => {
        const result = await call();
        if (method === "findQuotes") await tell(other, undefined, `${NEW}, then ${++count}`);
        return result;
      }),
    );
    await tell(one, undefined, OLD);
    await expect(one.forgetMemory(ANA, SAFE)).rejects.toMatchObject({ fault: "busy" });
  });
});
