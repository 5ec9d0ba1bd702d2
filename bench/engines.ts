/**
 * `npm run bench -- engines --data FOLDER`: prompts to a real engine, with and without memprefix's proxy, as their clients see them: time to the
 * first token, to the end, throughput, tokens. Recorded real Mem0 searches. Every client has a LoCoMo conversation of its own, and sends its
 * questions one after the other, with what each of them found and the whole history. `ARMS`: `readme` (Mem0's README), `hand` (in the last
 * message), `memprefix` (its defaults), or a retention. `CLIENTS=1` at once, `N=CLIENTS` of them in all, `TURNS=10`, `K=20`, `ANSWER=16` tokens,
 * `MODEL=smol`, `CONTEXT=8192`, `BLOCKS` of the cache. Arms of one engine evict each other's prompts: `APART=1` starts as many engines as arms, and
 * runs all turns once per engine, each arm with another engine each time, because equal engines differ in speed by up to a half. `WARM_UP=4` turns
 * of as many other clients come before, so that a service is measured whose code is compiled and which knows its engine. `npm run engines`
 * installs what it starts.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { ChatMessage, MemoryId } from "../src/core/index.js";
import { eventsOf } from "../src/engines/upstream/answer-body.js";
import { INSTRUCTION, inLastMessage, readmeMessages } from "../src/eval/base/hand-built.js";
import { launch, listening } from "../test/cli/launch.js";
import { installAll } from "../test/real-engines/install.js";
import { MODELS } from "../test/real-engines/packages.js";
import { type RealEngine, serving } from "../test/real-engines/serving.js";
import { neededTraces } from "./recorded-data.js";
import { mean, quantile } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const { env } = process;
const number = (name: string, standard: number) => Number(env[name] ?? standard);
const [clients, turns, k, answer] = [number("CLIENTS", 1), number("TURNS", 10), number("K", 20), number("ANSWER", 16)];
const all = number("N", clients);
const warmUp = number("WARM_UP", 0);
const arms = (env["ARMS"] ?? "readme,hand,memprefix").split(",");
const model = MODELS.find((name) => name === (env["MODEL"] ?? "smol")) ?? "smol";
const traces = neededTraces();

/** What one prompt came to. */
interface Sent {
  readonly text: string;
  readonly ttft: number;
  readonly total: number;
  readonly prompt: number;
  readonly cached: number;
  /** Null without memprefix. */
  readonly expected: number | null;
}

/** After a prompt, vLLM's worker waits for the next in a busy loop for a second. */
const BUSY_MS = 1_200;
const [first = "hand"] = arms;
const isApart = env["APART"] === "1";

await installAll();
const blocks = env["BLOCKS"] === undefined ? {} : { blocks: number("BLOCKS", 0) };
const engines: RealEngine[] = [];
const results = new Map<string, Result>();
try {
  for (let n = 0; n < (isApart ? arms.length : 1); n++)
    engines.push(await serving({ engine: "vllm", model, contextTokens: number("CONTEXT", 8_192), ...blocks }));
  for (let round = 0; round < engines.length; round++) await roundOf(round);
  console.log(`${model}, k=${k}: ${all} clients, ${clients} at once, ${turns} turns, ${answer} tokens of answer`);
  const titles = ["TTFT p50, ms", "p95", "total p50", "p95", "prompts/s", `of ${first}`, "tokens in the prompt"];
  printHead(["", ...titles, "computed", "off by", "failed"]);
  for (const arm of arms) printRow([arm, ...figures(arm)]);
} finally {
  for (const engine of engines) await engine.kill();
}

/** All turns of all arms, each with the next engine where it has one of its own. */
async function roundOf(round: number): Promise<void> {
  const opened: Arm[] = [];
  try {
    for (const [at, way] of arms.entries())
      opened.push(await open(way, round, engines[(round + at) % engines.length] as RealEngine));
    const before = opened.map((arm) => ({ ...arm, ...nothingSent(), firstClient: all }));
    for (let turn = 0; turn < warmUp; turn++) for (const arm of before) await turnOf(arm, turn);
    // Another arm begins with each turn, so that what else the machine does falls on all alike.
    for (let turn = 0; turn < turns; turn++)
      for (let n = 0; n < opened.length; n++) await turnOf(opened[(turn + n) % opened.length] as Arm, turn);
  } finally {
    for (const { close } of opened) await close();
  }
  for (const { way, sent, seconds, failed } of opened) {
    const result = results.get(way) ?? { sent: [], seconds: [], failed: 0 };
    result.sent.push(...sent);
    result.seconds.push(seconds);
    result.failed += failed;
    results.set(way, result);
  }
}

/** What the prompts of a way came to, in all rounds. */
interface Result {
  readonly sent: Sent[];
  /** Of each round. */
  readonly seconds: number[];
  failed: number;
}

/** A way to build prompts, and what they came to in one round. */
interface Arm {
  readonly way: string;
  readonly round: number;
  /** What its prompts are sent to. */
  readonly base: string;
  /** Number of the first of its clients: those of a warm-up are others. */
  readonly firstClient: number;
  readonly histories: readonly ChatMessage[][];
  readonly sent: Sent[];
  seconds: number;
  failed: number;
  readonly close: () => Promise<void>;
}

function nothingSent(): Pick<Arm, "histories" | "sent" | "seconds" | "failed"> {
  return { histories: Array.from({ length: all }, (): ChatMessage[] => []), sent: [], seconds: 0, failed: 0 };
}

