/**
 * `npm run bench -- papers pipelining`: time to the first token of a cold prompt, with `MEMPREFIX_WARM_UP` off and on. This is RAGCache++'s pipelining
 * (3.6, table 5): the engine computes the system prompt during the search. The service is in front of an engine that computes one prompt at a time,
 * at the pace of the paper's RTX 4090 (87 ms for the system prompt, 61 ms for the rest). Like vLLM, it keeps what it had computed of a cancelled
 * request. Medians of `ROUNDS=5` cold starts, each with a system prompt of its own. All times, searches included, run `SCALE=10` times slower and
 * are divided by it again, so that the machine's own time counts little. No data is needed.
 *
 * Floor: max(search, system prompt) + rest.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { encodeO200k } from "../src/cli/o200k.js";
import { readSettings } from "../src/cli/settings.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import type { ChatMessage, MemoryId } from "../src/core/index.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import type { MemorySource } from "../src/memory/memory-source.js";
import { startApp } from "../test/http/server/started-app.js";
import { median } from "./statistics.js";
import { percent, printHead, printRow } from "./table.js";

const [ROUNDS, SCALE] = [Number(process.env["ROUNDS"] ?? 5), Number(process.env["SCALE"] ?? 10)];
const MS_PER_TOKEN = 0.1 * SCALE;
const SEARCHES_MS = [20, 50, 100];
const systemOf = (name: string) => `Session ${name}.${" Be kind.".repeat(287)}`;
const DOCUMENTS = Array.from({ length: 5 }, (_, n) => ({
  id: `d-${n}` as MemoryId,
  text: `Document ${n}:${" fact".repeat(110)}.`,
}));

const tokenize = chatTokenizer(encodeO200k);
const cache = new SimulatedCache("blocks");
let busy = Promise.resolve();

/** Computes what is not cached, block by block, until the request is cancelled. */
async function compute(tokens: readonly number[], isCancelled: () => boolean): Promise<void> {
  let held = cache.heldOf(tokens);
  for (const end = performance.now() - held * MS_PER_TOKEN; held < tokens.length && !isCancelled(); ) {
    await setTimeout(1);
    held = Math.min(tokens.length, Math.floor((performance.now() - end) / MS_PER_TOKEN));
  }
  cache.serve(tokens.slice(0, held));
}

const engine = createServer(async (incoming, answer) => {
  const raw = Buffer.concat(await incoming.toArray()).toString();
  if (incoming.method === "GET") return answer.writeHead(404).end();
  const tokens = tokenize((JSON.parse(raw) as { readonly messages: readonly ChatMessage[] }).messages);
  busy = busy.then(() => compute(tokens, () => answer.destroyed));
  await busy;
  const message = { role: "assistant", content: "So it is." };
  const usage = { prompt_tokens: tokens.length, completion_tokens: 1, total_tokens: tokens.length + 1 };
  const choices = [{ index: 0, message, finish_reason: "length" }];
  answer.setHeader("content-type", "application/json");
  return answer.end(JSON.stringify({ id: "c", object: "chat.completion", created: 0, model: "stub", choices, usage }));
}).listen(0, "127.0.0.1");
await new Promise((listening) => engine.once("listening", listening));

/** Median milliseconds until the answer, by how long searches take. */
async function coldStarts(warmUp: "on" | "off"): Promise<readonly number[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "memprefix-bench-"));
  const upstream = `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`;
  const settings = readSettings({
    MEMPREFIX_DATA_DIR: dataDir,
    MEMPREFIX_SOURCE: "none",
    MEMPREFIX_UPSTREAM_URL: upstream,
    MEMPREFIX_ENGINE_FAMILY: "vllm",
    MEMPREFIX_WARM_UP: warmUp,
  });
  let searchMs = 0;
  const source: MemorySource = {
    name: "slow",
    owned: false,
    search: () => setTimeout(searchMs, DOCUMENTS),
    add: async () => [],
    delete: async () => false,
    deleteUser: async () => {},
    close: async () => {},
  };
  const app = await startApp(settings, source, { log: [], faults: [] });
  const ask = async (name: string): Promise<number> => {
    const messages = [
      { role: "system", content: systemOf(name) },
      { role: "user", content: "What is known?" },
    ];
    const headers = { "content-type": "application/json", "x-memprefix-user": name };
    const body = JSON.stringify({ model: "stub", max_tokens: 1, messages });
    const start = performance.now();
    const response = await fetch(`${app.base}/v1/chat/completions`, { method: "POST", headers, body });
    if (!response.ok) throw new Error(await response.text());
    await response.text();
    return performance.now() - start;
  };
  const medians: number[] = [];
  for (let n = 0; n < 3; n++) await ask(`${warmUp} compiles ${n}`);
  for (const ms of SEARCHES_MS) {
    searchMs = ms * SCALE;
    const taken: number[] = [];
    for (let round = 0; round < ROUNDS; round++) taken.push(await ask(`${warmUp} ${ms} ${round}`));
    medians.push(median(taken) / SCALE);
  }
  await app.close();
  rmSync(dataDir, { recursive: true });
  return medians;
}

const [serial, pipelined] = [await coldStarts("off"), await coldStarts("on")];
engine.close();
printHead(["search, ms", "off, ms", "on, ms", "saved"]);
for (const [at, ms] of SEARCHES_MS.entries()) {
  const [off, on] = [serial[at] ?? Number.NaN, pipelined[at] ?? Number.NaN];
  printRow([ms, off.toFixed(0), on.toFixed(0), percent(1 - on / off)]);
}
