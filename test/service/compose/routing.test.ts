import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/index.js";
import { type BatchInput, composeBatch } from "../../../src/service/batch/batch.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import type { ComposeOptions } from "../../../src/service/fields/call-options.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { temporaryFolder } from "../../temporary-folders.js";
import { composeWith, memories, NOON, openService } from "./service-fixture.js";

const WORKERS = ["north", "south", "west"];

function question(userId: string, ...facts: readonly number[]): ComposeOptions {
  const texts = facts.map((n) => [`${userId}-${n}`, `Fact ${n} of ${userId}, which takes some words to say.`]);
  return { userId, query: "Which?", memories: memories(Object.fromEntries(texts)), workers: WORKERS };
}

async function workersOfBatch(
  service: Memprefix,
  questions: readonly ComposeOptions[],
  names: readonly string[] | null = WORKERS,
): Promise<(string | null)[]> {
  const inputs = questions.map((options, index): BatchInput => {
    const request = readComposeOptions({ ...options, workers: null });
    return { index, request };
  });
  const workers: (string | null)[] = [];
  const options = { workers: names, signal: new AbortController().signal };
  for await (const event of composeBatch(service.batches, inputs, options)) {
    if (event.kind === "answer") workers[event.index] = event.worker;
    else if (event.kind === "failure") throw event.error;
  }
  return workers;
}

describe("a composed prompt with workers", () => {
  it("is repeated with the same worker, unless that is no longer named", async () => {
    const service = openService();
    const asked = { ...question("ana", 1, 2), requestId: "r-1" };
    const { worker } = await composeWith(service, asked);
    // Whoever else is busy now does not matter.
    for (let n = 0; n < 30; n++) await composeWith(service, question("bo", n));
    const again = await composeWith(service, asked);
    expect([again.worker, again.warnings]).toEqual([worker, []]);
    expect(await workersOfBatch(service, [asked])).toEqual([worker]);
    const without = await composeWith(service, { ...asked, workers: WORKERS.filter((name) => name !== worker) });
    expect(without.worker).not.toBe(worker);
    expect(without.warnings).toEqual([]);
    expect((await composeWith(service, { ...asked, workers: null })).worker).toBeUndefined();
  });

  it("keeps each agent's requests at one worker, one agent each", async () => {
    const service = openService();
    const agents = ["reader", "checker", "writer"];
    const rounds: (string | undefined)[][] = [];
    for (let round = 0; round < 6; round++) {
      const workers = [];
      for (const [at, agentId] of agents.entries()) {
        // The agents' contexts overlap: each hands two facts on to the next.
        const facts = [0, 1, 2, 3].map((n) => 2 * at + n);
        workers.push((await composeWith(service, { ...question("ana", ...facts, 100 + round), agentId })).worker);
      }
      rounds.push(workers);
    }
    expect(new Set(rounds[0])).toEqual(new Set(WORKERS));
    for (const round of rounds) expect(round).toEqual(rounds[0]);
  });
});

describe("loads of workers", () => {
  it("and processed blocks are a tenant's own", async () => {
    const service = openService();
    const other = service.forTenant({ name: "other", cacheSecret: "another secret" });
    await composeWith(service, question("ana", 1, 2, 3));
    expect((await composeWith(other, question("ben", 1))).worker).toBe("north");
    expect((await composeWith(other, question("ana", 1, 2, 3))).worker).toBe("south");
    expect((await composeWith(service, question("bo", 1))).worker).toBe("south");
  });

  it("are gone after some time without requests", async () => {
    let now = NOON;
    const service = openService({ now: () => now });
    const hot = async (user: string) => (await composeWith(service, question(user, ...Array(20).keys()))).worker;
    const burst = [];
    for (let n = 0; n < 60; n++) burst.push(await hot("ana"));
    expect(new Set(burst)).toEqual(new Set(WORKERS));
    const calm = [];
    for (let n = 0; n < 10; n++) {
      now += 60_000;
      calm.push(await hot("bo"));
    }
    expect(new Set(calm).size).toBe(1);
  });
});

describe("a conversation with workers", () => {
  const directory = temporaryFolder();

  it("stays with its worker, after a restart too, though another has processed its new memories", async () => {
    let service = openService({ directory });
    const history: ChatMessage[] = [];
    const ask = async (content: string, ...facts: readonly number[]) => {
      const { query: _, ...of } = question("ana", ...facts);
      const messages = [...history, { role: "user", content }];
      const answer = await composeWith(service, { ...of, conversationId: "trip", messages });
      history.push({ role: "user", content }, { role: "assistant", content: `Answer to ${content}` });
      return answer.worker;
    };
    const first = await ask("Where to?", 1, 2, 3);
    // South processes what the conversation asks for next.
    const south = await composeWith(service, { ...question("ana", 7, 8, 9), workers: ["south"] });
    expect([first, south.worker]).toEqual(["north", "south"]);
    expect(await ask("And then?", 7, 8)).toBe("north");
    await service.close();
    service = openService({ directory });
    expect(await ask("At last?", 9, 8, 7)).toBe("north");
    await service.close();
  });
});