/** One arm, with a service of its own where it has one. */
async function open(way: string, round: number, { url }: RealEngine): Promise<Arm> {
  const arm = { way, round, base: url, firstClient: 0, ...nothingSent(), close: async () => {} };
  if (way === "readme" || way === "hand") return arm;
  const folder = mkdtempSync(join(tmpdir(), "memprefix-engines-"));
  const service = launch(["serve"], {
    PATH: env["PATH"] ?? "",
    MEMPREFIX_DATA_DIR: folder,
    MEMPREFIX_PORT: "0",
    MEMPREFIX_SOURCE: "none",
    MEMPREFIX_UPSTREAM_URL: url,
    MEMPREFIX_ENGINE_FAMILY: "vllm",
  });
  const close = async () => {
    service.child.kill("SIGTERM");
    await service.ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...arm, base: `${await listening(service)}/v1`, close };
}

/** Each client's next question; so many clients are at work at a time. */
async function turnOf(arm: Arm, turn: number): Promise<void> {
  if (isApart) await setTimeout(BUSY_MS);
  const since = performance.now();
  for (let first = 0; first < all; first += clients) {
    const group = arm.histories.slice(first, first + clients);
    const asked = group.map((history, at) => ask(arm, arm.firstClient + first + at, turn, history));
    for (const each of await Promise.allSettled(asked)) {
      if (each.status === "fulfilled") arm.sent.push(each.value);
      else arm.failed++;
    }
  }
  arm.seconds += (performance.now() - since) / 1_000;
}

function figures(way: string): string[] {
  const { sent, failed, seconds } = results.get(way) as Result;
  const took = seconds.reduce((sum, each) => sum + each, 0);
  const logs = seconds.map((each, round) => Math.log((results.get(first)?.seconds[round] ?? Number.NaN) / each));
  const ofFirst = Math.exp(mean(logs));
  const at = (share: number, of: (one: Sent) => number) => quantile(sent.map(of), share).toFixed(0);
  const meanOf = (of: (one: Sent) => number) => mean(sent.map(of)).toFixed(0);
  return [
    ...[
      at(0.5, ({ ttft }) => ttft),
      at(0.95, ({ ttft }) => ttft),
      at(0.5, ({ total }) => total),
      at(0.95, ({ total }) => total),
    ],
    ...[
      (sent.length / took).toFixed(3),
      ofFirst.toFixed(2),
      meanOf(({ prompt }) => prompt),
      meanOf(({ prompt, cached }) => prompt - cached),
    ],
    ...[
      sent[0]?.expected === null ? "" : meanOf(({ expected, cached }) => Math.abs((expected ?? 0) - cached)),
      `${failed}`,
    ],
  ];
}

/** Asks a client's next question; what was asked and answered is in its history then. */
async function ask(arm: Arm, client: number, turn: number, history: ChatMessage[]): Promise<Sent> {
  const trace = traces[client % traces.length];
  const asked = trace?.questions[(turn + turns * Math.floor(client / traces.length)) % trace.questions.length];
  if (trace === undefined || asked === undefined) throw new Error("no such question");
  const found = asked.retrieved
    .slice(0, k)
    .map((at) => ({ id: `m-${at}` as MemoryId, text: trace.memories[at]?.memory ?? "" }));
  const question: ChatMessage = { role: "user", content: asked.question };
  const chat = [...history, question];
  const body = { model, temperature: 0, max_tokens: answer, stream: true, stream_options: { include_usage: true } };
  const { messages, ...more } = prompted(arm.way, client, chat, found);
  const sent = await send(arm.base, { ...body, ...more, messages: ofRun(arm, client, messages) });
  history.push(question, { role: "assistant", content: sent.text });
  return sent;
}

function prompted(
  arm: string,
  client: number,
  chat: readonly ChatMessage[],
  found: readonly { readonly id: MemoryId; readonly text: string }[],
): { readonly messages: readonly ChatMessage[] } {
  if (arm === "readme") return { messages: readmeMessages(found, chat) };
  if (arm === "hand") return { messages: inLastMessage(found, chat) };
  const memories = found.map(({ id, text }) => ({ id, memory: text }));
  const memprefix = { conversation_id: "c", memories, ...(arm === "memprefix" ? {} : { retention: arm }) };
  const system: ChatMessage = { role: "system", content: INSTRUCTION };
  return { messages: [system, ...chat], ...{ user: `client ${client}`, memprefix } };
}

/** With a line at the head that no other arm, round and client has: nothing of theirs is found cached. */
function ofRun({ way, round }: Arm, client: number, [first, ...others]: readonly ChatMessage[]): ChatMessage[] {
  return first === undefined
    ? []
    : [{ ...first, content: `Session ${way} ${round} ${client}.\n${String(first.content)}` }, ...others];
}

async function send(base: string, body: object): Promise<Sent> {
  const since = performance.now();
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${base}/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok || response.body === null) throw new Error(`${response.status}: ${await response.text()}`);
  let ttft: number | null = null;
  let text = "";
  let usage: Chunk["usage"] = null;
  for await (const { data } of eventsOf(response.body as AsyncIterable<Uint8Array>)) {
    const chunk = data as Chunk | undefined;
    const said = chunk?.choices?.[0]?.delta.content ?? "";
    if (said !== "") ttft ??= performance.now() - since;
    text += said;
    usage = chunk?.usage ?? usage;
  }
  const expected = response.headers.get("x-memprefix-expected-cached-tokens");
  const total = performance.now() - since;
  return {
    ...{ text, total, ttft: ttft ?? total, prompt: usage?.prompt_tokens ?? 0 },
    cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    expected: expected === null ? null : Number(expected),
  };
}

interface Chunk {
  readonly choices?: readonly { readonly delta: { readonly content?: string | null } }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens?: number } | null;
  } | null;
}
