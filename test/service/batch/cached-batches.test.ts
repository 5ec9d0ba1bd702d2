import { describe, expect, it } from "vitest";
import { type ClusteredKey, type KeyKnowledge, planBatch, residencyModel } from "../../../src/core/index.js";
import type { ComposeAnswer } from "../../../src/service/base/call-types.js";
import type { PlanBatch } from "../../../src/service/base/memprefix-parts.js";
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

function batchedBy({ batches }: Memprefix, requests: readonly ComposeOptions[]) {
  return answersOf(batches, requests);
}

async function answersOf(
  composer: BatchComposer,
  requests: readonly ComposeOptions[],
  options: Omit<ComposeBatchOptions, "signal"> = {},
) {
  const inputs: BatchInput[] = requests.map((options, index) => ({
    index,
    request: readComposeOptions(options),
  }));
  const answers: ComposeAnswer[] = [];
  for await (const event of composeBatch(composer, inputs, { ...options, signal: new AbortController().signal })) {
    if (event.kind === "failure") throw event.error;
    if (event.kind === "answer") answers.push(event.answer);
  }
  return answers;
}

/** Plans batches as the service does, and keeps what the newest was planned from. */
const planningFrom =
  (planned: KeyKnowledge[], onPlan = () => {}): PlanBatch =>
  async (requests, planner, knowledge = []) => {
    planned.splice(0, planned.length, ...knowledge);
    onPlan();
    return planBatch(requests, planner);
  };

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

  it("does not plan with what the engine should have evicted", async () => {
    let now = NOON;
    const planned: KeyKnowledge[] = [];
    const residency = residencyModel({ kind: "ttl", ttlMs: 60_000 });
    const service = openService({ now: () => now, residency, planning: planningFrom(planned) });
    await composeWith(service, asked([0, 1]));
    await batchedBy(service, [asked([1, 2]), asked([0, 1])]);
    expect(planned.map(({ cached }) => cached.length)).toEqual([1]);
    now += 61_000;
    await batchedBy(service, [asked([1, 2]), asked([0, 1])]);
    expect(planned.map(({ cached }) => cached.length)).toEqual([0]);
    await service.close();
  });

  it("gives the planner nothing of other users, agents and instructions", async () => {
    const planned: KeyKnowledge[] = [];
    const service = openService({ planning: planningFrom(planned) });
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
    const planned: KeyKnowledge[] = [];
    const planning = planningFrom(planned, () => {
      isGone = false;
    });
    const service = openService({ store, planning });
    await composeWith(service, asked([0, 1]));
    const { composer } = service.batches;
    const searched: BatchComposer["composer"] = {
      known: (...args) => composer.known(...args),
      clusters: (...args) => composer.clusters(...args),
      replaceClusters: (...args) => composer.replaceClusters(...args),
      compose: (...args) => composer.compose(...args),
      lookUp: async (...args) => {
        const found = await composer.lookUp(...args);
        isGone = true;
        return found;
      },
    };
    expect(await answersOf({ ...service.batches, composer: searched }, [asked([1, 0]), asked([2, 1])])).toHaveLength(2);
    expect(planned.map(({ cached }) => cached)).toEqual([[]]);
    await service.close();
  });

  it("of ContextPilot's planner leaves a tree that the next start reads, and the planning thread goes on from", async () => {
    const database = openInMemory();
    let planned: readonly ClusteredKey[] = [];
    const open = () =>
      openService({
        store: storeIn(database),
        planning: async (requests, planner, knowledge, trees) => {
          planned = structuredClone(trees);
          return structuredClone(planBatch(requests, planner, knowledge, planned));
        },
      });
    const orderOf = ({ blocks }: ComposeAnswer) => blocks.map(({ memoryId }) => memoryId);
    const first = open();
    const options = { planner: "context-pilot" } as const;
    await answersOf(first.batches, [asked([2, 1, 3]), asked([2, 6, 1]), asked([4, 1, 0])], options);
    await answersOf(first.batches, [asked([5, 7])], options);
    expect(planned[0]?.nodes.length).toBe(6);
    const later = asked([2, 1, 4], { policy: "context-pilot" });
    expect(orderOf(await composeWith(open(), later))).toEqual(["m1", "m2", "m4"]);
  });
});
