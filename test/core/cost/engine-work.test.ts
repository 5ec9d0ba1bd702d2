import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AnswerTime,
  answerPace,
  EngineWork,
  type FirstTokenTime,
  fitTimeLaw,
  KNOWN_TIME_LAWS,
  likelyTimeLaw,
  type PromptWork,
  type TimeLaw,
} from "../../../src/core/index.js";
import { seeded } from "../../../src/eval/measures/bootstrap.js";

/** A model on few cores: milliseconds of a step, of a step with answers, per computed token, per pair, and per token that an answer's token attends over. */
const LAW = { stepMs: 5, weightsMs: 30, perTokenMs: 6.8, perPairMs: 4e-4, perHeldMs: 8e-3 };
/** Tokens of a step, as vLLM has them on a CPU. */
const STEP_TOKENS = 2_048;
const ANSWER_TOKENS = 16;
/** Between first tokens of one step, as a proxy sees them. */
const BETWEEN_FIRST_MS = 2;

interface Job {
  readonly client: number;
  readonly id: string;
  readonly computedTokens: number;
  readonly promptTokens: number;
  readonly sentAt: number;
  left: number;
  firstAt: number;
  answered: number;
}

interface Load {
  readonly clients: number;
  readonly turns: number;
  /** Whether all wait for the last one before they send again; else each thinks for a while of its own. */
  readonly isAtOnce: boolean;
  readonly seed: number;
}

/** What an engine that computes prompts in turn, several in a step, and gives all answers meanwhile, measures of its clients' prompts. */
function served({ clients, turns, isAtOnce, seed }: Load) {
  const draw = seeded(seed);
  const work = new EngineWork();
  // As where the law is not known yet: nothing of pairs, and half as much again.
  const timeOf = ({ computedTokens }: PromptWork) => 1.5 * LAW.perTokenMs * computedTokens;
  const measured: FirstTokenTime[] = [];
  const own = { firsts: [] as FirstTokenTime[], answers: [] as AnswerTime[] };
  const sizes = Array.from({ length: clients }, () => 300);
  const turn = Array.from({ length: clients }, () => 0);
  const next = Array.from({ length: clients }, () => (isAtOnce ? 0 : 2_000 * clients * draw()));
  let now = 0;
  let queue: Job[] = [];
  let answering: Job[] = [];
  const send = (client: number) => {
    const computedTokens = 100 + Math.floor(400 * draw());
    const promptTokens = Math.floor((sizes[client] ?? 0) * (draw() < 0.5 ? 1 : 0.7) + computedTokens + ANSWER_TOKENS);
    sizes[client] = promptTokens;
    const id = `${client} ${turn[client]}`;
    turn[client] = (turn[client] ?? 0) + 1;
    next[client] = Number.POSITIVE_INFINITY;
    queue.push({
      client,
      id,
      computedTokens,
      promptTokens,
      sentAt: now,
      left: computedTokens,
      firstAt: 0,
      answered: 0,
    });
  };
  for (;;) {
    const isIdle = queue.length + answering.length === 0;
    for (let client = 0; client < clients; client++)
      if ((turn[client] ?? 0) < turns && (isAtOnce ? isIdle : (next[client] ?? 0) <= now)) send(client);
    if (queue.length + answering.length === 0) {
      const soonest = Math.min(...next.filter((_, client) => (turn[client] ?? 0) < turns));
      if (soonest === Number.POSITIVE_INFINITY) return { measured, own };
      now = soonest;
      continue;
    }
    // One step: a token of each answer, and as many of prompts as have room.
    let room = STEP_TOKENS - answering.length;
    let ms = LAW.stepMs + (answering.length > 0 ? LAW.weightsMs : 0);
    for (const { promptTokens, answered } of answering) ms += LAW.perHeldMs * (promptTokens + answered);
    for (const job of queue) {
      const taken = Math.min(room, job.left);
      ms += taken * (LAW.perTokenMs + LAW.perPairMs * (job.promptTokens - job.left + taken / 2));
      job.left -= taken;
      room -= taken;
    }
    now += ms;
    for (const job of answering) job.answered++;
    for (const [at, job] of queue.filter(({ left }) => left === 0).entries()) {
      const firstAt = now + at * BETWEEN_FIRST_MS;
      Object.assign(job, { firstAt, answered: 1 });
      work.begins(job.id, { sentAt: job.sentAt, firstAt }, job);
      answering.push(job);
    }
    queue = queue.filter(({ left }) => left > 0);
    for (const { client, id, computedTokens, promptTokens, sentAt, firstAt, answered } of answering) {
      if (answered < ANSWER_TOKENS) continue;
      work.ends(id, now);
      const first = {
        uncachedTokens: computedTokens,
        cachedTokens: promptTokens - computedTokens,
        ms: firstAt - sentAt,
      };
      const answer = { promptTokens, tokens: ANSWER_TOKENS - 1, ms: now - firstAt };
      measured.push(first);
      const mean = work.meanPrompt(id, timeOf);
      if (work.isSample(id) && mean !== null)
        own.firsts.push({
          uncachedTokens: mean.computedTokens,
          cachedTokens: mean.promptTokens - mean.computedTokens,
          ms: first.ms / mean.count,
        });
      const ownAnswer = work.ownAnswer(id, answer, timeOf);
      if (ownAnswer !== null) own.answers.push(ownAnswer);
      if (!isAtOnce) next[client] = now + 3_000 * draw();
    }
    answering = answering.filter(({ answered }) => answered < ANSWER_TOKENS);
  }
}

