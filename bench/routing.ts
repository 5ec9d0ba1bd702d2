/**
 * `npm run bench -- routing`: prompts of six users, routed to 8 workers (`WORKERS`) with a prefix cache each. The users are six LoCoMo
 * conversations with recorded real Mem0 searches (first 150 questions of each), single prompts of the default policy. Takes
 * `--data FOLDER` (`recorded-data.ts`).
 *
 * Online: question 1 of each user, question 2 of each, …, ten a second. One batch: the same requests, sent in the plan's order. Round robin gives
 * each next prompt to the next worker. Hashing by user gives user n to worker n mod workers, the best that a hash can do. Each worker has vLLM's
 * cache; `¼` is a quarter of what one endless cache holds after all prompts, shared evenly by the workers. `K=20,100`, `WORKERS=2,4,8`.
 *
 * First Chain-of-Agents, which `--agents` runs alone.
 *
 * Floor of the balance: 1. Ceiling of the hit ratio, online: that of one endless cache, in the first line.
 */

import { openMeasuredMemprefix } from "../src/cli/assemble.js";
import { encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { type ChatMessage, DEFAULT_ENGINE_MODEL, ENGINE_MODELS } from "../src/core/index.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import { INSTRUCTION } from "../src/eval/base/hand-built.js";
import { type BatchInput, composeBatch } from "../src/service/batch/batch.js";
import { type ComposeRequest, readComposeOptions } from "../src/service/compose/compose-request.js";
import { neededTraces } from "./recorded-data.js";
import { distinctTokens, inTurn } from "./shared-cache.js";
import { printHead, printRow } from "./table.js";

/** Of online requests. */
const PER_SECOND = 10;
const NO_ABORT = new AbortController().signal;

interface Sent {
  readonly user: number;
  readonly tokens: readonly number[];
  readonly worker: number;
}

const traces = neededTraces();

/** First so many questions of each user. */
const LIMIT = 150;

/** One user's question, as the service takes it. */
interface UserQuestion {
  readonly user: number;
  readonly request: ComposeRequest;
}

/** The questions of six users in turn, each with its first k recorded memories. */
function userQuestions(k: number): readonly UserQuestion[] {
  const users = traces.map(({ memories, questions }, user) =>
    questions.slice(0, LIMIT).map(({ question, retrieved }): UserQuestion => {
      const found = retrieved.slice(0, k).map((at) => ({ id: String(at), memory: memories[at]?.memory ?? "" }));
      const asked = { userId: `user ${user}`, system: INSTRUCTION, query: question, memories: found };
      return { user, request: readComposeOptions(asked) };
    }),
  );
  return [...inTurn(users)];
}

/** A prompt's tokens; one encoder for all. */
const promptTokens: (messages: readonly ChatMessage[]) => readonly number[] = chatTokenizer(encodeO200k);

const namesOf = (workers: number) => Array.from({ length: workers }, (_, n) => `worker-${n}`);

function sentOf(
  user: number,
  messages: readonly ChatMessage[],
  worker: string | undefined,
  names: readonly string[],
): Sent {
  return { user, tokens: promptTokens(messages), worker: names.indexOf(worker ?? "") };
}

async function online(asked: readonly UserQuestion[], workers: number, perSecond: number): Promise<readonly Sent[]> {
  let now = 0;
  const memprefix = openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], () => now);
  const names = namesOf(workers);
  const sent: Sent[] = [];
  for (const { user, request } of asked) {
    const { messages, worker } = await memprefix.compose({ ...request, workers: names });
    sent.push(sentOf(user, messages, worker, names));
    now += 1_000 / perSecond;
  }
  await memprefix.close();
  return sent;
}

async function inBatches(asked: readonly UserQuestion[], workers: number, size: number): Promise<readonly Sent[]> {
  const memprefix = openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], () => 0);
  const names = namesOf(workers);
  const inputs = asked.map(({ request }, index): BatchInput => ({ index, request }));
  const sent: Sent[] = [];
  const options = { workers: names, signal: NO_ABORT };
  for (let from = 0; from < inputs.length; from += size)
    for await (const event of composeBatch(memprefix.batches, inputs.slice(from, from + size), options)) {
      if (event.kind === "failure") throw event.error;
      if (event.kind !== "answer") continue;
      sent.push(sentOf(asked[event.index]?.user ?? 0, event.answer.messages, event.worker ?? undefined, names));
    }
  await memprefix.close();
  return sent;
}

function hitRatio(sent: readonly Sent[], workers: number, capacityTokens: number | undefined): number {
  const caches = namesOf(workers).map(
    () =>
      new SimulatedCache("blocks", capacityTokens === undefined ? {} : { capacityTokens: capacityTokens / workers }),
  );
  let [cached, all] = [0, 0];
  for (const { tokens, worker } of sent) {
    cached += caches[worker]?.serve(tokens) ?? 0;
    all += tokens.length;
  }
  return cached / all;
}

