/**
 * `npm run bench -- loop`: what Mem0's loop costs a turn, reading and writing: search, prompt, answer, add. The first 150 exchanges (or `TURNS`) of six
 * LoCoMo conversations, k = 20 (or `K`), whole histories; real `mem0ai` with its files, and a stub as its model, which records what it is sent
 * and extracts what LoCoMo's own observations say of the same turns. Takes `--data FOLDER` with `locomo/` (`recorded-data.ts`). `MEM0=python`
 * runs Mem0 for Python instead, in an environment that it installs.
 *
 * `computed`: tokens that an endless token-exact cache does not have; the six share one cache for prompts and one for writes. `billed`: OpenAI's
 * prices of `src/core/cost/prices.ts`, in uncached tokens. Neither counts embeddings, or answers, which are the same everywhere.
 *
 * Aim: billed, reads and writes together, 1.7 times less than the list in the last message with an add after every turn, and 2.5 times less than
 * Mem0's README; computed, 2.5 times less than the former. Batches of four reached all three; those of two, which lose no facts, the second.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { pricedModel } from "../src/core/cost/prices.js";
import { type ChatMessage, type MemoryId, ORDERING_POLICIES, promptCost } from "../src/core/index.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import { inLastMessage, readmeMessages } from "../src/eval/base/hand-built.js";
import type { LocomoConversation } from "../src/eval/locomo/locomo-data.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { replayTrace } from "../src/eval/replay/replay-trace.js";
import { createMemprefix, type MemprefixOptions } from "../src/index.js";
import { sentenceEmbedder } from "../src/memory/embedded-store.js";
import { BATCH } from "../src/service/records/memory-writer.js";
import { type PythonMem0, startPythonMem0 } from "../test/memory/python-mem0/python-mem0.js";
import { embeddedMem0 } from "./embedded-mem0.js";
import { exchangesOf, neededConversations } from "./exchanges.js";
import type { BuildByHand } from "./retention-costs.js";
import { mean } from "./statistics.js";
import { printHead, printRow, whole } from "./table.js";

const turns = Number(process.env["TURNS"] ?? 150);
const k = Number(process.env["K"] ?? 20);
const PYTHON_DIMENSIONS = 1_536;
const HOSTED = pricedModel({ host: null, family: "openai" }, null);

/** Per turn of one conversation. */
interface Cost {
  readonly computed: number;
  readonly billed: number;
}

/** The same embeddings as in this process; zeros fill the columns of Mem0's database. */
async function embeddingsOf({ input, model }: { input: string | string[]; model: string }) {
  const vectors = await sentenceEmbedder().embedDocuments([input].flat());
  const data = vectors.map((vector, index) => ({
    object: "embedding",
    index,
    embedding: [...vector, ...Array.from({ length: PYTHON_DIMENSIONS - vector.length }, () => 0)],
  }));
  return { object: "list", model, data, usage: { prompt_tokens: 0, total_tokens: 0 } };
}

/** Mem0's model, over HTTP: records what it is sent of one conversation after the other. */
async function recordingModel() {
  let prompts: ChatMessage[][] = [];
  let facts: readonly { readonly text: string; readonly said: string | undefined }[] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString());
    response.setHeader("content-type", "application/json");
    if (request.url?.endsWith("/embeddings")) {
      response.end(JSON.stringify(await embeddingsOf(body)));
      return;
    }
    const { messages } = body as { messages: ChatMessage[] };
    prompts.push(messages);
    const [, added = ""] =
      /## New Messages\n(.*?)\n\n## Observation Date/s.exec(String(messages.at(-1)?.content)) ?? [];
    const memory = facts
      .filter(({ said }) => said !== undefined && added.includes(said))
      .map(({ text }, id) => ({ id: String(id), text }));
    const choices = [
      { index: 0, message: { role: "assistant", content: JSON.stringify({ memory }) }, finish_reason: "stop" },
    ];
    response.end(JSON.stringify({ id: "c", object: "chat.completion", created: 0, model: "stub", choices }));
  });
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  return {
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    /** Extracts what is known of this conversation. Gives the prompts, which grow. */
    hear({ turns: said, observations }: LocomoConversation): readonly (readonly ChatMessage[])[] {
      const textOf = new Map(said.map(({ id, text }) => [id, text]));
      facts = observations.map(({ text, evidence }) => ({ text, said: textOf.get(evidence.at(-1) ?? "") }));
      prompts = [];
      return prompts;
    },
    close: () => server.close(),
  };
}

