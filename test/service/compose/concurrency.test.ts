import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type MemoryId, planBatch, type RequestId, type UserId } from "../../../src/core/index.js";
import { AbandonedRequestError, DeletedMeanwhileError, NotFoundError } from "../../../src/service/base/errors.js";
import { type BatchComposer, composeBatch } from "../../../src/service/batch/batch.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { found, openService, searchingSource } from "./service-fixture.js";

const USERS = ["ana", "bo", "cy"] as const;
type User = (typeof USERS)[number];

const anyUser = fc.constantFrom(...USERS);
const anyMemories = fc.uniqueArray(fc.nat(7), { maxLength: 4 });
const anyAction = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("compose" as const),
      user: anyUser,
      /** Two requests may be on one conversation at once. */
      conversation: fc.option(fc.constantFrom("one", "two")),
      memories: anyMemories,
      searches: fc.boolean(),
      /** Steps after which the caller goes away. */
      leaves: fc.option(fc.nat(4), { freq: 4 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("forget" as const), user: anyUser, memory: fc.nat(7) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget user" as const), user: anyUser }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("evict" as const), user: anyUser, age: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("report" as const), user: anyUser, age: fc.nat(3) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("batch" as const),
      requests: fc.array(fc.record({ user: anyUser, memories: anyMemories, searches: fc.boolean() }), {
        minLength: 1,
        maxLength: 5,
      }),
      workers: fc.constantFrom([], ["left", "right"]),
    }),
  },
);
/** With how many things that were waited for come true before the next one arrives. */
const anyArrivals = fc.array(fc.record({ action: anyAction, steps: fc.nat(3) }), { minLength: 1, maxLength: 14 });

/** One thing that was asked of a service for one user, so that it can be asked of another service too. */
interface Asked {
  readonly user: User;
  readonly name: string;
  /** Null: it came about without having been asked, so nothing is to be compared with. */
  readonly run: (service: Memprefix) => Promise<unknown>;
}

const memoriesOf = (ids: readonly number[]) => Object.fromEntries(ids.map((id) => [`m${id}`, `Fact ${id}.`]));

const searchable = (wait: <T>(value: T) => Promise<T>) =>
  searchingSource(async ({ query }) => wait(found(memoriesOf(query.split(" ").filter(Boolean).map(Number)))));

function optionsFor(
  user: User,
  requestId: string,
  ids: readonly number[],
  searches: boolean,
  conversation: { readonly id: string; readonly history: readonly { role: string; content: string }[] } | null = null,
) {
  const asked = { role: "user", content: `Question of ${requestId}` };
  return {
    userId: user,
    requestId,
    conversationId: conversation?.id ?? null,
    query: searches ? ids.join(" ") || "nothing" : "given",
    messages: [...(conversation?.history ?? []), asked],
    ...(searches ? {} : { memories: Object.entries(memoriesOf(ids)).map(([id, memory]) => ({ id, memory })) }),
  };
}

/** An outcome that can be compared: an error by its kind. */
async function outcomeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return JSON.parse(JSON.stringify((await work) ?? null));
  } catch (error) {
    if (
      error instanceof AbandonedRequestError ||
      error instanceof NotFoundError ||
      error instanceof DeletedMeanwhileError
    )
      return error.name;
    throw error;
  }
}

