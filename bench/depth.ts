/**
 * `npm run bench:depth`: what adaptive depth costs an engine in prefill, over recorded real Mem0 searches of LoCoMo questions. Every
 * question goes through the proxy's own code to an engine, once with all memories at once and then by how many tries the engine takes to
 * be sure. Counted are the tokens that the engine had to compute for all that it was sent, relative to all at once. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * When the engine is sure is set by the arm: what tries cost is measured here, and nothing of whether fewer memories answer as well.
 *
 * `ENGINE=simulated` (a cache like vLLM's; or `embedded`: llama.cpp with a random 23M model), `LAYOUT=single` (or `conversation`: all questions
 * in one), `TRACE=conv-26`, `K=20`, `QUESTIONS=40`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { type ChatMessage, DEFAULT_DEPTH, type UserId } from "../src/core/index.js";
import { ENGINES } from "../src/engines/adapters/engines.js";
import { openEmbeddedEngine } from "../src/engines/embedded/embedded-engine.js";
import { openAiUpstream } from "../src/engines/embedded/embedded-openai.js";
import { embeddedUpstream } from "../src/engines/embedded/embedded-upstream.js";
import { MODEL_SHAPES, writeRandomModel } from "../src/engines/random-model/random-model.js";
import type { Upstream } from "../src/engines/upstream/upstream.js";
import { INSTRUCTION } from "../src/eval/base/instruction.js";
import { Chat } from "../src/service/chat/chat.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { chatTokenizer } from "../src/simulator/chat-tokens.js";
import { simulatedCache } from "../src/simulator/simulated-cache.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { openService } from "../test/service/compose/service-fixture.js";
import { neededData } from "./recorded-data.js";

const isEmbedded = process.env["ENGINE"] === "embedded";
const layout = process.env["LAYOUT"] === "conversation" ? "conversation" : "single";
const name = RECORDED_CONVERSATIONS.find((id) => id === process.env["TRACE"]) ?? "conv-26";
const k = Number(process.env["K"] ?? 20);
const limit = Number(process.env["QUESTIONS"] ?? 40);
const userId = "ana" as UserId;

const trace = readRecordedTrace(neededData(), name);

/** An engine that is asked, and what it had to compute. */
interface CountedEngine {
  readonly upstream: Upstream;
  readonly calls: { readonly isTry: boolean; readonly promptTokens: number; readonly uncachedTokens: number }[];
  close(): Promise<void>;
}

/** Counts what an engine computes, and has it be sure at the n-th try of each prompt, whatever it says. */
function counted(engine: Pick<Upstream, "send">, sureAt: number, close: () => Promise<void>): CountedEngine {
  const calls: CountedEngine["calls"] = [];
  let tries = 0;
  const send: Upstream["send"] = async (call, signal) => {
    const isTry = String(call.body).includes('"logprobs":true');
    const answer = await engine.send(call, signal);
    const held: Uint8Array[] = [];
    for await (const bytes of answer.body) held.push(bytes);
    const json = JSON.parse(Buffer.concat(held).toString("utf8"));
    const { promptTokens, cachedTokens } = ENGINES.vllm.readUsage(json);
    if (promptTokens === null || cachedTokens === null) throw new Error("the engine does not say what it cached");
    calls.push({ isTry, promptTokens, uncachedTokens: promptTokens - cachedTokens });
    tries = isTry ? tries + 1 : 0;
    if (isTry)
      json.choices[0].logprobs = { content: [{ token: "x", top_logprobs: tries >= sureAt ? [LIKELY] : EVEN }] };
    return { ...answer, body: wholeBody(json) };
  };
  return { upstream: { name: "engine", send }, calls, close };
}

async function* wholeBody(json: unknown): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.from(JSON.stringify(json));
}

const LIKELY = { token: "x", logprob: 0 };
const EVEN = Array.from({ length: 20 }, (_, at) => ({ token: `x${at}`, logprob: -Math.log(20) }));