interface Looped {
  /** The turns with what Mem0 found for each. */
  readonly trace: RecordedTrace;
  readonly writes: readonly (readonly ChatMessage[])[];
}

/** Mem0 without memories. */
interface Mem0 {
  search(question: string): Promise<{ readonly results: readonly { readonly memory: string }[] }>;
  add(messages: readonly { readonly role: "user" | "assistant"; readonly content: string }[]): Promise<unknown>;
  /** How memprefix reaches it. */
  readonly source: NonNullable<MemprefixOptions["source"]>;
}

/** `mem0ai` in this process, with its files in `directory`. */
async function mem0InProcess(directory: string, baseURL: string): Promise<Mem0> {
  const source = await embeddedMem0(directory, baseURL, "stub");
  return {
    source,
    search: (question) => source.search(question, { filters: { user_id: "ana" }, topK: k }),
    add: (messages) => source.add([...messages], { userId: "ana" }),
  };
}

/** Mem0's Python behind the routes of its server, emptied. */
async function pythonMem0({ url, key, call }: PythonMem0): Promise<Mem0> {
  await call("POST", "/reset");
  return {
    source: { kind: "rest", url, apiKey: key },
    search: (query) =>
      call("POST", "/search", { query, filters: { user_id: "ana" }, top_k: k }) as ReturnType<Mem0["search"]>,
    add: (messages) => call("POST", "/memories", { messages, user_id: "ana" }),
  };
}

/** Runs the loop. @param isBatched whether memprefix adds the exchanges; otherwise each is added after its turn */
async function loop(conversation: LocomoConversation, isBatched: boolean): Promise<Looped> {
  const directory = mkdtempSync(join(tmpdir(), "memprefix-loop-"));
  const writes = model.hear(conversation);
  const mem0 = await (python === null ? mem0InProcess(directory, model.baseURL) : pythonMem0(python));
  const memprefix = createMemprefix({ dataDir: join(directory, "data"), source: mem0.source });
  const places = new Map<string, number>();
  const memories: RecordedTrace["memories"] = [];
  const questions: RecordedTrace["questions"] = [];
  for (const [at, { question, answer }] of exchangesOf(conversation).slice(0, turns).entries()) {
    const { results } = await mem0.search(question);
    const retrieved = results.map(({ memory: text }) => {
      if (!places.has(text)) places.set(text, memories.push({ memory: text, evidence: [] }) - 1);
      return places.get(text) ?? 0;
    });
    questions.push({ question, answer, evidence: [], retrieved });
    const messages = [
      { role: "user" as const, content: question },
      { role: "assistant" as const, content: answer },
    ];
    if (!isBatched) await mem0.add(messages);
    else {
      await memprefix.add({ userId: "ana", conversationId: conversation.id, messages });
      // The next question comes after Mem0 has answered.
      while (writes.length < Math.floor((at + 1) / BATCH)) await setTimeout(5);
      await setTimeout((at + 1) % BATCH === 0 ? 300 : 0);
    }
  }
  await memprefix.close();
  rmSync(directory, { recursive: true });
  // A trace has a memory at least.
  if (memories.length === 0) memories.push({ memory: "none", evidence: [] });
  return { trace: { sample_id: conversation.id, memories, questions }, writes };
}

function costOf(
  prompts: readonly { readonly promptTokens: number; readonly cachedTokens: number }[],
  per: number,
): Cost {
  const sum = (of: (prompt: (typeof prompts)[number]) => number) =>
    prompts.reduce((all, one) => all + of(one), 0) / per;
  return {
    computed: sum(({ promptTokens, cachedTokens }) => promptTokens - cachedTokens),
    billed: sum(({ promptTokens, cachedTokens }) => promptCost(HOSTED, promptTokens, cachedTokens)),
  };
}

