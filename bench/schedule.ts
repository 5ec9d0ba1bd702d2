/**
 * `npm run bench:schedule`: what it is worth to gather concurrent single prompts and order them together (`MEMSTEM_SCHEDULE_MS`), and what
 * the wait costs. Six users as in `bench:routing` (`user-questions.ts`), all prompts through one simulated cache, vLLM's, in the order in
 * which they are answered. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * First part: so many requests are always sent at once, the next when all are answered. The share is of all prompts' tokens. Capacities:
 * an endless cache; a sixteenth and a 64th of what it holds in the end.
 * Second part: requests come one by one at random times (exponential gaps, seeded) at a mean rate, k = 20, in simulated time: composing
 * and planning take none of it, so the wait is the time of gathering alone, 0 for those that came alone. What planning a group takes on
 * this machine is measured beside it.
 *
 * Floor of the wait: 0. Ceiling of the hit ratio: `npm run bench:batch -- --bound`.
 */

import { setImmediate } from "node:timers/promises";
import { openMeasuredMemstem } from "../src/cli/measured-memstem.js";
import { DEFAULT_ENGINE_MODEL, ENGINE_MODELS } from "../src/core/index.js";
import { quantile } from "../src/eval/measures/measured.js";
import { LiveSchedule, type ScheduledComposer } from "../src/service/batch/live-schedule.js";
import { BlockHashCache } from "../src/simulator/block-hash-cache.js";
import type { SimulatedPrompt } from "../src/simulator/prefix-cache.js";
import { cachedShare, distinctTokens } from "../test/eval/locomo/shared-cache.js";
import { neededData } from "./recorded-data.js";
import { seeded } from "./seeded.js";
import { promptTokens, type UserQuestion, userQuestions } from "./user-questions.js";

/** Milliseconds. In the first part nothing else happens meanwhile. */
const LONG_WAIT_MS = 1_000;

const data = neededData();
const { signal } = new AbortController();

/** A schedule over a service, in simulated time. */
class Measured {
  /** In the order of the answers. */
  readonly prompts: SimulatedPrompt[] = [];
  /** Of those that were gathered, in simulated milliseconds. */
  readonly waits: number[] = [];
  /** Milliseconds of this machine, by group. */
  readonly planning: number[] = [];
  readonly #memstem = openMeasuredMemstem(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], () => this.#now);
  readonly #schedule: LiveSchedule;
  readonly #timers = new Set<{ readonly at: number; readonly fire: () => void }>();
  #now = 0;
  #open = 0;

  constructor(waitMs: number) {
    const { batches } = this.#memstem;
    const composer: ScheduledComposer = {
      countTokens: batches.countTokens,
      known: batches.known,
      lookUp: (request) => batches.lookUp(request, signal),
      planning: async (requests, knowledge) => {
        const start = performance.now();
        const plan = await batches.planning(requests, knowledge);
        this.planning.push(performance.now() - start);
        return plan;
      },
      rejectIfBusy: () => {},
      compose: (request, _signal, _hooks, found) =>
        found === undefined
          ? this.#memstem.compose(request)
          : batches.composeFound(request, found.lookup, found.front, signal),
      now: () => this.#now,
      onScheduled: (ms) => this.waits.push(ms),
    };
    this.#schedule = new LiveSchedule(composer, waitMs, (ms, fire) => {
      const timer = { at: this.#now + ms, fire };
      this.#timers.add(timer);
      return () => this.#timers.delete(timer);
    });
  }

  ask({ request }: UserQuestion): void {
    this.#open++;
    void this.#schedule.compose(request).then(({ messages }) => {
      this.#open--;
      this.prompts.push({ tokens: promptTokens(messages) });
    });
  }

  /** Lets time pass. */
  async until(time: number): Promise<void> {
    for (;;) {
      await this.#settled();
      const [next] = [...this.#timers].toSorted((a, b) => a.at - b.at);
      if (next === undefined || next.at > time) break;
      this.#timers.delete(next);
      this.#now = next.at;
      next.fire();
    }
    this.#now = time;
  }

  async close(): Promise<void> {
    await this.until(this.#now + LONG_WAIT_MS);
    await this.#memstem.close();
  }

  /** Whatever takes no simulated time is over. */
  async #settled(): Promise<void> {
    do await setImmediate();
    while (this.#open > this.#schedule.waiting);
  }
}

async function together(asked: readonly UserQuestion[], waiting: number): Promise<Measured> {
  const measured = new Measured(waiting === 1 ? 0 : LONG_WAIT_MS);
  for (let at = 0; at < asked.length; at += waiting) {
    for (const one of asked.slice(at, at + waiting)) measured.ask(one);
    await measured.until(at * LONG_WAIT_MS);
    await measured.until((at + 1) * LONG_WAIT_MS);
  }
  await measured.close();
  return measured;
}

async function atRate(asked: readonly UserQuestion[], perSecond: number, waitMs: number): Promise<Measured> {
  const measured = new Measured(waitMs);
  const random = seeded(1);
  let due = 0;
  for (const one of asked) {
    due += (-Math.log(1 - random()) * 1_000) / perSecond;
    await measured.until(due);
    measured.ask(one);
  }
  await measured.close();
  return measured;
}

const cacheOf = (tokens: number) => new BlockHashCache(Number.isFinite(tokens) ? { capacityTokens: tokens } : {});

function shares(prompts: readonly SimulatedPrompt[], capacities: readonly number[]): readonly string[] {
  return capacities.map((tokens) => cachedShare(prompts, cacheOf(tokens)).toFixed(3));
}

let capacities: readonly number[] = [];
for (const k of [100, 20]) {
  const asked = userQuestions(data, k);
  const { prompts: oneByOne } = await together(asked, 1);
  const all = distinctTokens(oneByOne, cacheOf(Number.POSITIVE_INFINITY));
  capacities = [Number.POSITIVE_INFINITY, Math.floor(all / 16), Math.floor(all / 64)];
  console.log(
    `\nk = ${k}: ${asked.length} prompts; capacities: endless, ${capacities[1]} and ${capacities[2]} tokens\n`,
  );
  console.log("| waiting | endless | 1/16 | 1/64 |");
  console.log("| --: | --: | --: | --: |");
  console.log(`| 1 (off) | ${shares(oneByOne, capacities).join(" | ")} |`);
  for (const waiting of [8, 32, 128, 512]) {
    const { prompts } = await together(asked, waiting);
    console.log(`| ${waiting} | ${shares(prompts, capacities).join(" | ")} |`);
  }
}

const parts = (values: readonly number[]) =>
  [0.5, 0.99].map((share) => (values.length === 0 ? "" : (quantile(values, share) ?? 0).toFixed(0)));

console.log("\nk = 20, requests at random times\n");
console.log("| requests/s | MEMSTEM_SCHEDULE_MS | waited | p50 | p99 | planning p50 | p99 | endless | 1/16 | 1/64 |");
console.log("| --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
const asked = userQuestions(data, 20);
for (const perSecond of [10, 100, 1_000]) {
  for (const waitMs of [20, 100]) {
    const { prompts, waits, planning } = await atRate(asked, perSecond, waitMs);
    const ofAll = [...waits, ...Array.from({ length: prompts.length - waits.length }, () => 0)];
    const waited = `${((100 * waits.length) / prompts.length).toFixed(0)} %`;
    const cells = [perSecond, waitMs, waited, ...parts(ofAll), ...parts(planning), ...shares(prompts, capacities)];
    console.log(`| ${cells.join(" | ")} |`);
  }
}