async function openEngine(sureAt: number, modelPath: string): Promise<CountedEngine> {
  if (isEmbedded) {
    const engine = await openEmbeddedEngine({ modelPath, slots: 4, contextTokens: 8_192 });
    return counted(embeddedUpstream(openAiUpstream(engine)), sureAt, () => engine.close());
  }
  const cache = simulatedCache("blocks");
  const tokensOf = chatTokenizer(encodeO200k);
  let now = 0;
  const send: Upstream["send"] = async ({ body }) => {
    const tokens = tokensOf((JSON.parse(String(body ?? "{}")) as { messages: ChatMessage[] }).messages);
    const { cachedTokens } = cache.serve({ tokens }, ++now);
    const usage = { prompt_tokens: tokens.length, prompt_tokens_details: { cached_tokens: cachedTokens } };
    const answer = { choices: [{ index: 0, message: { role: "assistant", content: "Yes." } }], usage };
    const headers = [["content-type", "application/json"]] as const;
    return { status: 200, headers, body: wholeBody(answer) };
  };
  return counted({ send }, sureAt, async () => {});
}

/** Asks every question, and says what the engine computed. */
async function costOf(sureAt: number | null, modelPath: string): Promise<CountedEngine["calls"]> {
  const engine = await openEngine(sureAt ?? 0, modelPath);
  const memstem = openService({ countTokens: countO200k, now: Date.now });
  const { readUsage } = ENGINES.vllm;
  const adaptiveDepth = sureAt === null ? null : { ...DEFAULT_DEPTH, timeLimitMs: 60_000 };
  const fixed = { writeBack: false, onFault: console.error, clock: () => performance.now() };
  const chat = new Chat({ upstream: engine.upstream, readUsage, adaptiveDepth, ...fixed });
  const conversationId = layout === "single" ? null : "c";
  const history: ChatMessage[] = [{ role: "system", content: INSTRUCTION }];
  for (const { question, retrieved } of trace.questions.slice(0, limit)) {
    const asked: ChatMessage = { role: "user", content: question };
    const messages = [...history, asked];
    if (conversationId !== null) history.push(asked, { role: "assistant", content: "Yes." });
    const memories = retrieved.slice(0, k).map((at) => ({ id: `${at}`, memory: trace.memories[at]?.memory ?? "" }));
    const compose = readComposeOptions({ userId, conversationId, messages, memories });
    const body = { model: "any", messages, max_tokens: 1, temperature: 0 };
    const request = { userId, agentId: null, compose, body, query: "", headers: [], writeBack: null };
    const answer = await chat.complete(memstem.chats, request, new AbortController().signal);
    for await (const _ of answer.body);
  }
  await memstem.close();
  await engine.close();
  return engine.calls;
}

const folder = mkdtempSync(join(tmpdir(), "memstem-depth-"));
try {
  const modelPath = join(folder, "23m.gguf");
  if (isEmbedded) await writeRandomModel(modelPath, { name: "23m", shape: MODEL_SHAPES["23m"] });
  const questions = Math.min(limit, trace.questions.length);
  const on = isEmbedded ? "llama.cpp with a random 23M model" : "a simulated cache of 16-token blocks without limits";
  console.log(`${name}, first ${questions} questions, k = ${k}, ${layout}, ${on}; tokens per question\n`);
  console.log("| sure | calls | last prompt | computed for tries | for the last prompt | in all, to all at once |");
  console.log("| --- | --: | --: | --: | --: | --: |");
  const perQuestion = (calls: CountedEngine["calls"], of: (call: CountedEngine["calls"][number]) => number) =>
    calls.reduce((sum, call) => sum + of(call), 0) / questions;
  let once = Number.NaN;
  for (const [label, sureAt] of [
    ["not asked: all at once", null],
    ["at the first try", 1],
    ["at the second", 2],
    ["never", Number.POSITIVE_INFINITY],
  ] as const) {
    const calls = await costOf(sureAt, modelPath);
    const all = perQuestion(calls, ({ uncachedTokens }) => uncachedTokens);
    if (sureAt === null) once = all;
    const cells = [
      perQuestion(calls, () => 1).toFixed(2),
      perQuestion(calls, ({ isTry, promptTokens }) => (isTry ? 0 : promptTokens)).toFixed(0),
      perQuestion(calls, ({ isTry, uncachedTokens }) => (isTry ? uncachedTokens : 0)).toFixed(0),
      perQuestion(calls, ({ isTry, uncachedTokens }) => (isTry ? 0 : uncachedTokens)).toFixed(0),
      `${(all / once).toFixed(2)}×`,
    ];
    console.log(`| ${[label, ...cells].join(" | ")} |`);
  }
} finally {
  rmSync(folder, { recursive: true });
}