function writeCost({ writes, trace }: Looped, cache: SimulatedCache): Cost {
  const tokenize = chatTokenizer(encodeO200k);
  const served = writes.map((messages) => {
    const tokens = tokenize(messages);
    return { promptTokens: tokens.length, cachedTokens: cache.serve(tokens) };
  });
  return costOf(served, trace.questions.length);
}

function byHand({ trace }: Looped, build: BuildByHand, cache: SimulatedCache): Cost {
  const tokenize = chatTokenizer(encodeO200k);
  const history: ChatMessage[] = [];
  const served = trace.questions.map(({ question, answer, retrieved }) => {
    history.push({ role: "user", content: question });
    const found = retrieved.map((at) => ({ id: String(at) as MemoryId, text: trace.memories[at]?.memory ?? "" }));
    const messages = build(found, history);
    const tokens = tokenize(messages);
    const cachedTokens = cache.serve(tokens);
    const answered: ChatMessage = { role: "assistant", content: String(answer) };
    history.push(answered);
    cache.serve(tokenize([...messages, answered]));
    return { promptTokens: tokens.length, cachedTokens };
  });
  return costOf(served, served.length);
}

function withMemprefix({ trace }: Looped, cache: SimulatedCache): Cost {
  const tokens = { encode: encodeO200k, countTokens: countO200k };
  const policy = ORDERING_POLICIES["prefix-exact"];
  const options = { k, policy, budgetRatio: null, layout: "conversation", retention: "auto", engine: HOSTED } as const;
  const { requests } = replayTrace(trace, cache, tokens, options);
  return costOf(requests, requests.length);
}

const model = await recordingModel();
const started = process.env["MEM0"] === "python" ? await startPythonMem0(model.baseURL) : null;
if (typeof started === "string") throw new Error(started);
const python: PythonMem0 | null = started;
const named = neededConversations();
const each: Looped[] = [];
const twos: Looped[] = [];
for (const conversation of named) {
  each.push(await loop(conversation, false));
  twos.push(await loop(conversation, true));
  console.error(`${conversation.id}: ${each.at(-1)?.writes.length} and ${twos.at(-1)?.writes.length} additions`);
}
await python?.close();
model.close();

const arms: readonly (readonly [
  name: string,
  looped: readonly Looped[],
  read: (of: Looped, cache: SimulatedCache) => Cost,
])[] = [
  ["Mem0's README, an add after every turn", each, (of, cache) => byHand(of, readmeMessages, cache)],
  ["the list in the last message, an add after every turn", each, (of, cache) => byHand(of, inLastMessage, cache)],
  ["memprefix, an add after every turn", each, withMemprefix],
  ["memprefix, which adds in twos", twos, withMemprefix],
];
console.log(
  `Per turn, mean of ${named.length} conversations, ${mean(each.map(({ trace }) => trace.questions.length))} turns each, k = ${k}\n`,
);
printHead(["", "computed: reads", "writes", "both", "billed: reads", "writes", "both"]);
const sums = arms.map(([name, looped, read]) => {
  const [readCache, writeCache] = [new SimulatedCache("radix"), new SimulatedCache("radix")];
  const reads = looped.map((one) => read(one, readCache));
  const writes = looped.map((one) => writeCost(one, writeCache));
  const both = { computed: 0, billed: 0 };
  const cells = (["computed", "billed"] as const).flatMap((of) => {
    const parts = [reads, writes].map((costs) => mean(costs.map((cost) => cost[of])));
    both[of] = parts.reduce((sum, part) => sum + part, 0);
    return [...parts, both[of]];
  });
  printRow([name, ...cells.map(whole)]);
  return both;
});
const [readme, last, , ours] = sums;
if (readme !== undefined && last !== undefined && ours !== undefined) {
  console.log(
    `\nbilled: ${(last.billed / ours.billed).toFixed(2)} times less than the list in the last message (aim 1.7), ${(readme.billed / ours.billed).toFixed(2)} than Mem0's README (aim 2.5)`,
  );
  console.log(
    `computed: ${(last.computed / ours.computed).toFixed(2)} times less than the list in the last message (aim 2.5)`,
  );
}
