/**
 * `npm run bench -- batched-facts`: whether Mem0 finds the same facts when several exchanges are added together. The first 40 exchanges (or
 * `TURNS`) of two LoCoMo conversations (or `CONVERSATIONS`), added to real `mem0ai` in runs of so many at a time (`SIZES`, by default
 * `1,1,2,3,4`), with the same model at temperature 0: Qwen2.5-Coder-1.5B on vLLM, which `npm run engines` installs. The second run shows the
 * noise. All runs go on at once, since vLLM computes their tokens together. Takes `--data FOLDER` with `locomo/`.
 *
 * LoCoMo's authors noted facts of these exchanges (its observations). Such a fact is stated if a memory has half of its words. `share` is the
 * share of its words that the best memory has: the mean, then the mean difference to the first run with its interval of 95 %.
 *
 * A fact of the first run is kept if a memory of the other run has four fifths of its words, changed if half of them, else lost. It is doubled
 * if an earlier memory of its own run has four fifths of its words. A question counts if all its evidence is in these exchanges; its answer is
 * found if four fifths of its words are in the first 20 memories of Mem0's search.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LocomoConversation } from "../src/eval/locomo/locomo-data.js";
import { serving } from "../test/real-engines/serving.js";
import { embeddedMem0 } from "./embedded-mem0.js";
import { exchangesOf, neededConversations } from "./exchanges.js";
import { mean, meanWithInterval } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
const turns = number("TURNS", 40);
const K = 20;

/**
 * Forwards to the engine at temperature 0, which Mem0 does not let one set. Mem0's `fetch` waits five minutes at most for an answer's next byte,
 * so it gets a space each minute, which JSON permits.
 */
async function greedy(engine: string) {
  const server = createServer(async (incoming, response) => {
    const body = JSON.parse(Buffer.concat(await incoming.toArray()).toString()) as object;
    const headers = { "content-type": "application/json" };
    response.writeHead(200, headers);
    const waits = setInterval(() => response.write(" "), 60_000);
    // A connection of its own: the engine closes idle ones, just as one is used again.
    const call = request(`${engine}/chat/completions`, { method: "POST", headers, agent: false }, (answer) => {
      clearInterval(waits);
      if (answer.statusCode === 200) answer.pipe(response);
      else response.destroy(new Error(`the engine answered ${answer.statusCode}`));
    });
    call.once("error", (error) => {
      clearInterval(waits);
      response.destroy(error);
    });
    call.end(JSON.stringify({ ...body, temperature: 0, max_tokens: 800 }));
  });
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, close: () => server.close() };
}

const wordsOf = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu));

/** The share of a text's words that a set has; 1 for a text without words. */
function shareIn(words: ReadonlySet<string>, others: ReadonlySet<string>): number {
  return words.size === 0 ? 1 : [...words].filter((word) => others.has(word)).length / words.size;
}

interface Added {
  readonly memories: readonly ReadonlySet<string>[];
  /** Of each noted fact, the largest share of its words that a memory has. */
  readonly stated: readonly number[];
  readonly found: number;
  readonly questions: number;
}

/** Adds a conversation's exchanges, `size` of them at a time, and searches its questions. */
async function added(conversation: LocomoConversation, size: number, model: string): Promise<Added> {
  const directory = mkdtempSync(join(tmpdir(), "memprefix-batched-facts-"));
  const memory = await embeddedMem0(directory, model, "qwen");
  const exchanges = exchangesOf(conversation).slice(0, turns);
  for (let at = 0; at < exchanges.length; at += size) {
    const messages = exchanges.slice(at, at + size).flatMap(({ question, answer }) => [
      { role: "user" as const, content: question },
      { role: "assistant" as const, content: answer },
    ]);
    await memory.add(messages, { userId: "ana" });
  }
  const said = new Set(exchanges.flatMap((exchange) => exchange.turns));
  const questions = conversation.questions.filter(
    ({ answer, evidence }) => answer !== null && evidence.length > 0 && evidence.every((turn) => said.has(turn)),
  );
  let found = 0;
  for (const { question, answer } of questions) {
    const { results } = await memory.search(question, { filters: { user_id: "ana" }, topK: K });
    const words = wordsOf(results.map((one) => one.memory).join(" "));
    if (shareIn(wordsOf(answer ?? ""), words) >= 0.8) found++;
  }
  const { results } = await memory.getAll({ filters: { user_id: "ana" }, topK: 10_000 });
  rmSync(directory, { recursive: true });
  const memories = results.map((one) => wordsOf(one.memory));
  const noted = conversation.observations.filter(
    ({ evidence }) => evidence.length > 0 && evidence.every((turn) => said.has(turn)),
  );
  const stated = noted.map(({ text }) => bestShare(wordsOf(text), memories));
  return { memories, stated, found, questions: questions.length };
}

/** The largest share of these words that one of the memories has. */
function bestShare(words: ReadonlySet<string>, memories: Added["memories"]): number {
  return Math.max(0, ...memories.map((other) => shareIn(words, other)));
}

const engine = await serving({ engine: "vllm", model: "qwen", contextTokens: 16_384 });
const model = await greedy(engine.url);
const sizes = (process.env["SIZES"] ?? "1,1,2,3,4").split(",").map(Number);
try {
  const conversations = neededConversations().slice(0, number("CONVERSATIONS", 2));
  const ofConversations = await Promise.all(
    conversations.map((conversation) => Promise.all(sizes.map((size) => added(conversation, size, model.url)))),
  );
  printHead([
    "at a time",
    "memories",
    "stated",
    "share",
    "less the first run's",
    "kept",
    "changed",
    "lost",
    "doubled",
    "found",
  ]);
  for (const [run, size] of sizes.entries()) {
    const [first = [], own = []] = [0, run].map((at) => ofConversations.flatMap((ofRuns) => ofRuns[at] ?? []));
    const before = first.flatMap((one) => one.stated);
    const stated = own.flatMap((one) => one.stated);
    const shares = first.flatMap(({ memories }, at) =>
      memories.map((words) => bestShare(words, own[at]?.memories ?? [])),
    );
    const among = (least: number, below: number) => shares.filter((share) => share >= least && share < below).length;
    const doubled = own.flatMap(({ memories }) =>
      memories.filter((words, nth) => bestShare(words, memories.slice(0, nth)) >= 0.8),
    );
    const sumOf = (name: "found" | "questions") => own.reduce((sum, one) => sum + one[name], 0);
    printRow([
      size,
      own.flatMap(({ memories }) => memories).length,
      `${stated.filter((share) => share >= 0.5).length} of ${stated.length}`,
      mean(stated).toFixed(3),
      meanWithInterval(stated.map((share, at) => share - (before[at] ?? Number.NaN))),
      ...[among(0.8, 2), among(0.5, 0.8), among(0, 0.5), doubled.length],
      `${sumOf("found")} of ${sumOf("questions")}`,
    ]);
  }
} finally {
  model.close();
  await engine.kill();
}
