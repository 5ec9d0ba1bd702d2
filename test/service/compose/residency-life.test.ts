import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type MemoryId,
  type RequestId,
  type ResidencyConfig,
  residencyModel,
  type UserId,
} from "../../../src/core/index.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { composeWith, memories, NOON, openService } from "./service-fixture.js";

const MODELS: readonly ResidencyConfig[] = [
  { kind: "all" },
  { kind: "ttl", ttlMs: 15_000 },
  { kind: "capacity", tokens: 200 },
  { kind: "ttl-and-capacity", ttlMs: 15_000, tokens: 200 },
];

const USERS = ["ana", "bo"] as const;
const anyStep = fc.record({
  user: fc.constantFrom(...USERS),
  after: fc.nat(10_000),
  act: fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant("compose" as const),
        ids: fc.uniqueArray(fc.nat(9), { maxLength: 6 }),
        chat: fc.boolean(),
        budget: fc.option(fc.nat(120)),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("evict" as const), nth: fc.nat(12) }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("report" as const), nth: fc.nat(12), cached: fc.nat(400) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const), id: fc.nat(9) }) },
  ),
});
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

/** A service, and what its users said to it so far. */
class Users {
  now = NOON;
  readonly service: Memprefix;
  readonly #composed = new Map<string, number>();
  readonly #history = new Map<string, { role: string; content: string }[]>();

  constructor(config: ResidencyConfig, maxWorkingBytes?: number) {
    const bounds = maxWorkingBytes === undefined ? {} : { maxWorkingBytes };
    this.service = openService({ residency: residencyModel(config), now: () => this.now, ...bounds });
  }

  async take({ user, act }: Step): Promise<unknown> {
    const { service } = this;
    const composed = this.#composed.get(user) ?? 0;
    switch (act.kind) {
      case "compose": {
        this.#composed.set(user, composed + 1);
        const history = this.#history.get(user) ?? [];
        const asked = { role: "user", content: `Question ${composed}` };
        const answer = await composeWith(service, {
          userId: user,
          requestId: `${user}-${composed}`,
          conversationId: act.chat ? "chat" : null,
          messages: act.chat ? [...history, asked] : [asked],
          memories: memories(Object.fromEntries(act.ids.map((id) => [`m${id}`, `Fact ${id} of ${user}, known well.`]))),
          ...(act.budget === null ? {} : { policy: "carry-over" as const, memoryBudgetTokens: act.budget }),
        });
        if (act.chat) this.#history.set(user, [...history, asked, { role: "assistant", content: "Yes." }]);
        return answer;
      }
      case "evict":
        return service.evict([`${user}-${act.nth}` as RequestId]);
      case "report": {
        const reported = service.feedback(user as UserId, null, `${user}-${act.nth}` as RequestId, {
          cachedTokens: act.cached,
        });
        return reported.catch((error: unknown) => String(error));
      }
      case "forget":
        return service.forgetMemory(user as UserId, `m${act.id}` as MemoryId);
    }
  }
}

describe.each(MODELS)("users of one service, residency $kind", (config) => {
  it("get the same answers as alone, and from a service that loads them from SQLite each time", async () => {
    const life = fc.asyncProperty(fc.array(anyStep, { maxLength: 14 }), async (steps) => {
      const [together, reloading] = [new Users(config), new Users(config, 1)];
      const alone = new Map(USERS.map((user) => [user, new Users(config)]));
      const all = [together, reloading, ...alone.values()];
      for (const step of steps) {
        for (const users of all) users.now += step.after;
        const outcome = await together.take(step);
        expect(await reloading.take(step)).toEqual(outcome);
        expect(await alone.get(step.user)?.take(step)).toEqual(outcome);
      }
      for (const user of USERS) {
        const index = await together.service.describeIndex(user as UserId, null, 1_000);
        expect(await reloading.service.describeIndex(user as UserId, null, 1_000)).toEqual(index);
        expect(await alone.get(user)?.service.describeIndex(user as UserId, null, 1_000)).toEqual(index);
      }
      await Promise.all(all.map(({ service }) => service.close()));
    });
    await fc.assert(life, { numRuns: 25 });
  });
});