function balance(sent: readonly Sent[], workers: number): number {
  const loads = namesOf(workers).map(() => 0);
  for (const { tokens, worker } of sent) loads[worker] = (loads[worker] ?? 0) + tokens.length;
  return (Math.max(...loads) * workers) / loads.reduce((sum, load) => sum + load, 0);
}

function row(name: string, sent: readonly Sent[], workers: number, all: number): void {
  const ratios = [hitRatio(sent, workers, undefined), hitRatio(sent, workers, all / 4)].map((r) => r.toFixed(3));
  printRow([workers, name, ...ratios, balance(sent, workers).toFixed(2)]);
}

/** The same prompts by the rules that know no cache. */
function rivals(title: string, sent: readonly Sent[], workers: number, all: number): void {
  row(
    `${title}round robin`,
    sent.map((one, at) => ({ ...one, worker: at % workers })),
    workers,
    all,
  );
  row(
    `${title}hashed by user`,
    sent.map((one) => ({ ...one, worker: one.user % workers })),
    workers,
    all,
  );
}

/**
 * Chain-of-Agents (ContextPilot 7.2): each of `AGENTS` agents reads one document of a question. One request a document, a question at a time; documents
 * are the recorded memories of one user. How many of the documents that some agent read before reach one that did.
 */
async function agents(): Promise<void> {
  const [trace] = traces;
  const [AGENTS, QUESTIONS] = [15, 30];
  const memprefix = openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], () => 0);
  const names = namesOf(AGENTS);
  const asked = (trace?.questions ?? []).slice(0, QUESTIONS).flatMap(({ question, retrieved }) =>
    retrieved.slice(0, AGENTS).map((at) => {
      const memory = trace?.memories[at]?.memory ?? "";
      const memories = [{ id: String(at), memory }];
      return { at, request: readComposeOptions({ userId: "kb", system: INSTRUCTION, query: question, memories }) };
    }),
  );
  const inputs = asked.map(({ request }, index): BatchInput => ({ index, request }));
  const workers = asked.map(() => "");
  const loads = new Map<string, number>();
  const options = { workers: names, signal: NO_ABORT };
  for (let from = 0; from < inputs.length; from += AGENTS)
    for await (const event of composeBatch(memprefix.batches, inputs.slice(from, from + AGENTS), options)) {
      if (event.kind === "failure") throw event.error;
      if (event.kind !== "answer") continue;
      const worker = event.worker ?? "";
      workers[event.index] = worker;
      loads.set(worker, (loads.get(worker) ?? 0) + promptTokens(event.answer.messages).length);
    }
  await memprefix.close();
  const known = (worker: (index: number) => string) => {
    const readBy = new Map<number, Set<string>>();
    let [again, reached] = [0, 0];
    for (const [index, { at }] of asked.entries()) {
      const readers = readBy.get(at) ?? new Set();
      if (readers.size > 0) again++;
      if (readers.has(worker(index))) reached++;
      readBy.set(at, readers.add(worker(index)));
    }
    return `${reached} of ${again}`;
  };
  const busiest = (Math.max(...loads.values()) * AGENTS) / [...loads.values()].reduce((sum, load) => sum + load, 0);
  console.log(`\n${QUESTIONS} questions, ${AGENTS} documents each, ${AGENTS} agents\n`);
  printHead(["routed", "documents that reach an agent that had them", "busiest ÷ mean"]);
  printRow(["round robin", known((index) => names[index % AGENTS] ?? ""), ""]);
  printRow(["by blocks", known((index) => workers[index] ?? ""), busiest.toFixed(2)]);
}

await agents();
if (process.argv.includes("--agents")) process.exit();
const numbers = (name: string, standard: string) => (process.env[name] ?? standard).split(",").map(Number);
for (const k of numbers("K", "20")) {
  const asked = userQuestions(k);
  const alone = await online(asked, 1, 1);
  const all = distinctTokens(alone, new SimulatedCache("blocks"));
  console.log(
    `\nk = ${k}: ${asked.length} prompts; one endless cache: ${hitRatio(alone, 1, undefined).toFixed(3)}, ${all} tokens\n`,
  );
  printHead(["workers", "routed", "endless", "¼", "busiest ÷ mean"]);
  for (const workers of numbers("WORKERS", "8")) {
    rivals("online, ", alone, workers, all);
    row("online, by blocks", await online(asked, workers, PER_SECOND), workers, all);
    const batch = await inBatches(asked, workers, asked.length);
    rivals("one batch, ", batch, workers, all);
    row("one batch, by blocks", batch, workers, all);
  }
}
