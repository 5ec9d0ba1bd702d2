/**
 * `npm run bench:shared-engine -- --data FOLDER`: conversations that take turns on a real engine at `ENGINE` (an address that ends with
 * `/v1`), with and without memstem's proxy: tokens in the prompt and computed, latency of the whole answer, what was expected cached and was,
 * and how far the one is from the other; means over the later half of the turns. Recorded real Mem0 searches; clients send their whole history. `N=4`, `TURNS=10`, `K=20`,
 * `ANSWER=8` tokens, `ARMS=README,hand,keep,auto`. `npm run engines -- vllm smol --port 8000 --blocks 70` serves one with a small cache.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChatMessage, MemoryId } from "../src/core/index.js";
import { readmeMessages } from "../src/eval/base/hand-built.js";
import { launch, listening } from "../test/cli/launch.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { neededData } from "./recorded-data.js";

const engine = process.env["ENGINE"] ?? "http://127.0.0.1:8000/v1";
const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
const [conversations, turns, k, answer] = [number("N", 4), number("TURNS", 10), number("K", 20), number("ANSWER", 8)];
const arms = (process.env["ARMS"] ?? "README,hand,keep,auto").split(",");
const data = neededData();
const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
const { data: models } = (await (await fetch(`${engine}/models`)).json()) as { data: { id: string }[] };
const model = models[0]?.id;

const folder = mkdtempSync(join(tmpdir(), "memstem-shared-"));
const service = launch(["serve"], {
  PATH: process.env["PATH"] ?? "",
  MEMSTEM_DATA_DIR: folder,
  MEMSTEM_PORT: "0",
  MEMSTEM_SOURCE: "none",
  MEMSTEM_UPSTREAM_URL: engine,
  MEMSTEM_ENGINE_FAMILY: "vllm",
});
try {
  const address = await listening(service);
  console.log(`${conversations} conversations in turn, ${turns} turns, k=${k}, ${answer} tokens of answer`);
  console.log(
    "| | tokens in the prompt | computed | latency, ms | expected cached | cached | off by |\n| --- | --: | --: | --: | --: | --: | --: |",
  );
  for (const arm of arms) console.log(`| ${arm} | ${(await run(arm, `${address}/v1`)).join(" | ")} |`);
} finally {
  service.child.kill("SIGTERM");
  await service.ended;
  rmSync(folder, { recursive: true, force: true });
}

/** Means of one arm. Its instructions are its own, so that nothing of another arm is found cached. */
async function run(arm: string, memstem: string): Promise<string[]> {
  const system: ChatMessage = {
    role: "system",
    content: `You answer questions in a few words. This is run ${arm} ${Date.now()}.`,
  };
  const histories = Array.from({ length: conversations }, (): ChatMessage[] => []);
  const rows: number[][] = [];
  for (let turn = 0; turn < turns; turn++) {
    for (const [at, history] of histories.entries()) {
      const trace = traces[at % traces.length];
      const asked = trace?.questions[turn + 20 * Math.floor(at / traces.length)];
      if (trace === undefined || asked === undefined) continue;
      const memories = asked.retrieved
        .slice(0, k)
        .map((of) => ({ id: `m-${of}`, memory: trace.memories[of]?.memory ?? "" }));
      const question: ChatMessage = { role: "user", content: asked.question };
      const isOurs = arm !== "README" && arm !== "hand";
      const sent = await ask(isOurs ? memstem : engine, {
        model,
        temperature: 0,
        max_tokens: answer,
        messages: isOurs ? [system, ...history, question] : byHand(arm, system, history, question, memories),
        ...(isOurs ? { user: `${arm} ${at}`, memstem: { conversation_id: "c", memories, retention: arm } } : {}),
      });
      history.push(question, { role: "assistant", content: sent.text });
      const { prompt, cached, ms, expected } = sent;
      if (turn >= turns / 2) rows.push([prompt, prompt - cached, ms, expected, cached, Math.abs(expected - cached)]);
    }
  }
  return [0, 1, 2, 3, 4, 5].map((column) =>
    (rows.reduce((sum, row) => sum + (row[column] ?? 0), 0) / rows.length).toFixed(0),
  );
}

function byHand(
  arm: string,
  system: ChatMessage,
  history: readonly ChatMessage[],
  question: ChatMessage,
  memories: readonly { id: string; memory: string }[],
) {
  const found = memories.map(({ id, memory }) => ({ id: id as MemoryId, text: memory }));
  if (arm === "README") {
    const [first, ...rest] = readmeMessages(found, [...history, question]);
    return [{ ...first, content: `${String(system.content)}\n${String(first?.content)}` }, ...rest];
  }
  const list = found.map(({ text }) => `- ${text}`).join("\n");
  return [system, ...history, { role: "user", content: `User Memories:\n${list}\n\n${String(question.content)}` }];
}

async function ask(base: string, body: object) {
  const since = performance.now();
  const response = await fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
  });
  const text = await response.text();
  const ms = performance.now() - since;
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  const events = text.split("\n").filter((line) => line.startsWith("data: {"));
  const chunks = events.map((line) => JSON.parse(line.slice("data: ".length)) as Chunk);
  const usage = chunks.findLast((chunk) => chunk.usage)?.usage;
  return {
    ms,
    text: chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""),
    prompt: usage?.prompt_tokens ?? 0,
    cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    expected: Number(response.headers.get("x-memstem-expected-cached-tokens") ?? 0),
  };
}

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string | null } }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens?: number } | null;
  } | null;
}
