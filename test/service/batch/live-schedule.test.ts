import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ComposeOptions } from "../../../src/service/base/call-options.js";
import { AbandonedRequestError, BusyUserError } from "../../../src/service/base/errors.js";
import { LiveSchedule, MOST_WAITING, type ScheduledComposer } from "../../../src/service/batch/live-schedule.js";
import type { ComposeAnswer } from "../../../src/service/compose/compose-answer.js";
import { type ComposeRequest, readComposeOptions } from "../../../src/service/compose/compose-request.js";
import type { WaitingLookup } from "../../../src/service/compose/memory-lookup.js";
import { composeWith, memories, openService } from "../compose/service-fixture.js";

const WAIT_MS = 50;

function ask(query: string, more: Partial<ComposeOptions> = {}): ComposeRequest {
  return readComposeOptions({ userId: "ana", query, memories: [], ...more });
}

/** A composer that answers with the request's query, and writes down in which order it was asked. */
function noting(more: Partial<ScheduledComposer> = {}) {
  const composed: string[] = [];
  const waits: number[] = [];
  const composer: ScheduledComposer = {
    countTokens: (text) => text.length,
    planning: async (requests) =>
      requests.map((_, request) => ({ request, rank: request, order: [], shared: 0, searchPath: [] })),
    known: async () => null,
    rejectIfBusy: () => {},
    // Of a watch only its presence is read.
    lookUp: async () => ({ found: [], watch: {} }) as unknown as WaitingLookup,
    compose: async ({ query }) => {
      composed.push(query ?? "");
      return { requestId: query } as unknown as ComposeAnswer;
    },
    now: () => Date.now(),
    onScheduled: (ms) => waits.push(ms),
    ...more,
  };
  return { composed, waits, schedule: new LiveSchedule(composer, WAIT_MS) };
}

/** Plans backwards, so that what is gathered can be told from what comes through. */
const backwards: ScheduledComposer["planning"] = async (requests) =>
  requests.map((_, request) => ({ request, rank: request, order: [], shared: 0, searchPath: [] })).toReversed();

