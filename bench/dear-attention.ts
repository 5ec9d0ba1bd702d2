import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import {
  type AnswerTime,
  type FirstTokenTime,
  ORDERING_POLICIES,
  promptCost,
  type RetentionName,
} from "../src/core/index.js";
import { answerOf, inLastMessage } from "../src/eval/base/hand-built.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { composeTrace } from "../src/eval/replay/replay-trace.js";
import { learnAsService } from "./learned-costs.js";
import { servedByHand } from "./retention-costs.js";
import { seeded } from "./seeded.js";
import { mean } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const [ANSWER_TOKENS, BLOCK_TOKENS, WINDOW] = [16, 128, 10];
/** vLLM 0.32 on a CPU without AVX-512, SmolLM2 in float32: fitted to prompts of up to 3,116 tokens. */
const SHORT = {
  cost: { kind: "time", fixedMs: 92, perTokenMs: 3.22, perPairMs: 2.37e-3 },
  blockTokens: BLOCK_TOKENS,
  minimumPrefixTokens: BLOCK_TOKENS,
} as const;
/** Tokens of a prompt, and its measured time by that law: between these it is interpolated. */
const [LONGEST_LINEAR, MEASURED] = [3_116, { tokens: 6_934, times: 17.4 / 9 }];
const HELD_TOKEN_MS = 0.16;
/** Of measured times: how far they are off, usually. */
const OFF = 0.08;

interface Sent {
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

function firstTokenMs({ promptTokens, cachedTokens }: Sent): number {
  const beyond = Math.max(0, promptTokens - LONGEST_LINEAR) / (MEASURED.tokens - LONGEST_LINEAR);
  return promptCost(SHORT, promptTokens, cachedTokens) * (1 + beyond * (MEASURED.times - 1));
}

const totalMs = (sent: Sent) => firstTokenMs(sent) + HELD_TOKEN_MS * sent.promptTokens;

/**
 * Prints what turns take on an engine whose attention is dear, in windows of ten turns, divided by what they take with memories in the last
 * message by hand. `auto` learns the engine's law while it runs: `fresh` begins each conversation with nothing learned, `service` is one service
 * that has the conversations one after the other.
 */
export function costsOfDearAttention(of: {
  readonly traces: readonly RecordedTrace[];
  readonly turns: number;
  readonly k: number;
}): void {
  const { traces, turns, k } = of;
  const byHand = servedByHand({ traces, k, answerTokens: ANSWER_TOKENS, turns }, inLastMessage).map((sent) =>
    sent.map(totalMs),
  );
  const starts = Array.from({ length: Math.ceil(turns / WINDOW) }, (_, at) => at * WINDOW);
  printHead([`k = ${k}`, ...starts.map((from) => `turns ${from} to ${from + WINDOW - 1}`), "all", "worst"]);
  const service = new Learned();
  for (const [name, retention, learned] of [
    ["keep", "keep", () => service],
    ["ephemeral", "ephemeral", () => service],
    ["auto, fresh", "auto", () => new Learned()],
    ["auto, service", "auto", () => service],
  ] as const) {
    if (retention === "auto") service.clear();
    const taken = traces.map((trace) => served(trace, of, retention, learned()));
    const ratios = (from: number, to: number) =>
      taken.map((ms, at) => mean(ms.slice(from, to)) / mean((byHand[at] ?? []).slice(from, to)));
    const windows = starts.map((from) => ratios(from, from + WINDOW));
    const cells = [...windows, ratios(0, turns)].map((each) => mean(each).toFixed(2));
    printRow([name, ...cells, Math.max(...windows.flat()).toFixed(2)]);
  }
}

/** What was measured of an engine. */
class Learned {
  times: FirstTokenTime[] = [];
  answers: AnswerTime[] = [];

  clear(): void {
    [this.times, this.answers] = [[], []];
  }
}

/** What each turn of a conversation takes. */
function served(
  trace: RecordedTrace,
  { turns, k }: { readonly turns: number; readonly k: number },
  retention: RetentionName,
  learned: Learned,
): readonly number[] {
  const draw = seeded(1);
  const cache = new SimulatedCache("radix");
  const prompts = composeTrace(
    trace,
    { encode: encodeO200k, countTokens: countO200k },
    {
      ...{ k, retention, limit: turns, layout: "conversation", budgetRatio: null, answer: answerOf(ANSWER_TOKENS) },
      policy: ORDERING_POLICIES["prefix-exact"],
      // Its metrics say how large its blocks are.
      engine: () => ({ ...learnAsService(learned.times, learned.answers), blockTokens: BLOCK_TOKENS }),
    },
  );
  return Array.from(prompts, ({ tokens, answered }) => {
    const held = cache.serve(tokens);
    if (answered !== null) cache.serve(answered);
    const sent = { promptTokens: tokens.length, cachedTokens: held - (held % BLOCK_TOKENS) };
    const off = Math.exp(OFF * (draw() + draw() + draw() - 1.5) * 2);
    const { promptTokens, cachedTokens } = sent;
    learned.times.push({ uncachedTokens: promptTokens - cachedTokens, cachedTokens, ms: firstTokenMs(sent) * off });
    const ms = ANSWER_TOKENS * 40 + HELD_TOKEN_MS * promptTokens;
    learned.answers.push({ promptTokens, tokens: ANSWER_TOKENS, ms: ms * off });
    return totalMs(sent);
  });
}
