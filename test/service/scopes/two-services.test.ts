import { describe, expect, it } from "vitest";
import type { MemoryId, UserId } from "../../../src/core/index.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { Gate } from "../../gate.js";
import { composeWith, found, memories, openService, searchingSource } from "../compose/service-fixture.js";
import { beforeComposes, SHARED, sharedDatabase } from "../shared-database.js";

const ANA = "ana" as UserId;
const SAFE = "m-safe" as MemoryId;
const OLD = "The blue safe opens with 4821";

describe.each(SHARED)("two services on one database in $name", ({ name, skip }) => {
  const database = sharedDatabase(name);
  const tell = (service: Memprefix, requestId: string, agentId?: string) =>
    composeWith(service, {
      userId: "ana",
      ...(agentId && { agentId }),
      conversationId: "c",
      requestId,
      query: "What opens it?",
      memories: [{ id: SAFE, memory: OLD }],
    });
  const stored = async (service: Memprefix) => JSON.stringify(await service.exportUser(ANA));

  it.skipIf(skip)("each continue what the other one composed, in the bytes of one alone", async () => {
    const [one, other, alone] = [await database.start(), await database.start(), openService()];
    const history: { role: string; content: string }[] = [];
    for (let turn = 0; turn < 8; turn++) {
      const question = { role: "user", content: `Question ${turn}` };
      const options = {
        userId: "ana",
        conversationId: "c",
        requestId: `r${turn}`,
        messages: [...history, question],
        memories: memories({ [`m${turn}`]: `Fact ${turn}`, m0: "Fact 0" }),
      };
      expect(await composeWith(turn % 2 === 0 ? one : other, options)).toEqual(await composeWith(alone, options));
      history.push(question, { role: "assistant", content: "Yes." });
    }
    await alone.close();
  });

  it.skipIf(skip)("give no memory that the other one has forgotten, with any agent", async () => {
    const [one, other] = [await database.start(), await database.start()];
    for (const agent of [undefined, "coach"]) await tell(other, "r1", agent);
    await one.forgetMemory(ANA, SAFE);
    for (const agent of [undefined, "coach", "new"])
      expect(JSON.stringify(await tell(other, "r2", agent))).not.toContain("4821");
    expect(await stored(one)).not.toContain("4821");
  });

  it.skipIf(skip)("forget what the other one was just storing, or store nothing of it", async () => {
    const gate = new Gate();
    const one = await database.start();
    const other = await database.start((store) => beforeComposes(store, gate.pass));
    const telling = tell(other, "r1");
    await gate.reached;
    const forgetting = one.forgetMemory(ANA, SAFE);
    gate.open();
    await Promise.all([telling, forgetting]);
    expect(await stored(one)).not.toContain("4821");
    expect(JSON.stringify(await tell(other, "r2"))).not.toContain("4821");
  });

  it.skipIf(skip)("do not bring back a user whom the other one deletes during a search", async () => {
    const gate = new Gate();
    let texts = { [SAFE]: OLD } as Readonly<Record<string, string>>;
    const source = searchingSource(async () => {
      const results = found(texts);
      await gate.pass();
      return results;
    });
    const [one, other] = [await database.start(), await database.start(undefined, source)];
    const asking = composeWith(other, { userId: "ana", query: "What opens it?" });
    await gate.reached;
    await one.forgetUser(ANA);
    texts = {};
    gate.open();
    expect(JSON.stringify(await asking)).not.toContain("4821");
    expect(await stored(one)).not.toContain("4821");
  });
});
