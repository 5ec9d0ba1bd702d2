import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import {
  type AnswerTime,
  type EngineModel,
  type FirstTokenTime,
  ORDERING_POLICIES,
  promptCost,
  type RetentionName,
} from "../src/core/index.js";
import { answerOf, inLastMessage } from "../src/eval/base/hand-built.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { composeTrace, type ReplayedPrompt } from "../src/eval/replay/replay-trace.js";
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

interface Conversations {
  readonly turns: number;
  readonly k: number;
}

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
 * that has the conversations one after the other. `best in hindsight` is what fresh starts can reach.
 */
export function costsOfDearAttention(of: Conversations & { readonly traces: readonly RecordedTrace[] }): void {
  const { traces, turns, k } = of;
  const byHand = servedByHand({ traces, k, answerTokens: ANSWER_TOKENS, turns }, inLastMessage).map((sent) =>
    sent.map(totalMs),
  );
  const starts = Array.from({ length: Math.ceil(turns / WINDOW) }, (_, at) => at * WINDOW);
  printHead([`k = ${k}`, ...starts.map((from) => `turns ${from} to ${from + WINDOW - 1}`), "all", "worst"]);
  const service = new Learned();
  const inService = (retention: RetentionName) => (trace: RecordedTrace) => served(trace, of, retention, service);
  for (const [name, takes] of [
    ["keep", inService("keep")],
    ["ephemeral", inService("ephemeral")],
    ["best in hindsight", (trace) => inHindsight(trace, of)],
    ["auto, fresh", (trace) => served(trace, of, "auto", new Learned())],
    ["auto, service", inService("auto")],
  ] satisfies [string, (trace: RecordedTrace) => readonly number[]][]) {
    service.clear();
    const taken = traces.map(takes);
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
  of: Conversations,
  retention: RetentionName,
  learned: Learned,
): readonly number[] {
  const draw = seeded(1);
  const cache = new SimulatedCache("radix");
  // Its metrics say how large its blocks are.
  const engine = () => ({ ...learnAsService(learned.times, learned.answers), blockTokens: BLOCK_TOKENS });
  return Array.from(composed(trace, of, retention, engine), (prompt) => {
    const sent = sentTo(cache, prompt);
    const off = Math.exp(OFF * (draw() + draw() + draw() - 1.5) * 2);
    const { promptTokens, cachedTokens } = sent;
    learned.times.push({ uncachedTokens: promptTokens - cachedTokens, cachedTokens, ms: firstTokenMs(sent) * off });
    const ms = ANSWER_TOKENS * 40 + HELD_TOKEN_MS * promptTokens;
    learned.answers.push({ promptTokens, tokens: ANSWER_TOKENS, ms: ms * off });
    return totalMs(sent);
  });
}

function composed(
  trace: RecordedTrace,
  { turns, k }: Conversations,
  retention: RetentionName,
  engine: () => EngineModel,
) {
  return composeTrace(
    trace,
    { encode: encodeO200k, countTokens: countO200k },
    {
      ...{ k, retention, limit: turns, layout: "conversation", budgetRatio: null, answer: answerOf(ANSWER_TOKENS) },
      ...{ policy: ORDERING_POLICIES["prefix-exact"], engine },
    },
  );
}

/** Sends a prompt and its answer through a cache. */
function sentTo(cache: SimulatedCache, { tokens, answered }: Pick<ReplayedPrompt, "tokens" | "answered">): Sent {
  const held = cache.serve(tokens);
  if (answered !== null) cache.serve(answered);
  return { promptTokens: tokens.length, cachedTokens: held - (held % BLOCK_TOKENS) };
}

/**
 * What each turn takes where a conversation keeps its memories and starts afresh at the turns that are best for all of its turns together. No
 * choice that a turn makes by itself can know these.
 */
function inHindsight(trace: RecordedTrace, of: Conversations): readonly number[] {
  const { turns } = of;
  // A prompt that starts afresh is one whose earlier turns retrieved nothing.
  const fromTurn = Array.from({ length: turns }, (_, start) => {
    const questions = trace.questions.map((asked, turn) => (turn < start ? { ...asked, retrieved: [] } : asked));
    return [...composed({ ...trace, questions }, of, "keep", () => SHORT)];
  });
  const kept = fromTurn.map((prompts) => {
    const cache = new SimulatedCache("radix");
    return prompts.map((prompt) => totalMs(sentTo(cache, prompt)));
  });
  const startMs = (turn: number, lastStart: number | null) => {
    const cache = new SimulatedCache("radix");
    const before = lastStart === null ? undefined : fromTurn[lastStart]?.[turn - 1];
    if (before !== undefined) sentTo(cache, before);
    return totalMs(sentTo(cache, fromTurn[turn]?.[turn] as ReplayedPrompt));
  };
  /** The best of the turns from a start on, by that start and the one before it. */
  const best = new Map<string, readonly number[]>();
  const bestFrom = (start: number, lastStart: number | null): readonly number[] => {
    if (start === turns) return [];
    const known = best.get(`${start} ${lastStart}`);
    if (known !== undefined) return known;
    const first = startMs(start, lastStart);
    const plans = Array.from({ length: turns - start }, (_, at) => {
      const next = start + 1 + at;
      return [first, ...(kept[start] ?? []).slice(start + 1, next), ...bestFrom(next, start)];
    });
    const least = plans.reduce((one, other) => (mean(other) < mean(one) ? other : one));
    best.set(`${start} ${lastStart}`, least);
    return least;
  };
  return bestFrom(0, null);
}
