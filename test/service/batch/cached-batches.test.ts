import { describe, expect, it } from "vitest";
import { type KeyKnowledge, planBatch, residencyModel } from "../../../src/core/index.js";
import type { ComposeAnswer } from "../../../src/service/base/call-types.js";
import {
  type BatchComposer,
  type BatchInput,
  type ComposeBatchOptions,
  composeBatch,
} from "../../../src/service/batch/batch.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import type { ComposeOptions } from "../../../src/service/fields/call-options.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { openInMemory } from "../../../src/store/sqlite/open.js";
import { type Store, StoreUnavailableError } from "../../../src/store/store.js";
import { composeWith, NOON, openService } from "../compose/service-fixture.js";

const FACTS = [
  ...["oak", "heron above water", "slate", "marsh grass in autumn", "flint", "kelp on the shore", "amber", "moss"],
];

const memoriesOf = (facts: readonly number[]) => facts.map((n) => ({ id: `m${n}`, memory: FACTS[n] ?? "" }));

const asked = (facts: readonly number[], more: Partial<ComposeOptions> = {}): ComposeOptions => ({
  userId: "ana",
  system: "Be brief.",
  query: "Which?",
  memories: memoriesOf(facts),
  ...more,
});

function batchedBy({ batches }: Memprefix, requests: readonly ComposeOptions[], window = 1_000) {
  return answersOf(batches, requests, { window });
}

async function answersOf(
  composer: BatchComposer,
  requests: readonly ComposeOptions[],
  options: Omit<ComposeBatchOptions, "signal">,
) {
  const inputs: BatchInput[] = requests.map((options, index) => ({
    index,
    request: readComposeOptions(options),
    priority: 0,
    deadline: null,
  }));
  const answers: ComposeAnswer[] = [];
  for await (const event of composeBatch(composer, inputs, { ...options, signal: new AbortController().signal })) {
    if (event.kind === "failure") throw event.error;
    if (event.kind === "answer") answers.push(event.answer);
  }
  return answers;
}

describe("a batch by the service", () => {
  it("hits what /compose cached, also in requests that share it with others of the batch", async () => {
    const service = openService();
    const front = [5, 3, 1];
    await composeWith(service, asked([...front, 0]));
    // In another order, behind blocks that are not cached.
    const answers = await batchedBy(service, [asked([2, 1, 3, 5]), asked([4, 3, 1, 5]), asked([6, 5, 1, 3])]);
    for (const { blocks } of answers) {
      expect(blocks.slice(0, 3).map(({ memoryId }) => memoryId)).toEqual(front.map((n) => `m${n}`));
      expect(blocks.filter(({ placement }) => placement === "cached_prefix")).toHaveLength(3);
    }
    await service.close();
  });

  it("plans each window from what the windows before left cached", async () => {
    const service = openService();
    const pairs = [
      [0, 1, 2, 3],
      [3, 1, 2, 4],
      [5, 3, 2, 1],
      [6, 2, 1, 3],
    ];
    const answers = await batchedBy(
      service,
      pairs.map((facts) => asked(facts)),
      2,
    );
    const front = (answer: ComposeAnswer | undefined) => answer?.blocks.slice(0, 3).map(({ memoryId }) => memoryId);
    expect(answers.map(front)).toEqual(answers.map(() => front(answers[0])));
    await service.close();
  });

  it("does not plan with what the engine should have evicted", async () => {
    let now = NOON;
    let planned: readonly KeyKnowledge[] = [];
    const service = openService({
      now: () => now,
      residency: residencyModel({ kind: "ttl", ttlMs: 60_000 }),
      planning: async (requests, planner, knowledge) => {
        planned = knowledge;
        return planBatch(requests, planner);
      },
    });
    await composeWith(service, asked([0, 1]));
    await batchedBy(service, [asked([1, 2]), asked([0, 1])]);
    expect(planned.map(({ cached }) => cached.length)).toEqual([1]);
    now += 61_000;
    await batchedBy(service, [asked([1, 2]), asked([0, 1])]);
    expect(planned.map(({ cached }) => cached.length)).toEqual([0]);
    await service.close();
  });

  it("gives the planner nothing of other users, agents and instructions", async () => {
    let planned: readonly KeyKnowledge[] = [];
    const service = openService({
      planning: async (requests, planner, knowledge) => {
        planned = knowledge;
        return planBatch(requests, planner);
      },
    });
    for (const other of [{ userId: "bo" }, { agentId: "coder" }, { system: "Be long." }]) {
      await composeWith(service, asked([0, 1], other));
    }
    await batchedBy(service, [asked([1, 0]), asked([0, 1, 2])]);
    expect(planned.map(({ cached }) => cached)).toEqual([[]]);
    await service.close();
  });

  it("is planned without what is cached where the store does not answer meanwhile", async () => {
    let isGone = false;
    const store: Store = storeIn(openInMemory());
    const hold: Store["hold"] = store.hold.bind(store);
    store.hold = async (...args) => {
      if (isGone) throw new StoreUnavailableError("failing");
      return hold(...args);
    };
    let planned: readonly KeyKnowledge[] = [];
    const service = openService({
      store,
      planning: async (requests, planner, knowledge) => {
        planned = knowledge;
        isGone = false;
        return planBatch(requests, planner);
      },
    });
    await composeWith(service, asked([0, 1]));
    const { composer } = service.batches;
    const searched: BatchComposer["composer"] = {
      known: (...args) => composer.known(...args),
      clusterPaths: (...args) => composer.clusterPaths(...args),
      compose: (...args) => composer.compose(...args),
      lookUp: async (...args) => {
        const found = await composer.lookUp(...args);
        isGone = true;
        return found;
      },
    };
    expect(
      await answersOf({ ...service.batches, composer: searched }, [asked([1, 0]), asked([2, 1])], { window: 10 }),
    ).toHaveLength(2);
    expect(planned.map(({ cached }) => cached)).toEqual([[]]);
    await service.close();
  });

  it("by Alg. 2 and 5 is scheduled by the live cluster tree, and ordered as one by one by that policy", async () => {
    const pilot = { policy: "context-pilot" } as const;
    // The paper's C1 to C3, then its batch C6, C3, C7, C8, of which C7 shares nothing.
    const [initial, batch] = [
      [
        [2, 1, 3],
        [2, 6, 1],
        [4, 1, 0],
      ],
      [
        [2, 1, 4],
        [4, 1, 0],
        [5, 7],
        [1, 2, 0],
      ],
    ];
    const [service, alone] = [openService(), openService()];
    for (const each of initial) for (const of of [service, alone]) await composeWith(of, asked(each, pilot));
    const requests = batch.map((facts, at) => asked(facts, { requestId: `b${at}` }));
    const answers = await answersOf(service.batches, requests, { window: 10, planner: "context-pilot-live" });
    expect(answers.map(({ requestId }) => requestId).at(-1)).toBe("b2");
    for (const { requestId, messages } of answers) {
      const same = await composeWith(alone, { ...asked(batch[Number(requestId[1])] ?? [], pilot), requestId });
      expect(messages).toEqual(same.messages);
    }
    expect(answers.every(({ plan }) => plan.policy === "context-pilot")).toBe(true);
    await Promise.all([service.close(), alone.close()]);
  });
});