describe("a live schedule", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

  it("lets a request that comes alone through, and gathers those that follow within the wait", async () => {
    const { composed, waits, schedule } = noting({ planning: backwards });
    const all = [schedule.compose(ask("1"))];
    await pass(10);
    expect(composed).toEqual(["1"]);
    all.push(schedule.compose(ask("2")));
    await pass(20);
    all.push(schedule.compose(ask("3")));
    await pass(WAIT_MS - 21);
    expect([composed, schedule.waiting]).toEqual([["1"], 2]);
    await pass(2);
    expect(schedule.waiting).toBe(0);
    await vi.waitFor(() => expect(composed).toEqual(["1", "3", "2"]));
    await Promise.all(all);
    expect(waits).toEqual([30, 50]);
    await pass(WAIT_MS);
    all.push(schedule.compose(ask("4")));
    await pass(0);
    expect(composed.at(-1)).toBe("4");
  });

  it("lets nobody wait longer than the request says, nor at all where it says so", async () => {
    const { composed, schedule } = noting();
    void schedule.compose(ask("1"));
    await pass(0);
    void schedule.compose(ask("2", { scheduleMs: 10 }));
    void schedule.compose(ask("3", { scheduleMs: 0 }));
    void schedule.compose(ask("4", { scheduleMs: 9_999 }));
    await pass(9);
    expect(composed).toEqual(["1", "3"]);
    await pass(1);
    await vi.waitFor(() => expect(composed).toEqual(["1", "3", "2", "4"]));
  });

  it("never lets turns of a conversation wait, which keep the order in which they came", async () => {
    const { composed, schedule } = noting({ planning: backwards });
    for (const query of ["1", "2", "3"]) void schedule.compose(ask(query, { conversationId: "c" }));
    await pass(0);
    expect(composed).toEqual(["1", "2", "3"]);
  });

  it("lets a request be overtaken by others of its group only, however long a group is planned", async () => {
    const planned: (() => void)[] = [];
    const { composed, schedule } = noting({
      planning: async (requests, knowledge) => {
        await new Promise<void>((resolve) => planned.push(resolve));
        return await backwards(requests, knowledge);
      },
    });
    for (const query of ["alone", "1", "2"]) void schedule.compose(ask(query));
    await pass(WAIT_MS);
    await vi.waitFor(() => expect(planned).toHaveLength(1));
    for (const query of ["3", "4"]) void schedule.compose(ask(query));
    await pass(2 * WAIT_MS);
    expect([composed, planned.length]).toEqual([["alone"], 1]);
    planned[0]?.();
    await vi.waitFor(() => expect(planned).toHaveLength(2));
    planned[1]?.();
    await vi.waitFor(() => expect(composed).toEqual(["alone", "2", "1", "4", "3"]));
  });

  it("ends the wait where as many wait as may", async () => {
    const { composed, schedule } = noting();
    for (let n = 0; n <= MOST_WAITING; n++) void schedule.compose(ask(String(n)));
    await pass(0);
    expect(schedule.waiting).toBe(0);
    await vi.waitFor(() => expect(composed).toHaveLength(MOST_WAITING + 1));
  });

  it("forgets a request whose caller is gone", async () => {
    const { composed, schedule } = noting();
    const caller = new AbortController();
    void schedule.compose(ask("1"));
    await pass(0);
    const gone = schedule.compose(ask("2"), caller.signal);
    void schedule.compose(ask("3"));
    await pass(0);
    caller.abort();
    await expect(gone).rejects.toThrow(AbandonedRequestError);
    expect(schedule.waiting).toBe(1);
    await pass(WAIT_MS);
    await vi.waitFor(() => expect(composed).toEqual(["1", "3"]));
    await expect(schedule.compose(ask("4"), caller.signal)).rejects.toThrow(AbandonedRequestError);
  });

  it("composes what it cannot plan as it came", async () => {
    const { composed, schedule } = noting({ planning: () => Promise.reject(new Error("no thread")) });
    const all = ["1", "2", "3"].map((query) => schedule.compose(ask(query)));
    await pass(WAIT_MS);
    await Promise.all(all);
    expect(composed).toEqual(["1", "2", "3"]);
  });

  it("counts what is looked up or waits as the user's, and frees it again", async () => {
    const rejectIfBusy = (_: ComposeRequest, more: number) => {
      if (more >= 2) throw new BusyUserError(2);
    };
    const failing = new Set(["fails"]);
    const { schedule } = noting({
      rejectIfBusy,
      lookUp: async ({ query }) => {
        if (failing.has(query ?? "")) throw new Error("the store fails");
        return { found: [], watch: {} } as unknown as WaitingLookup;
      },
    });
    void schedule.compose(ask("1"));
    await pass(0);
    await expect(schedule.compose(ask("fails"))).rejects.toThrow("the store fails");
    void schedule.compose(ask("2"));
    void schedule.compose(ask("3"));
    await expect(schedule.compose(ask("4"))).rejects.toThrow(BusyUserError);
    void schedule.compose(ask("other", { userId: "bo" }));
    await pass(WAIT_MS);
    void schedule.compose(ask("5"));
  });

  it("gathers prompts for different engines apart", async () => {
    const { composed, schedule } = noting({ planning: backwards });
    for (const query of ["1", "2", "3"]) void schedule.compose(ask(query, { engine: "vllm" }));
    await pass(10);
    for (const query of ["a", "b", "c"]) void schedule.compose(ask(query, { engine: "sglang" }));
    await pass(WAIT_MS);
    await vi.waitFor(() => expect(composed).toEqual(["1", "a", "3", "2", "c", "b"]));
  });

  it("answers everybody when it is drained, and keeps nobody waiting after", async () => {
    const { composed, schedule } = noting();
    const all = ["1", "2", "3"].map((query) => schedule.compose(ask(query)));
    await pass(0);
    await schedule.drain();
    expect(await Promise.all(all)).toHaveLength(3);
    for (const query of ["4", "5"]) void schedule.compose(ask(query));
    await pass(0);
    expect(composed).toEqual(["1", "2", "3", "4", "5"]);
  });
});

