import { openMeasuredMemprefix } from "../src/cli/assemble.js";
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import type { HistoryName } from "../src/core/conversation/epoch.js";
import type { ChatMessage, EngineModel } from "../src/core/index.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import { MemoryList } from "../src/eval/base/prompt-memories.js";
import { HAND_BUILT } from "../src/eval/base/run-record.js";
import { memoriesOf, type RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { composedPrompts, handBuiltPrompts, type PromptBuilder } from "../src/eval/run/arm-prompts.js";
import type { Served } from "./retention-costs.js";

/** A trace as one conversation whose client sends only its last messages. */
interface WindowReplay {
  readonly k: number;
  /** Messages that the client sends, the question included. */
  readonly window: number;
  readonly cost: EngineModel;
  /** To every question. */
  readonly answer: string;
  /** First questions only. */
  readonly limit: number;
}

export type WindowArm = (typeof HAND_BUILT)[number] | HistoryName;

/** Serves both hand-built prompts and memprefix's with each `history`, each arm from an endless cache of its own. */
export async function replayWindows(
  trace: RecordedTrace,
  histories: readonly HistoryName[],
  replay: WindowReplay,
): Promise<ReadonlyMap<WindowArm, readonly Served[]>> {
  const list = new MemoryList(memoriesOf(trace), countO200k);
  const { window } = replay;
  const composed = (history: HistoryName) =>
    composedPrompts(list, {
      openMemprefix: (now) => openMeasuredMemprefix(replay.cost, now),
      ...{ policy: "prefix-exact", budgetRatio: null, family: "generic", history },
      arm: { layout: "conversation", retention: null, annotations: null, depth: null, window },
      ...{ mark: null, promptTokens: null, chooseDepth: null },
    });
  const arms = new Map<WindowArm, readonly Served[]>();
  for (const arm of HAND_BUILT) arms.set(arm, await served(trace, replay, handBuiltPrompts(list, arm, null)));
  for (const history of histories) arms.set(history, await served(trace, replay, composed(history)));
  return arms;
}

async function served(
  { questions }: RecordedTrace,
  { k, window, answer, limit }: WindowReplay,
  prompts: PromptBuilder,
): Promise<readonly Served[]> {
  const cache = new SimulatedCache("radix");
  const tokenize = chatTokenizer(encodeO200k);
  const history: ChatMessage[] = [];
  const all: Served[] = [];
  for (const [turn, { question, evidence, retrieved }] of questions.slice(0, limit).entries()) {
    const sent = history.slice(Math.max(0, history.length - window + 1));
    const prompt = await prompts.build({ turn, question, history: sent, retrieved: retrieved.slice(0, k), evidence });
    const tokens = tokenize(prompt.messages);
    all.push({ order: prompt.order, promptTokens: tokens.length, cachedTokens: cache.serve(tokens) });
    const answered: ChatMessage = { role: "assistant", content: answer };
    // Engines cache an answer like its prompt.
    cache.serve(tokenize([...prompt.messages, answered]));
    history.push({ role: "user", content: question }, answered);
  }
  await prompts.close();
  return all;
}
