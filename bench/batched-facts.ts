/**
 * `npm run bench -- batched-facts`: whether Mem0 finds the same facts when several exchanges are added together. The first 40 exchanges (or
 * `TURNS`) of two LoCoMo conversations (or `CONVERSATIONS`), added to real `mem0ai` one by one, one by one again, in twos, threes and fours,
 * with the same model at temperature 0: Qwen2.5-Coder-1.5B on vLLM, which `npm run engines` installs. The second run shows the noise. All runs
 * go on at once, since vLLM computes their tokens together. Takes `--data FOLDER` with `locomo/`.
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
import { printHead, printRow } from "./table.js";

const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
const turns = number("TURNS", 40);
const K = 20;

/** Forwards to the engine at temperature 0, which Mem0 does not let one set. Not by `fetch`, which waits five minutes at most for an answer. */
async function greedy(engine: string) {
  const server = createServer(async (incoming, response) => {
    const body = JSON.parse(Buffer.concat(await incoming.toArray()).toString()) as object;
    const headers = { "content-type": "application/json" };
    // A connection of its own: the engine closes idle ones, just as one is used again.
    const call = request(`${engine}/chat/completions`, { method: "POST", headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, headers);
      answer.pipe(response);
    });
    call.once("error", (error) => response.destroy(error));
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
  return { memories: results.map((one) => wordsOf(one.memory)), found, questions: questions.length };
}

/** The largest share of these words that one of the memories has. */
const bestShare = (words: ReadonlySet<string>, memories: Added["memories"]) =>
  Math.max(0, ...memories.map((other) => shareIn(words, other)));

const engine = await serving({ engine: "vllm", model: "qwen", contextTokens: 16_384 });
const model = await greedy(engine.url);
const runs = [
  { name: "one by one", size: 1 },
  { name: "one by one again", size: 1 },
  ...[2, 3, 4].map((size) => ({ name: `${size} at a time`, size })),
];
try {
  const conversations = neededConversations().slice(0, number("CONVERSATIONS", 2));
  const results = await Promise.all(
    conversations.map((conversation) => Promise.all(runs.map(({ size }) => added(conversation, size, model.url)))),
  );
  printHead(["", "memories", "kept", "changed", "lost", "doubled", "answers found"]);
  for (const [at, ofRuns] of results.entries())
    for (const [run, { memories, found, questions }] of ofRuns.entries()) {
      const shares = (ofRuns[0]?.memories ?? []).map((words) => bestShare(words, memories));
      const kept = shares.filter((share) => share >= 0.8).length;
      const changed = shares.filter((share) => share >= 0.5 && share < 0.8).length;
      const doubled = memories.filter((words, nth) => bestShare(words, memories.slice(0, nth)) >= 0.8).length;
      printRow([
        `${conversations[at]?.id}, ${runs[run]?.name}`,
        ...[memories.length, kept, changed, shares.length - kept - changed, doubled].map(String),
        `${found} of ${questions}`,
      ]);
    }
} finally {
  model.close();
  await engine.kill();
}