describe("many requests at once", () => {
  it("come out as if each user's had come one after the other, in the order they came", async () => {
    const life = fc.asyncProperty(fc.scheduler(), anyArrivals, async (scheduler, arrivals) => {
      const service = openService({
        source: searchable((value) => scheduler.schedule(Promise.resolve(value), "search")),
        planning: (requests) => scheduler.schedule(Promise.resolve(planBatch(requests)), "plan"),
      });
      const arrived: Asked[] = [];
      const done: { readonly asked: Asked; readonly outcome: unknown }[] = [];
      const answered = new Map<User, string[]>(USERS.map((user) => [user, []]));
      const running: Promise<unknown>[] = [];
      const start = <T>(asked: Asked, work: Promise<T>): Promise<T> => {
        arrived.push(asked);
        running.push(outcomeOf(work).then((outcome) => done.push({ asked, outcome })));
        return work;
      };
      const histories = new Map<string, { role: string; content: string }[]>();
      let requests = 0;

      for (const { action, steps } of arrivals) {
        switch (action.kind) {
          case "compose": {
            const { user, memories, searches } = action;
            const name = `r${++requests}`;
            const key = `${user} ${action.conversation}`;
            const history = histories.get(key) ?? [];
            const conversation =
              action.conversation === null ? null : { id: action.conversation, history: [...history] };
            const request = readComposeOptions(optionsFor(user, name, memories, searches, conversation));
            const caller = new AbortController();
            if (action.leaves !== null)
              void scheduler.schedule(Promise.resolve(), "the caller leaves").then(() => caller.abort());
            const work = start(
              { user, name, run: (other) => other.compose(request) },
              service.compose(request, caller.signal),
            );
            running.push(
              work.then(
                () => {
                  answered.get(user)?.push(name);
                  histories.set(key, [
                    ...history,
                    { role: "user", content: `Question of ${name}` },
                    { role: "assistant", content: "Yes." },
                  ]);
                },
                () => undefined,
              ),
            );
            break;
          }
          case "forget": {
            const [user, id] = [action.user as UserId & User, `m${action.memory}` as MemoryId];
            const run = (other: Memprefix) => other.forgetMemory(user, id);
            void start({ user, name: `forget ${id}`, run }, run(service));
            break;
          }
          case "forget user": {
            const user = action.user as UserId & User;
            const run = (other: Memprefix) => other.forgetUser(user);
            void start({ user, name: "forget user", run }, run(service));
            answered.set(user, []);
            break;
          }
          case "evict": {
            const id = answered.get(action.user)?.at(-1 - action.age) as RequestId | undefined;
            if (id === undefined) break;
            const user = action.user as UserId & User;
            const run = (other: Memprefix) => other.evict([id], user);
            void start({ user, name: `evict ${id}`, run }, run(service));
            break;
          }
          case "report": {
            const id = answered.get(action.user)?.at(-1 - action.age) as RequestId | undefined;
            if (id === undefined) break;
            const user = action.user as UserId & User;
            const run = (other: Memprefix) =>
              other.feedback(user, null, id, { cachedTokens: action.age, promptTokens: 40 });
            void start(
              { user, name: `report ${id}`, run },
              run(service).catch((error: unknown) => Promise.reject(error)),
            );
            break;
          }
          case "batch": {
            const inputs = action.requests.map(({ user, memories, searches }, index) => ({
              index,
              request: readComposeOptions(optionsFor(user, `b${++requests}`, memories, searches)),
            }));
            const { composer } = service.batches;
            const started: BatchComposer["composer"] = {
              known: (...args) => composer.known(...args),
              clusters: (...args) => composer.clusters(...args),
              replaceClusters: (...args) => composer.replaceClusters(...args),
              lookUp: (...args) => composer.lookUp(...args),
              compose(call) {
                const { userId, requestId } = call.request;
                // Another service numbers its users itself.
                const { userNumber: _, ...lookup } = call.found?.lookup ?? { found: [] };
                const again = { ...call, found: { ...call.found, front: call.found?.front ?? [], lookup } };
                const run = (other: Memprefix) => other.batches.composer.compose(again);
                const work = composer.compose(call);
                return start({ user: userId as User & UserId, name: requestId ?? "", run }, work);
              },
            };
            const batches = { ...service.batches, composer: started };
            const { signal } = new AbortController();
            running.push(
              (async () => {
                for await (const event of composeBatch(batches, inputs, {
                  workers: action.workers,
                  signal,
                }))
                  if (event.kind === "failure" && !(event.error instanceof DeletedMeanwhileError)) throw event.error;
              })(),
            );
            break;
          }
        }
        for (let step = 0; step < steps; step++) {
          await setImmediate();
          if (scheduler.count() > 0) await scheduler.waitOne();
        }
        await setImmediate();
      }
      let isIdle = false;
      const all = (async () => {
        for (let known = -1; known < running.length; ) {
          known = running.length;
          await Promise.all(running);
        }
        isIdle = true;
      })();
      await scheduler.waitFor(all);
      expect(isIdle).toBe(true);

      for (const user of USERS) {
        const names = (list: readonly Asked[]) => list.filter((asked) => asked.user === user).map(({ name }) => name);
        expect(names(done.map(({ asked }) => asked))).toEqual(names(arrived));
      }
      const reference = openService({ source: searchable(async (value) => value) });
      for (const { asked, outcome } of done) {
        // Of what nobody waited for there is no trace, nor of what a deletion overtook.
        if (outcome === "AbandonedRequestError" || outcome === "DeletedMeanwhileError") continue;
        expect({ [asked.name]: await outcomeOf(asked.run(reference)) }).toEqual({ [asked.name]: outcome });
      }
      for (const user of USERS) {
        const stored = await service.exportUser(user as UserId & User);
        expect(stored).toEqual(await reference.exportUser(user as UserId & User));
      }
      await Promise.all([service.close(), reference.close()]);
    });
    await fc.assert(life, { numRuns: 150 });
  });
});
