/**
 * `npm run bench:windows`: clients that send the last n messages of a conversation. Recorded real Mem0 searches of six LoCoMo
 * conversations, first 120 questions each (or `TURNS`), answers of 120 tokens, through an endless token-exact cache that keeps answers
 * too. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * Tokens to prefill per turn, mean over the conversations; `fewer`: those of memories in the last message, same window, ÷ ours; `size`: our
 * prompts' tokens ÷ theirs, on average.
 *
 * Floor: the turn's new text, and (window + memories) ÷ turns of an epoch.
 */
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import type { ChatMessage } from "../src/core/index.js";
import { INSTRUCTION } from "../src/eval/base/instruction.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { chatTokenizer } from "../src/simulator/chat-tokens.js";
import { simulatedCache } from "../src/simulator/simulated-cache.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { inLastMessage, mean } from "../test/eval/replay/retention-costs.js";
import { openService } from "../test/service/compose/service-fixture.js";
import { neededData } from "./recorded-data.js";

const TURNS = Number(process.env["TURNS"] ?? 120);
const ANSWER = "yes".concat(" yes".repeat(119));
const data = neededData();
const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));

interface Sent {
  readonly tokens: number;
  readonly prefilled: number;
}

type Memory = { readonly id: string; readonly memory: string };
/** A turn's prompt, from what the client sends and what its search found. */
type Build = (window: readonly ChatMessage[], memories: readonly Memory[]) => Promise<readonly ChatMessage[]>;

async function converse(trace: RecordedTrace, k: number, length: number, build: Build): Promise<readonly Sent[]> {
  const cache = simulatedCache("radix");
  const tokenize = chatTokenizer(encodeO200k);
  const said: ChatMessage[] = [];
  const sent: Sent[] = [];
  for (const [turn, { question, retrieved }] of trace.questions.slice(0, TURNS).entries()) {
    said.push({ role: "user", content: `${turn}. ${question}` });
    const found = retrieved.slice(0, k).map((at) => ({ id: String(at), memory: trace.memories[at]?.memory ?? "" }));
    const messages = await build(said.slice(-length), found);
    const tokens = tokenize(messages);
    sent.push({ tokens: tokens.length, prefilled: tokens.length - cache.serve({ tokens }, 0).cachedTokens });
    const answered: ChatMessage = { role: "assistant", content: ANSWER };
    said.push(answered);
    cache.serve({ tokens: tokenize([...messages, answered]) }, 0);
  }
  return sent;
}

const byHand: Build = async (window, memories) =>
  inLastMessage(
    memories.map(({ id, memory }) => ({ id: id as never, text: memory })),
    window,
  );

/** Composed in-process, in a scope of its own. */
function composing(settings: object): { readonly build: Build; close(): Promise<void> } {
  const service = openService({ countTokens: countO200k, now: Date.now });
  const build: Build = async (messages, memories) => {
    const options = { userId: "ana", conversationId: "c", system: INSTRUCTION, messages, memories, ...settings };
    return (await service.compose(readComposeOptions(options))).messages;
  };
  return { build, close: () => service.close() };
}

console.log("| k | window | messages are | size | to prefill | fewer |\n| --: | --: | --- | --: | --: | --: |");
for (const k of [20, 100]) {
  for (const length of [8, 20]) {
    const hand = await Promise.all(traces.map((trace) => converse(trace, k, length, byHand)));
    const prefilled = (served: readonly (readonly Sent[])[]) =>
      mean(served.map((each) => mean(each.map((prompt) => prompt.prefilled))));
    const size = (served: readonly (readonly Sent[])[]) =>
      mean(
        served.map((each, at) => mean(each.map(({ tokens }) => tokens)) / mean((hand[at] ?? []).map((p) => p.tokens))),
      );
    const show = (name: string, served: readonly (readonly Sent[])[]) => {
      const [to, of] = [prefilled(served), prefilled(hand)];
      console.log(
        `| ${k} | ${length} | ${name} | ${size(served).toFixed(2)} | ${Math.round(to)} | ${(of / to).toFixed(2)} |`,
      );
    };
    show("in the last message, by hand", hand);
    for (const [name, settings] of [
      ["`exact`", { history: "exact" }],
      ["`exact`, `carry-over` 1.5", { history: "exact", policy: "carry-over", memoryBudgetRatio: 1.5 }],
      ["`extended`, ratio 1.5", { history: "extended", historyRatio: 1.5 }],
      ["`extended`, ratio 2", { history: "extended", historyRatio: 2 }],
      ["`extended`, ratio 3", { history: "extended", historyRatio: 3 }],
      ["`auto`, ratio 2", { history: "auto" }],
    ] as const) {
      const served = [];
      for (const trace of traces) {
        const { build, close } = composing(settings);
        served.push(await converse(trace, k, length, build));
        await close();
      }
      show(name, served);
    }
  }
}