/** Of prompts with so many computed tokens, tokens, and of each such a part. */
function meanOf(...prompts: readonly (readonly [number, number, number])[]) {
  const sum = (of: (computed: number, tokens: number) => number) =>
    prompts.reduce((all, [computed, tokens, part]) => all + part * of(computed, tokens), 0);
  const [count, computed] = [sum(() => 1), sum((each) => each)];
  // Its attended pairs are the mean of theirs.
  const pairs = sum((each, tokens) => each * (tokens - each / 2));
  return {
    count: expect.closeTo(count, 9),
    computedTokens: expect.closeTo(computed / count, 6),
    promptTokens: expect.closeTo(pairs / computed + computed / count / 2, 6),
  };
}

/** As a service has it. */
function lawOf(times: readonly FirstTokenTime[]): TimeLaw {
  const law = fitTimeLaw(times) ?? likelyTimeLaw(times, KNOWN_TIME_LAWS);
  if (law === null) throw new Error("too few prompts for a law");
  return law;
}

describe("what an engine works on", () => {
  it("is told from what a client waits for, however many there are", () => {
    const loads = fc.record({
      clients: fc.integer({ min: 2, max: 16 }),
      turns: fc.integer({ min: 15, max: 20 }),
      isAtOnce: fc.boolean(),
      seed: fc.integer(),
    });
    fc.assert(
      fc.property(loads, (load) => {
        const { own } = served(load);
        const law = lawOf(own.firsts);
        // A typical prompt's, as tokens and pairs may stand for each other.
        const typical = (of: typeof LAW | typeof law) => 300 * (of.perTokenMs + of.perPairMs * 850);
        expect(typical(law) / typical(LAW)).toBeGreaterThan(0.8);
        expect(typical(law) / typical(LAW)).toBeLessThan(1.35);
        expect(answerPace(own.answers, law)).toBeLessThan(1.5 * LAW.perHeldMs);
      }),
    );
  });

  it("is not what their waiting shows: of eight at once it seems not to matter what is computed", () => {
    const { measured, own } = served({ clients: 8, turns: 20, isAtOnce: true, seed: 1 });
    const [seeming, law] = [lawOf(measured), lawOf(own.firsts)];
    expect(seeming.perTokenMs).toBeLessThan(0.2 * LAW.perTokenMs);
    expect(law.perTokenMs).toBeGreaterThan(0.9 * LAW.perTokenMs);
    expect(law.perTokenMs).toBeLessThan(1.2 * LAW.perTokenMs);
  });

  it("is a sample where nothing else may have been computed in part, and in a queue that never ends after eight that are none", () => {
    const [work, prompt] = [new EngineWork(), { computedTokens: 300, promptTokens: 400 }];
    const sent = (requestId: string, sentAt: number, firstAt: number) =>
      work.begins(requestId, { sentAt, firstAt }, prompt);
    sent("first", 0, 100);
    sent("second", 10, 300);
    sent("with the second", 20, 301);
    sent("after them", 302, 400);
    sent("alone", 401, 500);
    const names = ["first", "second", "with the second", "after them", "alone", "not known"];
    expect(names.map((name) => work.isSample(name))).toEqual([false, true, true, true, true, true]);
    for (let n = 0; n < 20; n++) sent(`${n}`, 1_000 + 10 * n, 1_050 + 10 * n);
    expect(Array.from({ length: 20 }, (_, n) => work.isSample(`${n}`))).toEqual(
      Array.from({ length: 20 }, (_, n) => n >= 8),
    );
  });

  it("counts what is known: nothing of a prompt that was not sent here, the engine's own counts, and the newest thousand prompts", () => {
    const work = new EngineWork();
    const answer = { promptTokens: 10, tokens: 4, ms: 100 };
    const byTokens = ({ computedTokens }: PromptWork) => computedTokens;
    expect([work.meanPrompt("a", byTokens), work.ownAnswer("a", answer, () => 1_000)]).toEqual([null, answer]);
    work.begins("a", { sentAt: 0, firstAt: 500 }, { computedTokens: 300, promptTokens: 400 });
    work.begins("b", { sentAt: 450, firstAt: 500 }, { computedTokens: 100, promptTokens: 400 });
    // Of a, whose first token comes at the same time, b waits for 50 of 300 ms.
    expect(work.meanPrompt("a", byTokens)).toEqual(meanOf([300, 400, 1], [100, 400, 1]));
    expect(work.meanPrompt("b", byTokens)).toEqual(meanOf([300, 400, 50 / 300], [100, 400, 1]));
    work.counted("b", { computedTokens: 900, promptTokens: 1_000 });
    expect(work.meanPrompt("a", byTokens)).toEqual(meanOf([300, 400, 1], [900, 1_000, 500 / 900]));
    work.begins("b", { sentAt: 0, firstAt: 900 }, { computedTokens: 1, promptTokens: 1 });
    work.ends("b", 550);
    work.ends("b", 1_000);
    expect(work.ownAnswer("a", answer, () => 0)).toEqual({ ...answer, promptTokens: 10 + 500 });
    work.begins("c", { sentAt: 510, firstAt: 580 }, { computedTokens: 10, promptTokens: 200 });
    expect(work.ownAnswer("a", answer, () => 40)).toEqual({ ...answer, promptTokens: 10 + 500 + 40, ms: 60 });
    expect(work.ownAnswer("a", answer, () => 41)).toBeNull();
    for (let n = 0; n < 1_100; n++)
      work.begins(`n${n}`, { sentAt: 600 + n, firstAt: 601 + n }, { computedTokens: 1, promptTokens: 1 });
    expect(work.meanPrompt("a", byTokens)).toBeNull();
  });
});
