import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { POLICY_NAMES, type RequestId } from "../../../src/core/index.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { temporaryFolder } from "../../temporary-folders.js";
import { ana, composeWith, memories, openService } from "./service-fixture.js";

const TEXTS = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`m${n}`, `Fact number ${n} about Ana.`]));

/** Requests for overlapping sets of memories, in changing order; the same in every run. */
function request(turn: number) {
  const ids = Array.from({ length: 5 }, (_, i) => `m${(turn * 5 + i * (1 + (turn % 4))) % 12}`);
  return memories(Object.fromEntries([...new Set(ids)].map((id) => [id, TEXTS[id] ?? ""])));
}

describe("a service that was closed and opened again", () => {
  const directory = temporaryFolder();

  it.each(POLICY_NAMES)("gives the next answer of one that was not, policy %s", async (policy) => {
    const ask = (service: Memprefix, turn: number) =>
      composeWith(service, {
        userId: "ana",
        requestId: `r${turn}`,
        query: "What?",
        memories: request(turn),
        policy,
        ...(turn % 3 === 0 ? {} : { memoryBudgetRatio: 1 + (turn % 4) / 4 }),
        ...(turn % 3 === 1 ? {} : { memoryBudgetTokens: 60 }),
      });
    const own = join(directory, policy);
    const steady = openService();
    for (let turn = 0; turn < 14; turn++) {
      const reopened = openService({ directory: own });
      expect(await ask(reopened, turn)).toEqual(await ask(steady, turn));
      if (turn % 5 === 4) {
        const ids = [`r${turn - 2}` as RequestId];
        expect(await reopened.evict(ids)).toEqual(await steady.evict(ids));
      }
      if (turn === 9) {
        await reopened.forgetMemory(ana, "m3" as never);
        await steady.forgetMemory(ana, "m3" as never);
      }
      await reopened.close();
    }
    await steady.close();
  });
});