describe("concurrent prompts of a service with a schedule", () => {
  /** Two kinds of questions that take turns: those of one kind share most of what they retrieve. */
  const questions = Array.from({ length: 16 }, (_, n): ComposeOptions => {
    const shared = Array.from({ length: 6 }, (__, at) => `Fact ${at} of kind ${n % 2}, in some words.`);
    const own = `Only question ${n} has this one.`;
    const texts = n % 3 === 0 ? [own, ...shared] : [...shared.toReversed(), own];
    return { userId: "ana", query: `Question ${n}?`, memories: memories(Object.fromEntries(texts.map((t) => [t, t]))) };
  });

  async function answersOf(scheduleMs: number) {
    const service = openService({ scheduleMs });
    const order: number[] = [];
    const answers = await Promise.all(
      questions.map(async (question, n) => {
        const answer = await composeWith(service, question);
        order.push(n);
        return answer;
      }),
    );
    await service.close();
    return { order, answers };
  }

  it("are answered in an order that has like ones together, with the same memories", async () => {
    const { order, answers } = await answersOf(30);
    const plain = await answersOf(0);
    expect(plain.order).toEqual([...questions.keys()]);
    const kinds = order.slice(1).map((n) => n % 2);
    expect(kinds.filter((kind, at) => at > 0 && kind !== kinds[at - 1])).toHaveLength(1);
    for (const [n, { blocks }] of answers.entries()) {
      const ids = (all: typeof blocks) => new Set(all.map(({ memoryId }) => memoryId));
      expect(ids(blocks)).toEqual(ids(plain.answers[n]?.blocks ?? []));
    }
    const cached = (all: typeof answers) => all.reduce((sum, { plan }) => sum + plan.expectedCachedTokens, 0);
    expect(cached(answers)).toBeGreaterThanOrEqual(cached(plain.answers));
  });

  it("have each exactly their own memories, and are repeated byte for byte, whenever they come", async () => {
    const anyAsked = fc.record({
      userId: fc.constantFrom("ana", "bo"),
      facts: fc.uniqueArray(fc.nat(9), { maxLength: 6 }),
      conversationId: fc.option(fc.constantFrom("one", "two"), { freq: 4 }),
      scheduleMs: fc.constantFrom(null, 0, 1),
      pause: fc.constantFrom(0, 0, 0, 4),
    });
    const life = fc.asyncProperty(fc.array(anyAsked, { minLength: 1, maxLength: 16 }), async (all) => {
      const service = openService({ scheduleMs: 3 });
      const asked = all.map(({ facts, pause: _, ...of }, n): ComposeOptions => {
        const texts = Object.fromEntries(facts.map((fact) => [`m${fact}`, `Fact ${fact} of ${of.userId}, in words.`]));
        return { ...of, requestId: `r-${n}`, query: `Question ${n}?`, memories: memories(texts) };
      });
      const composing: Promise<ComposeAnswer>[] = [];
      for (const [n, options] of asked.entries()) {
        composing.push(composeWith(service, options));
        if ((all[n]?.pause ?? 0) > 0) await sleep(all[n]?.pause);
      }
      const answers = await Promise.all(composing);
      for (const [n, answer] of answers.entries()) {
        const ids = answer.blocks.map(({ memoryId }) => memoryId).toSorted();
        expect(ids).toEqual(all[n]?.facts.map((fact) => `m${fact}`).toSorted());
        expect(await composeWith(service, asked[n] as ComposeOptions)).toEqual(answer);
      }
      expect(service.load).toMatchObject({ scheduling: 0, jobs: 0 });
      await service.close();
    });
    await fc.assert(life, { numRuns: 25 });
  });

  it("are all answered and stored when the service is closed", async () => {
    const service = openService({ scheduleMs: 60_000 });
    const all = questions.map((question) => composeWith(service, question));
    await service.close();
    expect(await Promise.all(all)).toHaveLength(questions.length);
  });
});
